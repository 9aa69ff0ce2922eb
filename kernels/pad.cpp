#include <algorithm>

#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "core/tensor/strided_copy.h"
#include "kernels/index.h"
#include "kernels/view.h"

// Padding: constant, reflected, replicated or wrapped around.
namespace tensord::kernels {
namespace {

using ops::KernelContext;
using ops::Scalar;
using ops::TensorMeta;

// Padding of dimension d: pairs come for the last dimension first.
struct Edges {
  int64_t before = 0, after = 0;
};
Edges edges_of(const IntList& pad, int64_t d, int64_t ndim) {
  const auto pair = static_cast<size_t>(ndim - 1 - d);
  if (2 * pair >= pad.size()) return {};
  return {pad[2 * pair], pad[2 * pair + 1]};
}

TensorMeta padded_meta(const Tensor& x, const IntList& pad) {
  Dims sizes = x.sizes();
  for (int64_t d = 0; d < x.ndim(); ++d) {
    const Edges edges = edges_of(pad, d, x.ndim());
    int64_t size = sizes[d];
    const bool fits =
        !__builtin_add_overflow(size, edges.before, &size) && !__builtin_add_overflow(size, edges.after, &size);
    check(fits && size >= 0, "The input size ", x.sizes()[d], ", plus negative padding ", edges.before, " and ",
          edges.after, " resulted in a negative output size, which is invalid. Check dimension ", d, " of your input.");
    sizes[d] = size;
  }
  const bool channels_last = x.is_channels_last() && !x.is_contiguous();
  Dims strides = channels_last ? channels_last_strides(sizes) : Dims();
  return {std::move(sizes), x.dtype(), std::move(strides), x.device()};
}

TensorMeta constant_meta(const Tensor& x, const IntList& pad, const Scalar&) {
  check(pad.size() % 2 == 0, "Length of pad must be even but instead it equals ", pad.size());
  check(static_cast<int64_t>(pad.size()) <= 2 * x.ndim(),
        "Length of pad should be no more than twice the number of dimensions of the input. Pad length is ", pad.size(),
        "while the input has ", x.ndim(), "dimensions.");
  return padded_meta(x, pad);
}

void constant_kernel(const KernelContext&, const Tensor& x, const IntList& pad, const Scalar& value, Tensor& out) {
  if (out.numel() == 0) return;
  out.copy_from(value.is_float() ? Tensor::scalar(value.to_double()) : Tensor::scalar(value.to_int()));
  // The part of x that stays, at its place in the result; negative padding crops.
  Tensor from = x, to = out;
  for (int64_t d = 0; d < x.ndim(); ++d) {
    const Edges edges = edges_of(pad, d, x.ndim());
    const int64_t skip = std::max<int64_t>(-edges.before, 0), start = std::max<int64_t>(edges.before, 0);
    const int64_t length = std::max<int64_t>(
        0, std::min(x.sizes()[d] - skip - std::max<int64_t>(-edges.after, 0), out.sizes()[d] - start));
    if (length == 0) return;
    from = narrow(from, d, skip, length);
    to = narrow(to, d, start, length);
  }
  strided_copy(to, from);
}

enum class Mode { kReflect, kReplicate, kCircular };

// Where position i of the result (0 = first element of the input) is read.
int64_t source_of(Mode mode, int64_t i, int64_t size) {
  switch (mode) {
    case Mode::kReflect:
      if (i < 0) i = -i;
      return i >= size ? 2 * (size - 1) - i : i;
    case Mode::kReplicate: return std::clamp<int64_t>(i, 0, size - 1);
    default: return i < 0 ? i + size : i >= size ? i - size : i;
  }
}

void check_mode(const Tensor& x, const IntList& pad, Mode mode) {
  check(pad.size() % 2 == 0, "Padding length must be divisible by 2");
  const auto dims = static_cast<int64_t>(pad.size() / 2);
  check(dims >= 1 && dims <= 3 && (x.ndim() == dims + 1 || x.ndim() == dims + 2), "padding of ", pad.size(),
        " values expects a ", dims + 1, "D or ", dims + 2, "D tensor, but got ", to_string(x.sizes()));
  for (int64_t d = x.ndim() - dims; d < x.ndim(); ++d) {
    const Edges edges = edges_of(pad, d, x.ndim());
    const int64_t size = x.sizes()[d];
    check(size > 0, "padding: expected a non-empty dimension ", d, ", but got ", to_string(x.sizes()));
    if (mode == Mode::kReflect) {
      check(edges.before < size && edges.after < size,
            "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (",
            edges.before, ", ", edges.after, ") at dimension ", d, " of input ", to_string(x.sizes()));
    } else if (mode == Mode::kCircular) {
      check(edges.before <= size && edges.after <= size, "Padding value causes wrapping around more than once.");
    }
  }
}

template <Mode kMode>
TensorMeta mode_meta(const Tensor& x, const IntList& pad) {
  check_mode(x, pad, kMode);
  return padded_meta(x, pad);
}

template <Mode kMode>
void mode_kernel(const KernelContext&, const Tensor& x, const IntList& pad, Tensor& out) {
  if (out.numel() == 0) return;
  const auto dims = static_cast<int64_t>(pad.size() / 2), first = x.ndim() - dims;
  // For every position of the padded dimensions the offset in x; the batch dimensions walk outside.
  std::vector<int64_t> source{0};
  for (int64_t d = first; d < x.ndim(); ++d) {
    const Edges edges = edges_of(pad, d, x.ndim());
    std::vector<int64_t> next;
    next.reserve(source.size() * static_cast<size_t>(out.sizes()[d]));
    for (int64_t offset : source) {
      for (int64_t i = 0; i < out.sizes()[d]; ++i) {
        next.push_back(offset + source_of(kMode, i - edges.before, x.sizes()[d]) * x.strides()[d]);
      }
    }
    source = std::move(next);
  }
  const auto leading = static_cast<size_t>(first);
  const auto inner = element_offsets(out.sizes().span().subspan(leading), out.strides().span().subspan(leading));
  const auto from_outer = element_offsets(x.sizes().span().first(leading), x.strides().span().first(leading));
  const auto to_outer = element_offsets(out.sizes().span().first(leading), out.strides().span().first(leading));
  dispatch_width(x.dtype(), [&]<class T>() {
    const T* from = static_cast<const T*>(x.raw_data());
    T* to = static_cast<T*>(out.raw_data());
    parallel_for(static_cast<int64_t>(from_outer.size()),
                 std::max<int64_t>(1, 16384 / static_cast<int64_t>(inner.size())), [&](int64_t begin, int64_t end) {
                   for (int64_t o = begin; o < end; ++o) {
                     for (size_t i = 0; i < inner.size(); ++i)
                       to[to_outer[o] + inner[i]] = from[from_outer[o] + source[i]];
                   }
                 });
  });
}

TensorMeta any_meta(const Tensor& x, const IntList& pad, const std::string& mode, std::optional<double> value) {
  if (mode == "constant") return constant_meta(x, pad, value.value_or(0.0));
  check(!value || *value == 0, "Padding mode \"", mode, "\" doesn't take in value argument");
  if (mode == "reflect") return mode_meta<Mode::kReflect>(x, pad);
  if (mode == "replicate") return mode_meta<Mode::kReplicate>(x, pad);
  if (mode == "circular") return mode_meta<Mode::kCircular>(x, pad);
  fail(ErrorCode::kInvalidArgument, "Unrecognised padding mode ", mode);
}

void any_kernel(const KernelContext& context, const Tensor& x, const IntList& pad, const std::string& mode,
                std::optional<double> value, Tensor& out) {
  if (mode == "constant")
    constant_kernel(context, x, pad, value.value_or(0.0), out);
  else if (mode == "reflect")
    mode_kernel<Mode::kReflect>(context, x, pad, out);
  else if (mode == "replicate")
    mode_kernel<Mode::kReplicate>(context, x, pad, out);
  else
    mode_kernel<Mode::kCircular>(context, x, pad, out);
}

OP("aten::constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor").infer(constant_meta);
KERNEL("aten::constant_pad_nd", kCPU, constant_kernel);
OP("aten::pad(Tensor self, int[] pad, str mode=\"constant\", float? value=None) -> Tensor").infer(any_meta);
KERNEL("aten::pad", kCPU, any_kernel);
#define FIXED_PAD(NAME, COUNT, MODE)                                                          \
  OP("aten::" NAME "(Tensor self, int[" COUNT "] padding) -> Tensor").infer(mode_meta<MODE>); \
  KERNEL("aten::" NAME, kCPU, mode_kernel<MODE>)
FIXED_PAD("reflection_pad1d", "2", Mode::kReflect);
FIXED_PAD("reflection_pad2d", "4", Mode::kReflect);
FIXED_PAD("reflection_pad3d", "6", Mode::kReflect);
FIXED_PAD("replication_pad1d", "2", Mode::kReplicate);
FIXED_PAD("replication_pad2d", "4", Mode::kReplicate);
FIXED_PAD("replication_pad3d", "6", Mode::kReplicate);
OP("aten::_pad_circular(Tensor self, int[] pad) -> Tensor").infer(mode_meta<Mode::kCircular>);
KERNEL("aten::_pad_circular", kCPU, mode_kernel<Mode::kCircular>);

}  // namespace
}  // namespace tensord::kernels
