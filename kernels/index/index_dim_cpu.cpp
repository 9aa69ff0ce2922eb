// On the CPU: writes by indices along one dimension, and take.
#include "core/ops/op.h"
#include "core/tensor/strided_copy.h"
#include "kernels/index/index.h"
#include "kernels/view/view.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;
using ops::Scalar;

// `out` starts as a copy of self, from which the kernel reads, unless it is self already.
void start_from(const Tensor& self, const Tensor& out) {
  if (overlap(self, out) != Overlap::kFull) strided_copy(out, self);
}

// A copy of the indices as int64; int32 and int64 are accepted.
std::vector<int64_t> read_indices(const Tensor& index, const char* op) {
  check(index.dtype() == DType::kInt64 || index.dtype() == DType::kInt32, op,
        "(): Expected dtype int32 or int64 for index");
  const Tensor wide = index.to(DType::kInt64).contiguous();
  return {wide.data<int64_t>(), wide.data<int64_t>() + wide.numel()};
}

void check_indices(const std::vector<int64_t>& indices, int64_t size) {
  for (int64_t i : indices) {
    if (i < 0 || i >= size) [[unlikely]]
      fail(ErrorCode::kOutOfRange, "index out of range in self");
  }
}

void index_add_kernel(const KernelContext&, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                      const Scalar& alpha, Tensor& out) {
  std::vector<int64_t> indices = read_indices(index, "index_add");
  dim = wrap_dim(dim, x.ndim());
  check_indices(indices, x.ndim() == 0 ? 1 : x.sizes()[dim]);
  start_from(x, out);
  if (source.numel() == 0) return;
  dispatch_all(x.dtype(), "index_add", [&]<class T>() {
    const T factor = alpha.to<T>();
    const auto add = [&](const Tensor& to, const Tensor& from) {
      const Tensor dense = from.contiguous();
      const T* value = dense.data<T>();
      T* base = to.data<T>();
      for (int64_t offset : element_offsets(to.sizes(), to.strides()))
        base[offset] = static_cast<T>(base[offset] + *value++ * factor);
    };
    if (x.ndim() == 0) return add(out, source);
    for (size_t i = 0; i < indices.size(); ++i)
      add(select(out, dim, indices[i]), select(source, dim, static_cast<int64_t>(i)));
  });
}

void index_copy_kernel(const KernelContext&, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                       Tensor& out) {
  const std::vector<int64_t> indices = read_indices(index, "index_copy");
  dim = wrap_dim(dim, x.ndim());
  check_indices(indices, x.ndim() == 0 ? 1 : x.sizes()[dim]);
  start_from(x, out);
  if (x.ndim() == 0) return strided_copy(out, source);
  for (size_t i = 0; i < indices.size(); ++i)
    strided_copy(select(out, dim, indices[i]), select(source, dim, static_cast<int64_t>(i)));
}

void index_fill_kernel(const KernelContext&, const Tensor& x, int64_t dim, const Tensor& index, const Scalar& value,
                       Tensor& out) {
  std::vector<int64_t> indices = read_indices(index, "index_fill");
  dim = wrap_dim(dim, x.ndim());
  for (int64_t& i : indices) i = wrap_position(i, x.ndim() == 0 ? 1 : x.sizes()[dim], dim);
  start_from(x, out);
  const Tensor fill = value.is_float() ? Tensor::scalar(value.to_double()) : Tensor::scalar(value.to_int());
  for (const int64_t i : indices) (x.ndim() == 0 ? out : select(out, dim, i)).copy_from(fill);
}

void index_fill_tensor_kernel(const KernelContext& context, const Tensor& x, int64_t dim, const Tensor& index,
                              const Tensor& value, Tensor& out) {
  index_fill_kernel(context, x, dim, index,
                    is_floating(value.dtype()) ? Scalar(value.item_double()) : Scalar(value.item_int()), out);
}

void take_kernel(const KernelContext&, const Tensor& x, const Tensor& index, Tensor& out) {
  const Tensor from = x.contiguous();
  const std::vector<int64_t> indices = read_indices(index, "take");
  dispatch_width(x.dtype(), [&]<class T>() {
    T* to = static_cast<T*>(out.raw_data());
    const T* base = static_cast<const T*>(from.raw_data());
    for (int64_t i : indices) {
      if (i < -x.numel() || i >= x.numel()) {
        fail(ErrorCode::kOutOfRange, "out of range: tried to access index ", i, " on a tensor of ", x.numel(),
             " elements.");
      }
      *to++ = base[i < 0 ? i + x.numel() : i];
    }
  });
}

IMPL("aten::index_add", kCPU, index_add_kernel);
IMPL("aten::index_copy", kCPU, index_copy_kernel);
IMPL("aten::index_fill.int_Scalar", kCPU, index_fill_kernel);
IMPL("aten::index_fill.int_Tensor", kCPU, index_fill_tensor_kernel);
IMPL("aten::take", kCPU, take_kernel);

}  // namespace
}  // namespace tensord::kernels
