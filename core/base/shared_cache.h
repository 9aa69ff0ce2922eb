#pragma once

#include <cstddef>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <utility>

#include "core/base/mutex.h"

namespace tensord {

// A cache of expensive objects by key with a maximum size; it evicts the least recently used object. If several threads
// want a missing object, one makes it and the others wait. Thread-safe; objects are made outside the lock, so other
// keys stay available. A caller that holds an object keeps it after eviction.
template <class Key, class T, class Less = std::less<Key>>
class SharedCache {
 public:
  explicit SharedCache(size_t capacity) : capacity_(capacity) {}

  // `make` returns a non-null std::shared_ptr<const T> and must not request the same key. An exception from it reaches
  // only its own caller; one of the waiting threads then tries again.
  template <class Make>
  std::shared_ptr<const T> get(const Key& key, Make&& make) {
    MutexLock lock(mutex_);
    for (auto found = index_.find(key); found != index_.end(); found = index_.find(key)) {
      const auto entry = found->second;
      if (entry->made) {
        order_.splice(order_.begin(), order_, entry);
        return entry->made;
      }
      made_.wait(lock);
    }
    const auto entry = order_.insert(order_.begin(), Entry{});
    entry->place = index_.emplace(key, entry).first;
    lock.unlock();
    std::shared_ptr<const T> made;
    try {
      made = make();
    } catch (...) {
      lock.lock();
      erase(entry);
      made_.notify_all();
      throw;
    }
    lock.lock();
    entry->made = made;
    made_.notify_all();
    evict();
    return made;
  }

  // The number of objects that are made or in progress.
  size_t size() const {
    const MutexLock lock(mutex_);
    return order_.size();
  }

 private:
  struct Entry;
  using Order = std::list<Entry>;  // the most recent first
  using Index = std::map<Key, typename Order::iterator, Less>;
  struct Entry {
    std::shared_ptr<const T> made;  // null while a thread makes it
    typename Index::iterator place;
  };

  void erase(typename Order::iterator entry) TENSORD_REQUIRES(mutex_) {
    index_.erase(entry->place);
    order_.erase(entry);
  }
  void evict() TENSORD_REQUIRES(mutex_) {
    for (auto entry = order_.end(); order_.size() > capacity_ && entry != order_.begin();) {
      const auto last = std::prev(entry);
      if (last->made)
        erase(last);
      else
        entry = last;
    }
  }

  const size_t capacity_;
  mutable Mutex mutex_;
  CondVar made_;
  Order order_ TENSORD_GUARDED_BY(mutex_);
  Index index_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace tensord
