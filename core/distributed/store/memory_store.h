#pragma once

#include "core/distributed/store/store.h"

namespace tensord::distributed {

// A store within one process, for groups whose ranks are threads. c10d's HashStore.
class MemoryStore final : public Store {
 public:
  explicit MemoryStore(Milliseconds timeout = kDefaultTimeout);
  ~MemoryStore() override;

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
  void interrupt() override;

 private:
  struct Shared;
  MemoryStore(std::shared_ptr<Shared> shared, Milliseconds timeout);
  template <class Ready>
  void wait_until(const Ready& ready, std::span<const std::string> keys, Milliseconds timeout);

  const std::shared_ptr<Shared> shared_;
  bool is_interrupted_ = false;  // guarded by the mutex of shared_
};

}  // namespace tensord::distributed
