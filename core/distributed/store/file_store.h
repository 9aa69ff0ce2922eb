#pragma once

#include <atomic>

#include "core/base/file_descriptor.h"
#include "core/base/mutex.h"
#include "core/distributed/store/store.h"
#include "core/distributed/store/table.h"

namespace tensord::distributed {

// A store in a file that all processes see, over a file system with locks (flock). It is a log that each handle reads
// on: records are appended under the lock, and one that a killed process left unfinished is cut off by the next. The
// last handle that goes takes the file with it. No queues; waits look again every 10 ms. c10d's FileStore, but a key
// that is removed twice was not there the second time.
class FileStore final : public Store {
 public:
  // Makes the file where it is not there. Throws Error{kUnavailable} that starts with the path.
  explicit FileStore(std::string path, Milliseconds timeout = kDefaultTimeout);
  ~FileStore() override;

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Milliseconds timeout) override;
  using Store::wait;
  void wait(std::span<const std::string> keys, Milliseconds timeout) override;
  using Store::check;
  bool check(std::span<const std::string> keys) override;
  int64_t add(const std::string& key, int64_t amount) override;
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) override;
  void append(const std::string& key, const std::string& value) override;
  bool remove(const std::string& key) override;
  int64_t count() override;
  std::vector<std::string> list_keys() override;
  void queue_push(const std::string& key, const std::string& value) override;
  std::string queue_pop(const std::string& key, Milliseconds timeout) override;
  int64_t queue_size(const std::string& key) override;
  std::shared_ptr<Store> clone() override;
  void interrupt() override { is_interrupted_ = true; }

 private:
  class Lock;
  // Runs `fn` with the table as it is now, while no other handle changes it.
  template <class Fn>
  auto locked(const Fn& fn);
  void read_on();
  // A record to the end of the file, and to the table.
  void write_set(const std::string& key, const std::string& value);
  void write_remove(const std::string& key);
  void write_record(char kind, const std::string& key, const std::string& value);
  [[noreturn]] void fail_file(const char* what) const;

  const std::string path_;
  Mutex mutex_;
  std::unique_ptr<FileDescriptor> file_;  // by mutex_
  StoreTable table_;                      // by mutex_; what the file says up to `end_bytes_`
  int64_t end_bytes_ = 0;                 // by mutex_
  std::atomic<bool> is_interrupted_ = false;
};

}  // namespace tensord::distributed
