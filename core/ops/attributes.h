#pragma once

#include <memory>
#include <typeindex>
#include <utility>
#include <vector>

namespace tensord::ops {

// Facts about an operator beyond its schema and kernels: at most one value of each type. The code that reads an
// attribute declares its type (`BatchIndependent` for the passes, others for one family of kernels); the record does
// not know the types. Filled before main, then constant.
class Attributes {
 public:
  // Null if the operator does not have the attribute.
  template <class T>
  const T* get() const {
    for (const Entry& entry : entries_) {
      if (entry.type == typeid(T)) return static_cast<const T*>(entry.value.get());
    }
    return nullptr;
  }
  // Returns false and changes nothing if there is a value of this type already.
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
