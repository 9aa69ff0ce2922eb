// searchsorted and bucketize: where values belong in sorted sequences.
#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/ops/op.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;
using ops::Scalar;
using ops::TensorMeta;
using OptionalTensor = std::optional<Tensor>;
using OptionalString = std::optional<std::string>;

struct Search {
  Tensor sequences, values;  // the last dimension of `sequences` is sorted
  OptionalTensor sorter;     // of the same shape: the order that sorts them
  bool right = false;        // after equal items, not before
  bool narrow = false;       // int32 results
};

bool is_right(bool right, const OptionalString& side) {
  if (!side) return right;
  check(*side == "left" || *side == "right", "torch.searchsorted(): side can only be 'left' or 'right' but got ",
        *side);
  check(*side == "right" || !right,
        "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True");
  return *side == "right";
}

Search make_search(const Tensor& sequences, const Tensor& values, bool narrow, bool right, const OptionalString& side,
                   const OptionalTensor& sorter) {
  const Dims &have = sequences.sizes(), &want = values.sizes();
  check(!have.empty(), "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension");
  check(!want.empty() || have.size() == 1,
        "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
        "boundaries tensor dim(",
        have.size(), ") and input value's dim(0) numel(1)");
  bool matches = have.size() == 1 || have.size() == want.size();
  for (size_t d = 0; matches && have.size() > 1 && d + 1 < have.size(); ++d) matches = have[d] == want[d];
  check(
      matches,
      "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
      "and input value tensor must match, but we got boundaries tensor ",
      to_string(have), " and input value tensor ", to_string(want));
  for (const Tensor* tensor : {&sequences, &values}) {
    if (tensor->dtype() == DType::kBool) fail_dtype("searchsorted", DType::kBool);
  }
  if (sorter) {
    check(sorter->sizes() == have,
          "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor ",
          to_string(have), "and got sorter tensor ", sorter->sizes());
    check(sorter->dtype() == DType::kInt64,
          "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype ", name_of(sorter->dtype()));
  }
  check(!narrow || have.back() <= std::numeric_limits<int32_t>::max(),
        "torch.searchsorted(): the boundaries are too many for int32 results");
  return {sequences, values, sorter, is_right(right, side), narrow};
}

TensorMeta meta_of(const Search& search) {
  return {search.values.sizes(), search.narrow ? DType::kInt32 : DType::kInt64, {}, search.values.device()};
}

// NaN is larger than everything, so a value that is NaN belongs at the end.
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
  // Values in a row search the same sequence.
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
  // A single value of the same kind takes the sequence's dtype.
  const bool yields = search.values.ndim() == 0 && is_floating(have) >= is_floating(want);
  const DType common = yields ? have : promote_types(have, want);
  if (is_floating(common))
    run_as<double>(search, common, out);
  else
    run_as<int64_t>(search, common, out);
}

Tensor scalar_tensor(const Scalar& value) {
  return value.is_float() ? Tensor::scalar(value.to_double()) : Tensor::scalar(value.to_int());
}

Search make_buckets(const Tensor& values, const Tensor& boundaries, bool narrow, bool right) {
  check(boundaries.ndim() == 1, "boundaries tensor must be 1 dimension, but got dim(", boundaries.ndim(), ")");
  return make_search(boundaries, values, narrow, right, {}, {});
}

OP("aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? "
   "side=None, Tensor? sorter=None) -> Tensor")
    .infer([](const Tensor& sequence, const Tensor& values, bool narrow, bool right, const OptionalString& side,
              const OptionalTensor& sorter) {
      return meta_of(make_search(sequence, values, narrow, right, side, sorter));
    });
KERNEL("aten::searchsorted.Tensor", kCPU,
       [](const KernelContext&, const Tensor& sequence, const Tensor& values, bool narrow, bool right,
          const OptionalString& side, const OptionalTensor& sorter,
          Tensor& out) { run(make_search(sequence, values, narrow, right, side, sorter), out); });
OP("aten::searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? "
   "side=None, Tensor? sorter=None) -> Tensor")
    .infer([](const Tensor& sequence, const Scalar& value, bool narrow, bool right, const OptionalString& side,
              const OptionalTensor& sorter) {
      return meta_of(make_search(sequence, scalar_tensor(value), narrow, right, side, sorter));
    });
KERNEL("aten::searchsorted.Scalar", kCPU,
       [](const KernelContext&, const Tensor& sequence, const Scalar& value, bool narrow, bool right,
          const OptionalString& side, const OptionalTensor& sorter,
          Tensor& out) { run(make_search(sequence, scalar_tensor(value), narrow, right, side, sorter), out); });
OP("aten::bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor")
    .infer([](const Tensor& values, const Tensor& boundaries, bool narrow, bool right) {
      return meta_of(make_buckets(values, boundaries, narrow, right));
    });
KERNEL("aten::bucketize.Tensor", kCPU,
       [](const KernelContext&, const Tensor& values, const Tensor& boundaries, bool narrow, bool right, Tensor& out) {
         run(make_buckets(values, boundaries, narrow, right), out);
       });
OP("aten::bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor")
    .infer([](const Scalar& value, const Tensor& boundaries, bool narrow, bool right) {
      return meta_of(make_buckets(scalar_tensor(value), boundaries, narrow, right));
    });
KERNEL("aten::bucketize.Scalar", kCPU,
       [](const KernelContext&, const Scalar& value, const Tensor& boundaries, bool narrow, bool right, Tensor& out) {
         run(make_buckets(scalar_tensor(value), boundaries, narrow, right), out);
       });

}  // namespace
}  // namespace tensord::kernels
