#include "core/tensor/complex.h"

namespace tensord {

DType real_dtype(DType dtype) {
  if (dtype == DType::kComplex64) return DType::kFloat32;
  return dtype == DType::kComplex128 ? DType::kFloat64 : dtype;
}

DType complex_dtype(DType dtype) {
  if (is_complex(dtype)) return dtype;
  return dtype == DType::kFloat64 ? DType::kComplex128 : DType::kComplex64;
}

std::complex<double> item_complex(const Tensor& tensor) {
  if (!is_complex(tensor.dtype())) return tensor.item_double();
  check(tensor.numel() == 1, "a Tensor with ", tensor.numel(), " elements cannot be converted to Scalar");
  check(!tensor.is_meta(), "the element of a meta tensor is not known");
  const Tensor on_host = tensor.to(Device{});
  return dispatch_complex(tensor.dtype(), "item", [&]<class T>() { return std::complex<double>(*on_host.data<T>()); });
}

namespace {

// Views the same memory (of a meta tensor: the memory it stands for) with another dtype.
Tensor reinterpret(const Tensor& x, Dims sizes, Dims strides, int64_t offset, DType dtype) {
  Tensor out = x.as_view(std::move(sizes), std::move(strides), offset);
  out.impl()->dtype = dtype;
  return out;
}

}  // namespace

Tensor as_real_pairs(const Tensor& complex) {
  check(is_complex(complex.dtype()), "view_as_real is only supported for complex tensors");
  Dims sizes = complex.sizes(), strides = complex.strides();
  for (int64_t& stride : strides) stride *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  return reinterpret(complex, std::move(sizes), std::move(strides), complex.offset() * 2, real_dtype(complex.dtype()));
}

Tensor as_complex(const Tensor& pairs) {
  const DType dtype = pairs.dtype();
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64) {
    fail(ErrorCode::kUnimplemented,
         "view_as_complex is only supported for float and double tensors, but got a tensor of ", name_of(dtype));
  }
  check(pairs.ndim() != 0, "Input tensor must have one or more dimensions");
  check(pairs.sizes().back() == 2, "Tensor must have a last dimension of size 2");
  check(pairs.strides().back() == 1, "Tensor must have a last dimension with stride 1");
  const size_t last = pairs.sizes().size() - 1;
  Dims sizes(pairs.sizes().span().first(last)), strides(pairs.strides().span().first(last));
  for (int64_t& stride : strides) {
    check(stride % 2 == 0, "Tensor must have a stride divisible by 2 for all but last dimension");
    stride /= 2;
  }
  check(pairs.offset() % 2 == 0, "Tensor must have a storage_offset divisible by 2");
  return reinterpret(pairs, std::move(sizes), std::move(strides), pairs.offset() / 2, complex_dtype(dtype));
}

}  // namespace tensord
