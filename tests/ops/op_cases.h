#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "core/jit/archive/torch_file.h"
#include "core/ops/run.h"
#include "core/tensor/complex.h"

// Reads, copies and compares the cases written by tests/ops/make_op_cases.py.
namespace tensord::op_cases {

using ops::Value;

inline const Value& field(const Value& record, const char* name) {
  const auto index = record.to_dict()->find(Value(name));
  check(index >= 0, "case without ", name);
  return record.to_dict()->items()[static_cast<size_t>(index)].second;
}

inline const std::vector<Value>& items(const Value& value) {
  return value.is_tuple() ? value.to_tuple()->items : value.to_list()->items;
}

struct Tolerance {
  double rtol = 0, atol = 0;
};

inline bool close(double got, double expected, Tolerance tolerance) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected) || std::isinf(got)) return got == expected;
  return std::abs(got - expected) <= tolerance.atol + tolerance.rtol * std::abs(expected);
}

// "" if equal, otherwise the first difference.
inline std::string compare(const Value& got, const Value& expected, Tolerance tolerance);

inline std::string compare_tensors(const Tensor& got, const Tensor& expected, Tolerance tolerance) {
  if (got.dtype() != expected.dtype() || got.sizes() != expected.sizes()) {
    return concat("got ", describe(got), ", expected ", describe(expected));
  }
  if (is_complex(got.dtype())) return compare_tensors(as_real_pairs(got), as_real_pairs(expected), tolerance);
  // Integers are compared exactly: a double would lose the low bits of int64.
  if (!is_floating(got.dtype())) {
    const Tensor a = got.to(DType::kInt64).contiguous(), b = expected.to(DType::kInt64).contiguous();
    for (int64_t i = 0; i < a.numel(); ++i) {
      if (a.data<int64_t>()[i] != b.data<int64_t>()[i]) {
        return concat("element ", i, " is ", a.data<int64_t>()[i], ", expected ", b.data<int64_t>()[i]);
      }
    }
    return "";
  }
  const Tensor a = got.to(DType::kFloat64).contiguous(), b = expected.to(DType::kFloat64).contiguous();
  for (int64_t i = 0; i < a.numel(); ++i) {
    if (!close(a.data<double>()[i], b.data<double>()[i], tolerance)) {
      return concat("element ", i, " is ", a.data<double>()[i], ", expected ", b.data<double>()[i]);
    }
  }
  return "";
}

inline std::string compare_items(const std::vector<Value>& got, const std::vector<Value>& expected,
                                 Tolerance tolerance) {
  if (got.size() != expected.size()) return concat("got ", got.size(), " items, expected ", expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (const std::string problem = compare(got[i], expected[i], tolerance); !problem.empty()) {
      return concat("[", i, "]: ", problem);
    }
  }
  return "";
}

inline std::string compare(const Value& got, const Value& expected, Tolerance tolerance) {
  if (got.is_device() && expected.is_string()) return compare(Value(to_string(got.to_device())), expected, tolerance);
  if (got.tag() != expected.tag()) return concat("got ", got.tag_name(), ", expected ", expected.tag_name());
  if (got.is_tensor()) return compare_tensors(got.to_tensor(), expected.to_tensor(), tolerance);
  if (got.is_list() || got.is_tuple()) return compare_items(items(got), items(expected), tolerance);
  if (got.is_float()) {
    return close(got.to_float(), expected.to_float(), tolerance)
               ? ""
               : concat("got ", got.to_float(), ", expected ", expected.to_float());
  }
  if (got.is_complex()) {
    const std::complex<double> a = got.to_complex(), b = expected.to_complex();
    const bool is_close = close(a.real(), b.real(), tolerance) && close(a.imag(), b.imag(), tolerance);
    return is_close ? ""
                    : concat("got ", a.real(), " and ", a.imag(), "j, expected ", b.real(), " and ", b.imag(), "j");
  }
  if (got.is_dict()) {
    std::vector<Value> a, b;
    for (const auto& [key, value] : got.to_dict()->items()) a.insert(a.end(), {key, value});
    for (const auto& [key, value] : expected.to_dict()->items()) b.insert(b.end(), {key, value});
    return compare_items(a, b, tolerance);
  }
  if (got.equals(expected)) return "";
  return got.is_string() ? concat("got \"", got.to_string(), "\", expected \"", expected.to_string(), "\"") : "differs";
}

