#pragma once

#include <memory>
#include <typeindex>
#include <utility>
#include <vector>

namespace tensord::ops {

// What is said of an operator beside its schema and its ways to run: at most one value of each type. Who reads an
// attribute declares its type (the passes `BatchIndependent`, a family of kernels its own); the record knows none of
// them. Filled before main, then constant.
class Attributes {
 public:
  // Null when nothing was said.
  template <class T>
  const T* get() const {
    for (const Entry& entry : entries_) {
      if (entry.type == typeid(T)) return static_cast<const T*>(entry.value.get());
    }
    return nullptr;
  }
  // False, and nothing changed, when there is one of the type.
  template <class T>
  bool set(T value) {
    if (get<T>()) return false;
    entries_.push_back({typeid(T), std::make_shared<const T>(std::move(value))});
    return true;
  }

 private:
  struct Entry {
    std::type_index type;
    std::shared_ptr<const void> value;
  };
  std::vector<Entry> entries_;
};

}  // namespace tensord::ops
