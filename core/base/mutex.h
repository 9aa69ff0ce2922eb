#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

// The locks of the standard library with annotations that let clang prove that guarded members are accessed only under
// their lock (-Wthread-safety; tests/thread_safety.py). Other compilers ignore the annotations.
#if defined(__clang__)
#define TENSORD_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define TENSORD_THREAD_SAFETY(attribute)
#endif

// On a member: access it only under this lock. The second form applies to the pointed-to object.
#define TENSORD_GUARDED_BY(mutex) TENSORD_THREAD_SAFETY(guarded_by(mutex))
#define TENSORD_PT_GUARDED_BY(mutex) TENSORD_THREAD_SAFETY(pt_guarded_by(mutex))
// On a function or lambda: the caller must hold the lock; must hold at least a shared lock; must not hold the lock.
#define TENSORD_REQUIRES(...) TENSORD_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define TENSORD_REQUIRES_SHARED(...) TENSORD_THREAD_SAFETY(requires_shared_capability(__VA_ARGS__))
#define TENSORD_EXCLUDES(...) TENSORD_THREAD_SAFETY(locks_excluded(__VA_ARGS__))
// On a function: acquires the lock and keeps it; releases it.
#define TENSORD_ACQUIRE(...) TENSORD_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define TENSORD_RELEASE(...) TENSORD_THREAD_SAFETY(release_capability(__VA_ARGS__))
// On a function whose locking clang cannot follow. A comment next to it must explain why the locking is correct.
#define TENSORD_NO_THREAD_SAFETY_ANALYSIS TENSORD_THREAD_SAFETY(no_thread_safety_analysis)

namespace tensord {

class TENSORD_THREAD_SAFETY(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  void lock() TENSORD_ACQUIRE() { mutex_.lock(); }
  void unlock() TENSORD_RELEASE() { mutex_.unlock(); }
  bool try_lock() TENSORD_THREAD_SAFETY(try_acquire_capability(true)) { return mutex_.try_lock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a Mutex for a block. It may release the mutex early and acquire it again.
class TENSORD_THREAD_SAFETY(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) TENSORD_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() TENSORD_RELEASE() {
    if (is_held_) mutex_.unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  void lock() TENSORD_ACQUIRE() {
    mutex_.lock();
    is_held_ = true;
  }
  void unlock() TENSORD_RELEASE() {
    is_held_ = false;
    mutex_.unlock();
  }

 private:
  friend class CondVar;
  Mutex& mutex_;
  bool is_held_ = true;
};

// A mutex for one writer or many readers.
class TENSORD_THREAD_SAFETY(capability("mutex")) SharedMutex {
 public:
  void lock() TENSORD_ACQUIRE() { mutex_.lock(); }
  void unlock() TENSORD_RELEASE() { mutex_.unlock(); }
  void lock_shared() TENSORD_THREAD_SAFETY(acquire_shared_capability()) { mutex_.lock_shared(); }
  void unlock_shared() TENSORD_THREAD_SAFETY(release_shared_capability()) { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

class TENSORD_THREAD_SAFETY(scoped_lockable) WriterLock {
 public:
  explicit WriterLock(SharedMutex& mutex) TENSORD_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~WriterLock() TENSORD_RELEASE() { mutex_.unlock(); }
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  SharedMutex& mutex_;
};

class TENSORD_THREAD_SAFETY(scoped_lockable) ReaderLock {
 public:
  explicit ReaderLock(SharedMutex& mutex) TENSORD_THREAD_SAFETY(acquire_shared_capability(mutex)) : mutex_(mutex) {
    mutex_.lock_shared();
  }
  ~ReaderLock() TENSORD_THREAD_SAFETY(release_generic_capability()) { mutex_.unlock_shared(); }
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;

 private:
  SharedMutex& mutex_;
};

// Each wait releases the lock while it sleeps and holds it again on return. A condition is a lambda that states the
// lock it needs: `[&]() TENSORD_REQUIRES(mutex_) { return is_done_; }`.
class CondVar {
 public:
  void notify_one() { changed_.notify_one(); }
  void notify_all() { changed_.notify_all(); }

  void wait(MutexLock& lock) {
    Borrowed borrowed(lock);
    changed_.wait(borrowed.lock);
  }
  template <class Condition>
  void wait(MutexLock& lock, Condition condition) TENSORD_NO_THREAD_SAFETY_ANALYSIS {
    while (!condition()) wait(lock);
  }
  // Returns false if the time passed first (and, with a condition, the condition still does not hold).
  template <class Clock, class Duration>
  bool wait_until(MutexLock& lock, const std::chrono::time_point<Clock, Duration>& end) {
    Borrowed borrowed(lock);
    return changed_.wait_until(borrowed.lock, end) == std::cv_status::no_timeout;
  }
  template <class Clock, class Duration, class Condition>
  bool wait_until(MutexLock& lock, const std::chrono::time_point<Clock, Duration>& end,
                  Condition condition) TENSORD_NO_THREAD_SAFETY_ANALYSIS {
    Borrowed borrowed(lock);
    return changed_.wait_until(borrowed.lock, end, condition);
  }
  template <class Rep, class Period, class... Condition>
  bool wait_for(MutexLock& lock, const std::chrono::duration<Rep, Period>& time, Condition... condition) {
    return wait_until(lock, std::chrono::steady_clock::now() + time, condition...);
  }

 private:
  // Lends the lock to the standard library for one wait.
  struct Borrowed {
    explicit Borrowed(MutexLock& held) : lock(held.mutex_.mutex_, std::adopt_lock) {}
    ~Borrowed() { lock.release(); }
    std::unique_lock<std::mutex> lock;
  };
  std::condition_variable changed_;
};

}  // namespace tensord
