#include <cmath>

#include "core/ops/attributes/exported.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/attention/nested.h"
#include "kernels/base/numbers.h"
#include "kernels/view/view.h"

// Queries about a tensor, and numbers made from one.
namespace tensord::kernels {
namespace {

using ops::Scalar;
using ops::Value;

[[noreturn]] void fail_dynamic(const char* what) {
  fail(ErrorCode::kUnimplemented, what, ": the tensor has no data to read");
}

const Tensor& single_element(const Tensor& x, const char* what) {
  if (x.is_meta()) fail_dynamic(what);
  check(x.numel() == 1, "a Tensor with ", x.numel(), " elements cannot be converted to Scalar");
  return x;
}

int64_t item_int(const Tensor& x) {
  const Tensor value = single_element(x, "Int").to(Device{});
  if (!is_floating(value.dtype())) return value.item_int();
  const double number = value.item_double();
  if (!(number >= -9.2233720368547758e18 && number < 9.2233720368547758e18)) return INT64_MIN;
  return static_cast<int64_t>(number);
}
double item_float(const Tensor& x) { return single_element(x, "Float").item_double(); }

bool item_bool(const Tensor& x) {
  if (x.is_meta()) fail_dynamic("Bool");
  check(x.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
  check(x.numel() == 1, "Boolean value of Tensor with more than one value is ambiguous");
  return x.item_bool();
}

Value item(const Tensor& x) {
  const Tensor value = single_element(x, "item").to(Device{});
  if (value.dtype() == DType::kBool) return value.item_bool();
  if (is_floating(value.dtype())) return value.item_double();
  return value.item_int();
}

Value item_implicit(const Tensor& x) {
  check(x.ndim() == 0, "Cannot input a tensor of dimension other than 0 as a scalar argument");
  return item(x);
}

int64_t int_implicit(const Tensor& x) {
  check(x.ndim() == 0, "Cannot input a tensor of dimension other than 0 as a scalar argument");
  check(!is_floating(x.dtype()), "Cannot input a tensor of type ", name_of(x.dtype()), " as an integral argument");
  return item_int(x);
}

double float_implicit(const Tensor& x) {
  check(x.ndim() == 0, "Cannot input a tensor of dimension other than 0 as a scalar argument");
  check(is_floating(x.dtype()), "Cannot input a tensor of type ", name_of(x.dtype()), " as a float argument");
  return item_float(x);
}

Tensor number_to_tensor(const Scalar& number) {
  if (number.is_bool()) return Tensor::scalar(number.to_bool());
  if (number.is_int()) return Tensor::scalar(number.to_int());
  return Tensor::scalar(number.to_double());
}

bool is_contiguous_as(const Tensor& x, int64_t format) {
  if (format == 0) return x.is_contiguous();
  if (format < 2 || x.ndim() != (format == 2 ? 4 : 5)) return false;
  if (x.numel() > 0) return x.is_channels_last();
  // For tensors without elements PyTorch checks the strides that such a layout would have.
  int64_t expected = 1;
  for (int64_t i = 0; i < x.ndim(); ++i) {
    const int64_t dim = i == 0 ? 1 : i + 1 < x.ndim() ? x.ndim() - i : 0;
    if (x.size(dim) == 1) continue;
    if (x.strides()[static_cast<size_t>(dim)] != expected) return false;
    expected *= x.size(dim);
  }
  return true;
}

int64_t tensor_length(const Tensor& x) {
  check(x.ndim() > 0, "len() of a 0-d tensor");
  return x.sizes()[0];
}

OP("aten::size").impl([](const Tensor& x) { return x.sizes(); }).shape_only();
OP("aten::size.int").impl([](const Tensor& x, int64_t dim) { return x.size(dim); }).shape_only();
OP("prim::shape").impl([](const Tensor& x) { return x.sizes(); }).shape_only();
OP("aten::_shape_as_tensor").impl([](const Tensor& x) { return vector_of(x.sizes()); }).kind(ops::OpKind::kScript);
OP("aten::stride").impl([](const Tensor& x) { return x.strides(); });
OP("aten::stride.int").impl([](const Tensor& x, int64_t dim) { return x.stride(dim); });
OP("aten::storage_offset").impl([](const Tensor& x) { return x.offset(); });
OP("aten::dim").impl([](const Value& x) { return rows_of(x).ndim(); }).shape_only();
OP("aten::numel").impl([](const Tensor& x) { return x.numel(); }).shape_only();
OP("aten::len.Tensor").impl(tensor_length).shape_only();
OP("aten::element_size").impl([](const Tensor& x) { return static_cast<int64_t>(size_of(x.dtype())); });
OP("aten::get_device").impl([](const Tensor& x) -> int64_t {
  return x.device().kind == DeviceKind::kCPU ? -1 : x.device().index;
});
OP("aten::is_floating_point").impl([](const Tensor& x) { return is_floating(x.dtype()); }).shape_only();
OP("aten::is_complex").impl([](const Tensor& x) { return is_complex(x.dtype()); }).shape_only();
OP("aten::is_signed").impl([](const Tensor& x) { return is_signed(x.dtype()); }).shape_only();
OP("aten::is_conj").impl([](const Tensor&) { return false; });
OP("aten::is_neg").impl([](const Tensor&) { return false; });
OP("aten::is_same_size").impl([](const Tensor& a, const Tensor& b) { return a.sizes() == b.sizes(); });
OP("aten::is_contiguous").impl([](const Tensor& x) { return x.is_contiguous(); });
OP("aten::is_contiguous.memory_format").impl(is_contiguous_as);

OP("prim::dtype").impl([](const Value& x) { return static_cast<int64_t>(rows_of(x).dtype()); }).shape_only();
OP("prim::device").impl([](const Value& x) { return rows_of(x).device(); }).shape_only();
OP("prim::layout").impl([](const Tensor&) { return int64_t{0}; }).shape_only();
OP("prim::itemsize").impl([](const Tensor& x) { return static_cast<int64_t>(size_of(x.dtype())); }).shape_only();
OP("prim::nbytes")
    .impl([](const Tensor& x) { return x.numel() * static_cast<int64_t>(size_of(x.dtype())); })
    .shape_only();
OP("prim::is_cuda").impl([](const Value& x) { return rows_of(x).device().kind == DeviceKind::kCUDA; }).shape_only();
OP("prim::is_cpu").impl([](const Value& x) { return rows_of(x).device().kind == DeviceKind::kCPU; }).shape_only();
OP("prim::is_nested").impl([](const Value& x) { return as_nested(x) != nullptr; }).shape_only();
OP("prim::is_sparse").impl([](const Tensor&) { return false; }).shape_only();
OP("prim::is_sparse_csr").impl([](const Tensor&) { return false; });
OP("prim::is_mkldnn").impl([](const Tensor&) { return false; }).shape_only();
OP("prim::is_quantized").impl([](const Tensor&) { return false; }).shape_only();
OP("prim::is_meta").impl([](const Tensor&) { return false; }).shape_only();
OP("prim::is_xpu").impl([](const Tensor&) { return false; });
OP("prim::is_mps").impl([](const Tensor&) { return false; });
OP("prim::name").impl([](const Tensor&) { return Value(); });
OP("prim::type").impl([](Device device) { return std::string(name_of(device.kind)); });
OP("prim::index").impl([](Device device) {
  return device.kind == DeviceKind::kCPU ? Value() : Value(int64_t{device.index});
});
OP("aten::device").impl([](const std::string& name) { return parse_device(name); });

OP("aten::item").impl(item).set<ops::ReadsElement>();
OP("aten::Int.Tensor").impl(item_int).set<ops::ReadsElement>();
OP("aten::Float.Tensor").impl(item_float).set<ops::ReadsElement>();
OP("aten::Bool.Tensor").impl(item_bool).set<ops::ReadsElement>();
OP("aten::is_nonzero").impl(item_bool);
OP("aten::IntImplicit").impl(int_implicit).set<ops::ReadsElement>();
OP("aten::FloatImplicit").impl(float_implicit).set<ops::ReadsElement>();
OP("aten::ScalarImplicit").impl(item_implicit).set<ops::ReadsElement>();
OP("prim::NumToTensor.Scalar").impl(number_to_tensor);
OP("prim::NumToTensor.bool").impl([](bool value) { return Tensor::scalar(value); });

}  // namespace
}  // namespace tensord::kernels
