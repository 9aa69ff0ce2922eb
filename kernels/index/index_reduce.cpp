// index_reduce: scatter_reduce with one index for each slice. fill_diagonal_, pad_sequence.
#include <algorithm>
#include <array>

#include "core/autograd/variable.h"
#include "core/ops/attributes/written.h"
#include "kernels/expr/compose.h"
#include "ops/factory.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::Scalar;
using ops::WritesInto;

// The index in scatter_reduce's form: one for each element of the source.
Tensor spread_index(const Tensor& target, int64_t dim, const Tensor& index, const Tensor& from) {
  check(from.ndim() == target.ndim() && from.size(dim) == index.numel(), "index_reduce(): Number of indices (",
        index.numel(), ") should be equal to source.size(dim): (", from.ndim() > dim ? from.size(dim) : 0,
        "), for dim: ", dim);
  for (int64_t d = 0; d < target.ndim(); ++d) {
    check(d == dim || from.size(d) == target.size(d),
          "index_reduce(): Source/destination tensor must have same slice shapes. Destination slice shape: ",
          target.sizes(), " at dimension ", dim, " and source slice shape: ", from.sizes(), " at dimension ", d, ".");
  }
  Dims shape(static_cast<size_t>(target.ndim()), 1);
  shape[dim] = index.numel();
  return ops::expand(ops::reshape(compose::to(index, DType::kInt64), shape), from.sizes());
}

// `scatter` is scatter_reduce or its in-place variant.
Tensor index_reduce(const char* scatter, const Tensor& self, int64_t given_dim, const Tensor& index,
                    const Tensor& source, const std::string& reduce, bool include_self) {
  check(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
        "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got ", reduce, ".");
  check(index.ndim() <= 1, "index_reduce(): Index is supposed to be a vector, but got dim: ", index.ndim());
  check(is_integral(index.dtype(), false), "index_reduce(): Expected dtype int32/int64 for index");
  check(self.dtype() == source.dtype(), "index_reduce(): self and source expected to have the same scalar type");
  const Tensor target = self.ndim() == 0 ? ops::unsqueeze(self, 0) : self;
  const Tensor from = source.ndim() == 0 ? ops::unsqueeze(source, 0) : source;
  const int64_t dim = wrap_dim(given_dim, target.ndim());
  const Tensor out =
      ops::call_by_name(scatter, target, dim, spread_index(target, dim, index, from), from, reduce, include_self);
  return self.ndim() == 0 ? ops::squeeze(out, int64_t{0}) : out;
}
OP("aten::index_reduce")
    .impl([](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const std::string& reduce,
             bool include_self) {
      return index_reduce("aten::scatter_reduce.two", self, dim, index, source, reduce, include_self);
    })
    .composite()
    .set<WritesInto>(WritesInto::kAnyDType, WritesInto::kSharesNothing);
OP("aten::index_reduce_")
    .impl([](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const std::string& reduce,
             bool include_self) {
      ops::check_no_internal_overlap(self);
      ops::check_apart(ops::get_op("aten::index_reduce"), self, std::array<ops::Value, 2>{index, source});
      // The gradient reads the values from before the call.
      if (is_grad_enabled() && (autograd::requires_grad(self) || autograd::requires_grad(source)))
        return ops::copy_(
            self, index_reduce("aten::scatter_reduce.two", ops::clone(self), dim, index, source, reduce, include_self));
      index_reduce("aten::scatter_reduce_.two", self, dim, index, source, reduce, include_self);
      return self;
    })
    .composite();

// In tall matrices `wrap` starts the diagonal again below its end.
Tensor fill_diagonal(const Tensor& x, const Scalar& value, bool wrap) {
  check(x.ndim() >= 2, "dimensions must larger than 1");
  for (int64_t d = 1; x.ndim() > 2 && d < x.ndim(); ++d) {
    check(x.size(d) == x.size(0), "all dimensions of input must be of equal length");
  }
  const int64_t shortest = *std::min_element(x.sizes().begin(), x.sizes().end());
  int64_t step = 0;
  for (const int64_t stride : x.strides()) step += stride;
  ops::fill_(ops::as_strided(x, Dims{shortest}, Dims{step}, x.offset()), value);
  if (wrap && x.size(0) > x.size(1) + 1) {
    const int64_t columns = x.size(1), rest = (x.numel() + columns) / (columns + 1) - shortest;
    const int64_t first = x.offset() + x.stride(0) * (columns + 1);
    ops::fill_(ops::as_strided(x, Dims{rest}, Dims{step}, first), value);
  }
  return x;
}
OP("aten::fill_diagonal_").impl(fill_diagonal).composite();

// The padding side is new in PyTorch 2.6.
OP("aten::pad_sequence")
    .impl([](const std::vector<Tensor>& sequences, bool batch_first, double padding, const std::string& side) {
      check(!sequences.empty(), "received an empty list of sequences");
      check(side == "left" || side == "right", "Expected padding_side to be one of left or right, but got ", side, ".");
      const auto count = static_cast<int64_t>(sequences.size());
      int64_t longest = 0;
      for (const Tensor& x : sequences) {
        check(x.ndim() > 0, "pad_sequence: expected sequences of at least one dimension");
        longest = std::max(longest, x.size(0));
      }
      Dims sizes = batch_first ? Dims{count, longest} : Dims{longest, count};
      for (int64_t d = 1; d < sequences[0].ndim(); ++d) sizes.push_back(sequences[0].size(d));
      const Tensor out =
          ops::full(sizes, Scalar(padding), {.dtype = sequences[0].dtype(), .device = sequences[0].device()});
      for (int64_t i = 0; i < count; ++i) {
        const int64_t length = sequences[i].size(0), begin = side == "left" ? longest - length : 0;
        const Tensor row = ops::narrow(ops::select(out, batch_first ? 0 : 1, i), 0, begin, length);
        ops::copy_(row, sequences[i]);
      }
      return out;
    })
    .composite();

}  // namespace
}  // namespace tensord::kernels
