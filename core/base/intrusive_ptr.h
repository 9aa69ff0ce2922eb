#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace tensord {

// Base class of objects with an embedded reference count. The count is atomic; the derived type decides whether threads
// may share the object itself.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  virtual ~RefCounted() = default;

  void add_ref() const { count_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  uint32_t use_count() const { return count_.load(std::memory_order_acquire); }

 private:
  mutable std::atomic<uint32_t> count_{0};
};

// An owning pointer to a RefCounted object. It takes one word and allocates no control block.
template <class T>
class IntrusivePtr {
 public:
  IntrusivePtr() = default;
  IntrusivePtr(std::nullptr_t) {}
  explicit IntrusivePtr(T* ptr) : ptr_(ptr) {
    if (ptr_) ptr_->add_ref();
  }
  IntrusivePtr(const IntrusivePtr& other) : IntrusivePtr(other.ptr_) {}
  IntrusivePtr(IntrusivePtr&& other) noexcept : ptr_(std::exchange(other.ptr_, nullptr)) {}
  template <class U>
  requires std::is_convertible_v<U*, T*> IntrusivePtr(const IntrusivePtr<U>& other) : IntrusivePtr(other.get()) {}
  ~IntrusivePtr() {
    if (ptr_) ptr_->release();
  }
  IntrusivePtr& operator=(IntrusivePtr other) noexcept {
    std::swap(ptr_, other.ptr_);
    return *this;
  }

  T* get() const { return ptr_; }
  T* operator->() const { return ptr_; }
  T& operator*() const { return *ptr_; }
  explicit operator bool() const { return ptr_ != nullptr; }
  bool operator==(const IntrusivePtr& other) const { return ptr_ == other.ptr_; }

  // Passes the reference to the caller.
  T* detach() { return std::exchange(ptr_, nullptr); }
  // Takes ownership of the caller's reference.
  static IntrusivePtr adopt(T* ptr) {
    IntrusivePtr out;
    out.ptr_ = ptr;
    return out;
  }

 private:
  T* ptr_ = nullptr;
};

template <class T, class... Args>
IntrusivePtr<T> make_intrusive(Args&&... args) {
  return IntrusivePtr<T>(new T(std::forward<Args>(args)...));
}

}  // namespace tensord
