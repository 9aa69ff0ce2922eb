#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace tensord {

// A vector that stores its first N items in the object itself, for vectors that exist in large numbers. Grows as
// std::vector does. Move-only.
template <class T, size_t N>
class InlineVector {
 public:
  InlineVector() = default;
  InlineVector(InlineVector&& other) noexcept { take(other); }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  InlineVector(const InlineVector&) = delete;
  InlineVector& operator=(const InlineVector&) = delete;
  ~InlineVector() { reset(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return items_; }
  const T* data() const { return items_; }
  T* begin() { return items_; }
  T* end() { return items_ + size_; }
  const T* begin() const { return items_; }
  const T* end() const { return items_ + size_; }
  T& operator[](size_t i) { return items_[i]; }
  const T& operator[](size_t i) const { return items_[i]; }
  T& back() { return items_[size_ - 1]; }
  operator std::span<const T>() const { return {items_, size_}; }

  template <class... Args>
  T& emplace_back(Args&&... args) {
    if (size_ == capacity_) [[unlikely]]
      reserve(2 * size_t{capacity_});
    T* item = std::construct_at(items_ + size_, std::forward<Args>(args)...);
    ++size_;
    return *item;
  }
  void push_back(T item) { emplace_back(std::move(item)); }
  // New items are value-initialized.
  void resize(size_t count) {
    reserve(count);
    while (size_ < count) emplace_back();
    while (size_ > count) std::destroy_at(items_ + --size_);
  }
  void reserve(size_t count) {
    if (count <= capacity_) return;
    T* grown = std::allocator<T>().allocate(count);
    std::uninitialized_move(begin(), end(), grown);
    std::destroy(begin(), end());
    free_heap();
    items_ = grown;
    capacity_ = static_cast<uint32_t>(count);
  }
  void clear() {
    std::destroy(begin(), end());
    size_ = 0;
  }

 private:
  T* inline_items() { return reinterpret_cast<T*>(room_); }
  void free_heap() {
    if (items_ != inline_items()) std::allocator<T>().deallocate(items_, capacity_);
  }
  void reset() {
    clear();
    free_heap();
    items_ = inline_items();
    capacity_ = N;
  }
  // REQUIRES: this vector is empty and owns no heap memory.
  void take(InlineVector& other) noexcept {
    if (other.items_ != other.inline_items()) {
      items_ = std::exchange(other.items_, other.inline_items());
      capacity_ = std::exchange(other.capacity_, static_cast<uint32_t>(N));
      size_ = std::exchange(other.size_, 0);
      return;
    }
    std::uninitialized_move(other.begin(), other.end(), items_);
    size_ = other.size_;
    other.clear();
  }

  T* items_ = inline_items();
  uint32_t size_ = 0, capacity_ = N;
  alignas(T) std::byte room_[N * sizeof(T)];
};

}  // namespace tensord
