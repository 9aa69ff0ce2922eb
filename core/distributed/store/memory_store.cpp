#include "core/distributed/store/memory_store.h"

#include "core/base/cancellable_wait.h"
#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/distributed/store/table.h"

namespace tensord::distributed {

struct MemoryStore::Shared {
  Mutex mutex;
  CondVar changed;
  StoreTable table TENSORD_GUARDED_BY(mutex);

  template <class Fn>
  auto change(const Fn& fn) {
    const MutexLock lock(mutex);
    changed.notify_all();
    return fn(table);
  }
};

MemoryStore::MemoryStore(Milliseconds timeout) : MemoryStore(std::make_shared<Shared>(), timeout) {}
MemoryStore::MemoryStore(std::shared_ptr<Shared> shared, Milliseconds timeout)
    : Store(timeout), shared_(std::move(shared)) {}
MemoryStore::~MemoryStore() = default;

// Takes the lock and returns once `ready` is true under it.
template <class Ready>
void MemoryStore::wait_until(const Ready& ready, std::span<const std::string> keys, Milliseconds timeout) {
  timeout = chosen(timeout);
  MutexLock lock(shared_->mutex);
  bool is_there = false;
  cancellable_wait(shared_->changed, lock, std::chrono::steady_clock::now() + timeout,
                   [&]() TENSORD_REQUIRES(shared_->mutex) {
                     return is_interrupted_ || is_there || (is_there = ready(shared_->table));
                   });
  if (is_there) return;
  if (is_interrupted_) fail_store_interrupted();
  fail_store_timeout(keys, timeout);
}

void MemoryStore::set(const std::string& key, const std::string& value) {
  shared_->change([&](StoreTable& table) { table.set(key, value); });
}

std::string MemoryStore::get(const std::string& key, Milliseconds timeout) {
  std::string value;
  const auto find = [&](const StoreTable& table) {
    const std::string* const found = table.find(key);
    if (found) value = *found;
    return found != nullptr;
  };
  wait_until(find, std::span(&key, 1), timeout);
  return value;
}

void MemoryStore::wait(std::span<const std::string> keys, Milliseconds timeout) {
  wait_until([&](const StoreTable& table) { return table.has_all(keys); }, keys, timeout);
}

bool MemoryStore::check(std::span<const std::string> keys) {
  return shared_->change([&](const StoreTable& table) { return !keys.empty() && table.has_all(keys); });
}

int64_t MemoryStore::add(const std::string& key, int64_t amount) {
  return shared_->change([&](StoreTable& table) { return table.add(key, amount); });
}

std::string MemoryStore::compare_set(const std::string& key, const std::string& expected, const std::string& desired) {
  return shared_->change([&](StoreTable& table) { return table.compare_set(key, expected, desired); });
}

void MemoryStore::append(const std::string& key, const std::string& value) {
  shared_->change([&](StoreTable& table) { table.append(key, value); });
}

bool MemoryStore::remove(const std::string& key) {
  return shared_->change([&](StoreTable& table) { return table.remove(key); });
}

int64_t MemoryStore::count() {
  return shared_->change([](const StoreTable& table) { return table.count(); });
}

std::vector<std::string> MemoryStore::list_keys() {
  return shared_->change([](const StoreTable& table) { return table.keys(); });
}

void MemoryStore::queue_push(const std::string& key, const std::string& value) {
  shared_->change([&](StoreTable& table) { table.queue_push(key, value); });
}

std::string MemoryStore::queue_pop(const std::string& key, Milliseconds timeout) {
  std::optional<std::string> value;
  wait_until([&](StoreTable& table) { return (value = table.queue_pop(key)).has_value(); }, std::span(&key, 1),
             timeout);
  return *std::move(value);
}

int64_t MemoryStore::queue_size(const std::string& key) {
  return shared_->change([&](const StoreTable& table) { return table.queue_size(key); });
}

std::shared_ptr<Store> MemoryStore::clone() { return std::shared_ptr<Store>(new MemoryStore(shared_, timeout())); }

void MemoryStore::interrupt() {
  const MutexLock lock(shared_->mutex);
  is_interrupted_ = true;
  shared_->changed.notify_all();
}

}  // namespace tensord::distributed
