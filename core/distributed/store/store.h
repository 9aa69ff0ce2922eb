#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tensord::distributed {

using Milliseconds = std::chrono::milliseconds;

// Keys and values that all processes of a job see. Ranks use it to find each other and to report failures. Semantics
// and defaults are those of torch.distributed's stores. Thread-safe; a waiting thread does not block others.
//
// All functions throw Error: kDeadlineExceeded "store: wait timeout after 300ms, keys: a, b"; kCancelled after
// interrupt(); kUnavailable if the store is gone; kUnimplemented for what a store type does not support.
class Store {
 public:
  static constexpr Milliseconds kDefaultTimeout = std::chrono::minutes(5);
  static constexpr Milliseconds kStoresOwn{-1};  // the store's own timeout

  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  virtual void set(const std::string& key, const std::string& value) = 0;
  // Waits until the key exists.
  virtual std::string get(const std::string& key, Milliseconds timeout = kStoresOwn) = 0;
  // Waits until all keys exist.
  virtual void wait(std::span<const std::string> keys, Milliseconds timeout = kStoresOwn) = 0;
  void wait(const std::string& key, Milliseconds timeout = kStoresOwn) { wait(std::span(&key, 1), timeout); }
  // Whether all keys exist now; false for an empty list, as in c10d.
  virtual bool check(std::span<const std::string> keys) = 0;
  bool check(const std::string& key) { return check(std::span(&key, 1)); }
  // Returns the sum, which is stored as decimal text. A missing key counts as 0. Throws Error{kInvalidArgument} if the
  // value is not a number.
  virtual int64_t add(const std::string& key, int64_t amount) = 0;
  // Sets the key if it holds `expected`, or if it is missing and `expected` is empty. Returns the value that the key
  // then holds. For a missing key and a non-empty `expected`, nothing is set and `expected` is returned.
  virtual std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) = 0;
  virtual void append(const std::string& key, const std::string& value) = 0;
  // Returns whether the key existed.
  virtual bool remove(const std::string& key) = 0;
  // Keys of the whole store, including internal ones (TCP and file: one), whatever the prefix.
  virtual int64_t count() = 0;
  virtual std::vector<std::string> list_keys() = 0;
  // FIFO queues, separate from the keys. queue_pop waits.
  virtual void queue_push(const std::string& key, const std::string& value) = 0;
  virtual std::string queue_pop(const std::string& key, Milliseconds timeout = kStoresOwn) = 0;
  virtual int64_t queue_size(const std::string& key) = 0;

  std::vector<std::string> multi_get(std::span<const std::string> keys, Milliseconds timeout = kStoresOwn);
  // REQUIRES: as many values as keys.
  void multi_set(std::span<const std::string> keys, std::span<const std::string> values);
  // Returns when `world_size` callers have reached the barrier of this name. A name can be used once.
  void barrier(const std::string& name, int world_size, Milliseconds timeout = kStoresOwn);

  // Another handle of the same store, with an interrupt of its own.
  virtual std::shared_ptr<Store> clone() = 0;
  // Ends the waits of this handle, now and later.
  virtual void interrupt() = 0;

  Milliseconds timeout() const { return timeout_; }
  void set_timeout(Milliseconds timeout) { timeout_ = timeout; }

 protected:
  explicit Store(Milliseconds timeout) : timeout_(timeout) {}
  Milliseconds chosen(Milliseconds timeout) const { return timeout.count() < 0 ? timeout_ : timeout; }

 private:
  Milliseconds timeout_;
};

[[noreturn]] void fail_store_timeout(std::span<const std::string> keys, Milliseconds timeout);
[[noreturn]] void fail_store_interrupted();

}  // namespace tensord::distributed
