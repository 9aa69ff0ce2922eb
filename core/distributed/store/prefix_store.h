#pragma once

#include "core/distributed/store/store.h"

namespace tensord::distributed {

// The keys of another store that start with `prefix/`: separates the keys of groups and of restarts.
class PrefixStore final : public Store {
 public:
  PrefixStore(std::string prefix, std::shared_ptr<Store> store);

  void set(const std::string& key, const std::string& value) override { store_->set(named(key), value); }
  std::string get(const std::string& key, Milliseconds timeout) override {
    return store_->get(named(key), chosen(timeout));
  }
  using Store::wait;
  void wait(std::span<const std::string> keys, Milliseconds timeout) override {
    store_->wait(named(keys), chosen(timeout));
  }
  using Store::check;
  bool check(std::span<const std::string> keys) override { return store_->check(named(keys)); }
  int64_t add(const std::string& key, int64_t amount) override { return store_->add(named(key), amount); }
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) override {
    return store_->compare_set(named(key), expected, desired);
  }
  void append(const std::string& key, const std::string& value) override { store_->append(named(key), value); }
  bool remove(const std::string& key) override { return store_->remove(named(key)); }
  int64_t count() override { return store_->count(); }
  // Only keys with the prefix, with the prefix removed.
  std::vector<std::string> list_keys() override;
  void queue_push(const std::string& key, const std::string& value) override { store_->queue_push(named(key), value); }
  std::string queue_pop(const std::string& key, Milliseconds timeout) override {
    return store_->queue_pop(named(key), chosen(timeout));
  }
  int64_t queue_size(const std::string& key) override { return store_->queue_size(named(key)); }
  std::shared_ptr<Store> clone() override { return std::make_shared<PrefixStore>(prefix_, store_->clone()); }
  void interrupt() override { store_->interrupt(); }

 private:
  std::string named(const std::string& key) const { return prefix_ + "/" + key; }
  std::vector<std::string> named(std::span<const std::string> keys) const;

  const std::string prefix_;
  const std::shared_ptr<Store> store_;
};

}  // namespace tensord::distributed
