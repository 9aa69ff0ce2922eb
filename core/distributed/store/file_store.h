#pragma once

#include <atomic>

#include "core/base/file_descriptor.h"
#include "core/base/mutex.h"
#include "core/distributed/store/store.h"
#include "core/distributed/store/table.h"

namespace tensord::distributed {

// A store in a file that all processes see, on a file system with locks (flock). The file is a log that each handle
// keeps reading. Records are appended under the lock; an incomplete record of a killed process is cut off by the next
// writer. The last handle removes the file. Queues are not supported. Waits poll every 10 ms. Like c10d's FileStore,
// except that removing a key a second time reports that it was missing.
class FileStore final : public Store {
 public:
  // Creates the file if it does not exist. Throws Error{kUnavailable} that starts with the path.
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
  // Runs `fn` with the up-to-date table while no other handle changes it.
  template <class Fn>
  auto locked(const Fn& fn);
  void read_on();
  // Appends a record to the file and applies it to the table.
  void write_set(const std::string& key, const std::string& value);
  void write_remove(const std::string& key);
  void write_record(char kind, const std::string& key, const std::string& value);
  [[noreturn]] void fail_file(const char* what) const;

  const std::string path_;
  Mutex mutex_;
  std::unique_ptr<FileDescriptor> file_;  // guarded by mutex_
  StoreTable table_;                      // guarded by mutex_; the contents of the file up to `end_bytes_`
  int64_t end_bytes_ = 0;                 // guarded by mutex_
  std::atomic<bool> is_interrupted_ = false;
};

}  // namespace tensord::distributed
