// Which elements are in another tensor.
#include <algorithm>

#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "kernels/pointwise/pointwise.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;

template <class T>
void find_in(const Tensor& elements, const Tensor& sorted, bool invert, const Tensor& out) {
  const T* begin = sorted.data<T>();
  const T* end = begin + sorted.numel();
  const T* x = elements.data<T>();
  bool* found = out.data<bool>();
  parallel_for(elements.numel(), 4096, [&](int64_t from, int64_t to) {
    // NOLINTNEXTLINE(misc-redundant-expression)
    for (int64_t i = from; i < to; ++i) found[i] = (x[i] == x[i] && std::binary_search(begin, end, x[i])) != invert;
  });
}

void isin_kernel(const KernelContext&, const Tensor& elements, const Tensor& tests, bool, bool invert, Tensor& out) {
  const DType dtype = promote_operands(std::array{Operand(elements), Operand(tests)});
  const Tensor x = elements.to(dtype).contiguous(), sorted = tests.to(dtype).clone();
  const Tensor found = out.is_contiguous() ? out : Tensor::empty(out.sizes(), DType::kBool);
  dispatch_all(dtype, "isin", [&]<class T>() {
    T* begin = sorted.data<T>();
    // NaN is an element of nothing.
    const auto is_nan = [](T value) { return value != value; };  // NOLINT(misc-redundant-expression)
    T* end = std::remove_if(begin, begin + sorted.numel(), is_nan);
    std::sort(begin, end);
    find_in<T>(x, sorted.as_view(Dims{end - begin}, Dims{1}, sorted.offset()), invert, found);
  });
  if (!found.is_same(out)) out.copy_from(found);
}
IMPL("aten::isin.Tensor_Tensor", kCPU, isin_kernel);

}  // namespace
}  // namespace tensord::kernels
