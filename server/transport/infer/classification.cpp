#include "server/transport/infer/classification.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.h"

namespace tensord::server {
namespace {

// Maximum number of elements to sort: each becomes a value and an index, much more than its bytes.
constexpr int64_t kMaxElements = 1'000'000;

template <class T>
bool is_larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
  }
  return a > b;
}

template <class T>
void add_largest(std::span<const T> row, int64_t classes, const std::vector<std::string>& labels,
                 std::vector<std::string>& out) {
  std::vector<size_t> order(row.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::partial_sort(order.begin(), order.begin() + classes, order.end(), [&row](size_t a, size_t b) {
    return is_larger(row[a], row[b]) || (!is_larger(row[b], row[a]) && a < b);
  });
  for (int64_t i = 0; i < classes; ++i) {
    const size_t index = order[static_cast<size_t>(i)];
    std::string& text = out.emplace_back(concat(std::to_string(row[index]), ":", index));
    if (index < labels.size() && !labels[index].empty()) text += ":" + labels[index];
  }
}

template <class T>
void add_rows(const Tensor& values, int64_t rows, int64_t classes, const std::vector<std::string>& labels,
              std::vector<std::string>& out) {
  const Tensor contiguous = values.contiguous();
  const auto size = static_cast<size_t>(values.numel() / rows);
  for (int64_t row = 0; row < rows; ++row) {
    add_largest<T>({contiguous.data<T>() + static_cast<size_t>(row) * size, size}, classes, labels, out);
  }
}

void add_texts(const Tensor& values, int64_t rows, int64_t classes, const std::vector<std::string>& labels,
               std::vector<std::string>& out) {
  switch (values.dtype()) {
    case DType::kUInt8: return add_rows<uint8_t>(values, rows, classes, labels, out);
    case DType::kInt8: return add_rows<int8_t>(values, rows, classes, labels, out);
    case DType::kInt16: return add_rows<int16_t>(values, rows, classes, labels, out);
    case DType::kInt32: return add_rows<int32_t>(values, rows, classes, labels, out);
    case DType::kInt64: return add_rows<int64_t>(values, rows, classes, labels, out);
    case DType::kFloat64: return add_rows<double>(values, rows, classes, labels, out);
    case DType::kFloat32: return add_rows<float>(values, rows, classes, labels, out);
    default: return add_rows<float>(values.to(DType::kFloat32), rows, classes, labels, out);
  }
}

}  // namespace

uint64_t classes_bytes(const InferTensor& output, int64_t classes, bool is_batched) {
  if (!output.tensor.defined() || output.tensor.numel() > kMaxElements) return 0;  // will be refused
  constexpr int64_t kClassBytes = 96, kPlaceBytes = sizeof(size_t);
  const int64_t elements = output.tensor.numel();
  const int64_t rows = is_batched && !output.shape.empty() ? output.shape[0] : 1;
  const int64_t in_row = rows > 0 ? elements / rows : 0;
  return static_cast<uint64_t>(rows * std::min(classes, in_row) * kClassBytes + in_row * kPlaceBytes);
}

InferTensor classify(const InferTensor& output, int64_t classes, bool is_batched,
                     const std::vector<std::string>& labels) {
  check(output.datatype != DataType::kBytes && output.datatype != DataType::kBool,
        "class result not available for output due to unsupported type '", name_of(output.datatype), "': '",
        output.name, "'");
  check(output.tensor.numel() <= kMaxElements, "classification output tensor too large: '", output.name, "' has ",
        output.tensor.numel(), " elements, at most ", kMaxElements);
  const bool has_rows = is_batched && !output.shape.empty();
  const int64_t rows = has_rows ? output.shape[0] : 1;
  const int64_t in_row = rows > 0 ? output.tensor.numel() / rows : 0;
  InferTensor out;
  out.name = output.name;
  out.datatype = DataType::kBytes;
  if (has_rows) out.shape.push_back(rows);
  out.shape.push_back(std::min(classes, in_row));
  if (in_row > 0) add_texts(output.tensor, rows, out.shape.back(), labels, out.strings);
  return out;
}

}  // namespace tensord::server
