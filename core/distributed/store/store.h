#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tensord::distributed {

using Milliseconds = std::chrono::milliseconds;

// Keys and bytes that all processes of a job see: how they find each other, and how one says that it failed. Meaning
// and defaults are those of torch.distributed's stores. Thread-safe; a wait of one thread holds no other up.
//
// All throw Error: kDeadlineExceeded "store: wait timeout after 300ms, keys: a, b"; kCancelled after interrupt();
// kUnavailable where the store is gone; kUnimplemented for what a kind of store does not have.
class Store {
 public:
  static constexpr Milliseconds kDefaultTimeout = std::chrono::minutes(5);
  static constexpr Milliseconds kStoresOwn{-1};  // the timeout that the store was given

  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  virtual void set(const std::string& key, const std::string& value) = 0;
  // Waits until the key is there.
  virtual std::string get(const std::string& key, Milliseconds timeout = kStoresOwn) = 0;
  // Waits until all of the keys are there.
  virtual void wait(std::span<const std::string> keys, Milliseconds timeout = kStoresOwn) = 0;
  void wait(const std::string& key, Milliseconds timeout = kStoresOwn) { wait(std::span(&key, 1), timeout); }
  // Whether all of the keys are there now; false for no key, as in c10d.
  virtual bool check(std::span<const std::string> keys) = 0;
  bool check(const std::string& key) { return check(std::span(&key, 1)); }
  // The sum, which is kept as decimal text; a missing key counts as 0. Throws Error{kInvalidArgument} where the key
  // holds no number.
  virtual int64_t add(const std::string& key, int64_t amount) = 0;
  // Sets the key when it holds `expected`, or is missing and `expected` is empty. Gives what the key holds then; for a
  // missing key and an `expected` that is not empty sets nothing and gives `expected`.
  virtual std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) = 0;
  virtual void append(const std::string& key, const std::string& value) = 0;
  // Whether it was there.
  virtual bool remove(const std::string& key) = 0;
  // Keys of the whole store, those of its own included (TCP and file: one), whatever the prefix.
  virtual int64_t count() = 0;
  virtual std::vector<std::string> list_keys() = 0;
  // First in, first out, apart from the keys. pop waits.
  virtual void queue_push(const std::string& key, const std::string& value) = 0;
  virtual std::string queue_pop(const std::string& key, Milliseconds timeout = kStoresOwn) = 0;
  virtual int64_t queue_size(const std::string& key) = 0;

  std::vector<std::string> multi_get(std::span<const std::string> keys, Milliseconds timeout = kStoresOwn);
  // REQUIRES: as many values as keys.
  void multi_set(std::span<const std::string> keys, std::span<const std::string> values);
  // Returns when `world_size` callers came to the barrier of this name, which can be used once.
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
