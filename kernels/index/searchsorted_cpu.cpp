// The loops of searchsorted and bucketize.
#include "kernels/index/searchsorted.h"

#include "core/base/parallel.h"
#include "core/ops/op.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;
using ops::Scalar;
using OptionalTensor = std::optional<Tensor>;
using OptionalString = std::optional<std::string>;

// NaN is larger than everything, so a NaN belongs at the end.
template <class T>
int64_t position(const T* items, const int64_t* order, int64_t count, T value, bool right) {
  int64_t begin = 0, end = count;
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    const T item = items[order ? order[middle] : middle];
    if (right ? !(item > value) : !(item >= value))
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

template <class T>
void run_as(const Search& search, DType common, Tensor& out) {
  const Tensor sequences = search.sequences.to(common).to(dtype_of<T>).contiguous();
  const Tensor values = search.values.to(common).to(dtype_of<T>).contiguous();
  const Tensor sorter = search.sorter ? search.sorter->contiguous() : Tensor();
  const int64_t length = sequences.sizes().back();
  const int64_t* order = sorter ? sorter.data<int64_t>() : nullptr;
  for (int64_t i = 0; order && i < sorter.numel(); ++i)
    check(order[i] >= 0 && order[i] < length, "torch.searchsorted(): sorter index out of range");
  // The values of a row search the same sequence.
  const bool is_shared = sequences.ndim() == 1;
  const int64_t row = is_shared ? values.numel() : values.sizes().back();
  const auto find = [&]<class R>(R* to) {
    parallel_for_cost(values.numel(), 20, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t start = is_shared ? 0 : i / row * length;
        to[i] = static_cast<R>(position(sequences.data<T>() + start, order ? order + start : nullptr, length,
                                        values.data<T>()[i], search.right));
      }
    });
  };
  if (search.narrow)
    find(out.data<int32_t>());
  else
    find(out.data<int64_t>());
}

void run(const Search& search, Tensor& out) {
  if (out.numel() == 0) return;
  const DType have = search.sequences.dtype(), want = search.values.dtype();
  // A single value of the same category takes the sequence's dtype.
  const bool yields = search.values.ndim() == 0 && is_floating(have) >= is_floating(want);
  const DType common = yields ? have : promote_types(have, want);
  if (is_floating(common))
    run_as<double>(search, common, out);
  else
    run_as<int64_t>(search, common, out);
}

IMPL("aten::searchsorted.Tensor", kCPU,
     [](const KernelContext&, const Tensor& sequence, const Tensor& values, bool narrow, bool right,
        const OptionalString& side, const OptionalTensor& sorter,
        Tensor& out) { run(make_search(sequence, values, narrow, right, side, sorter), out); });
IMPL("aten::searchsorted.Scalar", kCPU,
     [](const KernelContext&, const Tensor& sequence, const Scalar& value, bool narrow, bool right,
        const OptionalString& side, const OptionalTensor& sorter,
        Tensor& out) { run(make_search(sequence, search_scalar(value), narrow, right, side, sorter), out); });
IMPL("aten::bucketize.Tensor", kCPU,
     [](const KernelContext&, const Tensor& values, const Tensor& boundaries, bool narrow, bool right, Tensor& out) {
       run(make_buckets(values, boundaries, narrow, right), out);
     });
IMPL("aten::bucketize.Scalar", kCPU,
     [](const KernelContext&, const Scalar& value, const Tensor& boundaries, bool narrow, bool right, Tensor& out) {
       run(make_buckets(search_scalar(value), boundaries, narrow, right), out);
     });

}  // namespace
}  // namespace tensord::kernels
