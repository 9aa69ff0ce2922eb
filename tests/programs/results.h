#pragma once

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/ops/value.h"
#include "core/tensor/lend.h"

// Compares and copies arguments and results of programs.
namespace tensord::programs {

using ops::Value;

// The allowed difference of each tensor, float, int and bool of a result from the expected one, in order. `scale`
// widens it for lower precision. With a negative entry only the type and shape are compared, because the value is
// unstable (a tie, rounding at a step, a sum that cancels). An empty list does the same for all entries.
struct Tolerances {
  struct Leaf {
    double absolute = -1, relative = 0;
  };
  std::vector<Leaf> leaves;
  size_t next = 0;

  Leaf take() { return next < leaves.size() ? leaves[next++] : Leaf{}; }
};

inline std::vector<Value> items_of(const Value& value) {
  return value.is_tuple() ? value.to_tuple()->items : value.to_list()->items;
}

inline bool is_sequence(const Value& value) { return value.is_list() || value.is_tuple(); }

inline bool is_near(double found, double expected, Tolerances::Leaf leaf) {
  if (std::isnan(found) || std::isnan(expected)) return std::isnan(found) && std::isnan(expected);
  if (std::isinf(found) || std::isinf(expected)) return found == expected;
  return std::abs(found - expected) <= leaf.absolute + leaf.relative * std::abs(expected);
}

std::string difference(const Value& found, const Value& expected, Tolerances& tolerances);

inline std::string difference(const Tensor& found, const Tensor& expected, Tolerances& tolerances) {
  const Tolerances::Leaf leaf = tolerances.take();
  if (found.sizes() != expected.sizes() || found.dtype() != expected.dtype()) {
    return concat("got ", describe(found), ", expected ", describe(expected));
  }
  if (leaf.absolute < 0) return "";
  if (!is_floating(expected.dtype())) {
    const Tensor a = found.to(DType::kInt64).contiguous(), b = expected.to(DType::kInt64).contiguous();
    for (int64_t i = 0; i < a.numel(); ++i) {
      const int64_t x = a.data<int64_t>()[i], y = b.data<int64_t>()[i];
      if (x != y) return concat("element ", i, " is ", x, ", expected ", y);
    }
    return "";
  }
  const Tensor a = found.to(DType::kFloat64).contiguous(), b = expected.to(DType::kFloat64).contiguous();
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double x = a.data<double>()[i], y = b.data<double>()[i];
    if (!is_near(x, y, leaf)) return concat("element ", i, " is ", x, ", expected ", y, " within ", leaf.absolute);
  }
  return "";
}

inline std::string difference(const std::vector<Value>& found, const std::vector<Value>& expected,
                              Tolerances& tolerances) {
  if (found.size() != expected.size()) return concat(found.size(), " items, expected ", expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const std::string problem = difference(found[i], expected[i], tolerances);
    if (!problem.empty()) return concat("[", i, "] ", problem);
  }
  return "";
}

inline std::string difference(const Value& found, const Value& expected, Tolerances& tolerances) {
  if (found.is_tensor() && expected.is_tensor()) return difference(found.to_tensor(), expected.to_tensor(), tolerances);
  if (is_sequence(found) && is_sequence(expected)) return difference(items_of(found), items_of(expected), tolerances);
  if (found.is_dict() && expected.is_dict()) {
    std::vector<Value> a, b;
    for (const auto& [key, item] : found.to_dict()->items()) a.insert(a.end(), {key, item});
    for (const auto& [key, item] : expected.to_dict()->items()) b.insert(b.end(), {key, item});
    return difference(a, b, tolerances);
  }
  if (found.tag() != expected.tag()) return concat("got ", found.tag_name(), ", expected ", expected.tag_name());
  if (!expected.is_number()) return found.equals(expected) ? "" : "another value";
  const Tolerances::Leaf leaf = tolerances.take();
  if (leaf.absolute < 0) return "";
  const double x = found.to_scalar().to_double(), y = expected.to_scalar().to_double();
  const bool is_same = expected.is_float() ? is_near(x, y, leaf) : found.equals(expected);
  return is_same ? "" : concat("is ", x, ", expected ", y);
}

// Bit by bit.
inline bool is_identical(const Value& a, const Value& b) {
  if (a.is_tensor() && b.is_tensor()) {
    const Tensor x = a.to_tensor().contiguous(), y = b.to_tensor().contiguous();
    return x.sizes() == y.sizes() && x.dtype() == y.dtype() &&
           (x.numel() == 0 || std::memcmp(x.raw_data(), y.raw_data(), x.size_bytes()) == 0);
  }
  if (is_sequence(a) && is_sequence(b)) {
    const std::vector<Value> x = items_of(a), y = items_of(b);
    bool is_same = x.size() == y.size();
    for (size_t i = 0; is_same && i < x.size(); ++i) is_same = is_identical(x[i], y[i]);
    return is_same;
  }
  if (a.is_dict() && b.is_dict()) {
    const auto &x = a.to_dict()->items(), &y = b.to_dict()->items();
    bool is_same = x.size() == y.size();
    for (size_t i = 0; is_same && i < x.size(); ++i) {
      is_same = is_identical(x[i].first, y[i].first) && is_identical(x[i].second, y[i].second);
    }
    return is_same;
  }
  if (a.is_float() && b.is_float() && std::isnan(a.to_float()) && std::isnan(b.to_float())) return true;
  return a.tag() == b.tag() && a.equals(b);
}

// Copies values deeply. Tensors that share memory share it in the copy, with the same strides.
class Copier {
 public:
  enum class Tensors { kCopied, kShared, kLent };
  explicit Copier(Tensors tensors = Tensors::kCopied) : tensors_(tensors) {}

  Value operator()(const Value& value) {
    if (value.is_tensor()) return tensors_ == Tensors::kShared ? value : Value(copy_of(value.to_tensor()));
    if (value.is_list()) return ops::make_list(value.to_list()->element, (*this)(value.to_list()->items));
    if (value.is_tuple()) {
      return make_intrusive<ops::TupleObject>((*this)(value.to_tuple()->items), value.to_tuple()->type);
    }
    if (value.is_dict()) {
      auto copy = make_intrusive<ops::DictObject>(value.to_dict()->key, value.to_dict()->value);
      for (const auto& [key, item] : value.to_dict()->items()) copy->set(key, (*this)(item));
      return ops::Dict(copy);
    }
    return value;
  }
  std::vector<Value> operator()(const std::vector<Value>& values) {
    std::vector<Value> copies;
    for (const Value& value : values) copies.push_back((*this)(value));
    return copies;
  }

 private:
  Tensor copy_of(const Tensor& tensor) {
    if (tensor.is_meta()) return tensor;
    const void* key = tensor.storage()->data();
    auto found = storages_.find(key);
    if (found == storages_.end()) {
      const auto elements = static_cast<int64_t>(tensor.storage()->size_bytes() / size_of(tensor.dtype()));
      const std::vector<int64_t> sizes{elements}, one{1};
      const Tensor given = Tensor::from_storage(tensor.storage(), sizes, one, 0, tensor.dtype());
      found = storages_.emplace(key, tensors_ == Tensors::kLent ? lend(given) : given.clone()).first;
    }
    if (found->second.dtype() != tensor.dtype()) return tensor.clone(true);
    return Tensor::from_storage(found->second.storage(), tensor.sizes(), tensor.strides(), tensor.offset(),
                                tensor.dtype());
  }

  const Tensors tensors_;
  std::map<const void*, Tensor> storages_;
};

}  // namespace tensord::programs
