#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>

namespace tensord {

// A short list of int64 (sizes or strides) that needs no heap up to 6 entries.
class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
  Dims(std::span<const int64_t> values) {
    resize(values.size());
    std::copy(values.begin(), values.end(), data());
  }
  Dims(size_t count, int64_t value) {
    resize(count);
    std::fill(begin(), end(), value);
  }
  Dims(const Dims& other) : Dims(other.span()) {}
  Dims(Dims&& other) noexcept { swap(other); }
  Dims& operator=(Dims other) noexcept {
    swap(other);
    return *this;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int64_t* data() { return heap_ ? heap_.get() : inline_; }
  const int64_t* data() const { return heap_ ? heap_.get() : inline_; }
  int64_t& operator[](size_t i) { return data()[i]; }
  int64_t operator[](size_t i) const { return data()[i]; }
  int64_t* begin() { return data(); }
  int64_t* end() { return data() + size_; }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + size_; }
  int64_t& back() { return data()[size_ - 1]; }
  int64_t back() const { return data()[size_ - 1]; }
  std::span<const int64_t> span() const { return {data(), size_}; }
  operator std::span<const int64_t>() const { return span(); }

  void push_back(int64_t value) {
    resize(size_ + 1);
    back() = value;
  }
  void insert(size_t position, int64_t value) {
    resize(size_ + 1);
    std::copy_backward(begin() + position, end() - 1, end());
    data()[position] = value;
  }
  void erase(size_t position) {
    std::copy(begin() + position + 1, end(), begin() + position);
    resize(size_ - 1);
  }
  // New entries are zero.
  void resize(size_t count) {
    if (count > capacity_) {
      const size_t capacity = std::max<size_t>(count, capacity_ * 2);
      auto grown = std::make_unique<int64_t[]>(capacity);
      std::copy(begin(), end(), grown.get());
      heap_ = std::move(grown);
      capacity_ = capacity;
    }
    if (count > size_) std::fill(data() + size_, data() + count, 0);
    size_ = count;
  }
  bool operator==(const Dims& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }
  void swap(Dims& other) noexcept {
    std::swap(inline_, other.inline_);
    std::swap(heap_, other.heap_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

 private:
  static constexpr size_t kInline = 6;
  int64_t inline_[kInline] = {};
  std::unique_ptr<int64_t[]> heap_;
  size_t size_ = 0;
  size_t capacity_ = kInline;
};

// "[2, 3]".
std::string to_string(std::span<const int64_t> dims);
// The same for check(), which formats nothing while the condition holds.
std::ostream& operator<<(std::ostream& out, const Dims& dims);

}  // namespace tensord