// Deep copy, so that one case can be run several times.
inline Value copy(const Value& value, bool as_meta) {
  if (value.is_tensor()) {
    const Tensor& tensor = value.to_tensor();
    if (as_meta) return Tensor::meta_strided(tensor.sizes(), tensor.strides(), tensor.dtype());
    Tensor out = Tensor::empty_strided(tensor.sizes(), tensor.strides(), tensor.dtype());
    out.copy_from(tensor);
    return out;
  }
  if (value.is_list()) {
    ops::List out = ops::make_list(value.to_list()->element);
    for (const Value& item : value.to_list()->items) out->items.push_back(copy(item, as_meta));
    return out;
  }
  if (value.is_dict()) {
    auto out = make_intrusive<ops::DictObject>(value.to_dict()->key, value.to_dict()->value);
    for (const auto& [key, item] : value.to_dict()->items()) out->set(key, copy(item, as_meta));
    return ops::Dict(out);
  }
  return value;
}

inline std::vector<Value> copy_all(const std::vector<Value>& values, bool as_meta = false) {
  std::vector<Value> out;
  for (const Value& value : values) out.push_back(copy(value, as_meta));
  return out;
}

// The results, or, according to the case's `check`, the part that does not depend on the signs of vectors: see
// INVARIANTS in case.py.
inline std::vector<Value> comparable(const std::string& check_name, const std::vector<Value>& results) {
  if (check_name == "values" || check_name == "shape") return results;
  const auto turned = [](const Tensor& x) { return ops::call_by_name("aten::mH", x); };
  const auto matmul = [](const Tensor& a, const Tensor& b) { return ops::call_by_name("aten::matmul", a, b); };
  const auto times = [](const Tensor& matrix, const Tensor& row) {
    return ops::call_by_name("aten::mul.Tensor", matrix, ops::call_by_name("aten::unsqueeze", row, -2));
  };
  const auto weights_like = [](const Tensor& values) {
    return ops::call_by_name("aten::arange.start", 1, values.sizes().back() + 1, values.dtype());
  };
  if (check_name == "eigh") {
    const Tensor &values = results[0].to_tensor(), &v = results[1].to_tensor(), vt = turned(v);
    return {matmul(times(v, values), vt), values, matmul(times(v, weights_like(values)), vt), matmul(vt, v)};
  }
  if (check_name == "eig") {
    const Tensor order = ops::call_by_name("aten::argsort", ops::call_by_name("aten::abs", results[0]), -1, false);
    const Tensor values = ops::call_by_name("aten::gather", results[0], -1, order);
    const Tensor places = ops::call_by_name("aten::expand", ops::call_by_name("aten::unsqueeze", order, -2),
                                            results[1].to_tensor().sizes());
    const Tensor vectors = ops::call_by_name("aten::gather", results[1], -1, places),
                 size = ops::call_by_name("aten::abs", vectors);
    return {values,
            ops::call_by_name("aten::sum.dim_IntList", ops::call_by_name("aten::mul.Tensor", size, size), Dims{-2}),
            matmul(times(vectors, values), ops::call_by_name("aten::linalg_inv", vectors))};
  }
  check(check_name == "svd" || check_name == "svd of V", "unknown check ", check_name);
  const Tensor &u = results[0].to_tensor(), &s = results[1].to_tensor();
  const Tensor vh = check_name == "svd" ? results[2].to_tensor() : turned(results[2].to_tensor());
  const int64_t count = s.sizes().back();
  const Tensor left = ops::call_by_name("aten::narrow", u, -1, 0, count),
               right = ops::call_by_name("aten::narrow", vh, -2, 0, count);
  const Tensor weights = weights_like(s);
  return {matmul(times(left, s), right),
          s,
          matmul(times(left, weights), turned(left)),
          matmul(times(turned(right), weights), right),
          matmul(turned(u), u),
          matmul(vh, turned(vh))};
}

// The files of the folder TENSORD_OP_CASES.
inline std::vector<std::filesystem::path> case_files() {
  const char* folder = std::getenv("TENSORD_OP_CASES");
  std::vector<std::filesystem::path> files;
  if (!folder) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".pt") files.push_back(entry.path());
  }
  return files;
}

}  // namespace tensord::op_cases
