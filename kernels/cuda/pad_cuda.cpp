// Padding by elements of the tensor itself on a CUDA device, by an index for each padded dimension; its gradient is a
// sum at the same indices.
#include <optional>
#include <string>

#include "core/ops/run.h"
#include "core/tensor/device_copy.h"
#include "kernels/cuda/index.h"
#include "kernels/view/pad.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::KernelContext;
using ops::Scalar;

// The position in x of each position of the padded dimension.
IndexedAccess pad_access(PadMode mode, const Tensor& x, const IntList& pad, const Tensor& padded) {
  IndexedAccess access;
  access.sizes = padded.sizes();
  access.other_strides = padded.strides();
  access.x_strides = x.strides();
  for (int64_t d = x.ndim() - static_cast<int64_t>(pad.size() / 2); d < x.ndim(); ++d) {
    const PadEdges edges = PadEdges::of(pad, d, x.ndim());
    const auto kept = edges.kept_of(x.sizes()[d]);
    const Tensor places = Tensor::empty(Dims{padded.sizes()[d]}, DType::kInt64);
    for (int64_t i = 0; i < padded.sizes()[d]; ++i)
      places.data<int64_t>()[i] = pad_source(mode, i - edges.before, x.sizes()[d], kept);
    Dims strides(padded.sizes().size(), 0);
    strides[static_cast<size_t>(d)] = 1;
    access.x_strides[static_cast<size_t>(d)] = 0;
    access.indices.push_back({places.to(x.device()), strides, x.sizes()[d], x.strides()[d], d});
  }
  return access;
}

template <PadMode kMode>
void pad_mode_cuda(const KernelContext&, const Tensor& x, const IntList& pad, Tensor& out) {
  if (out.numel() != 0) run_indexed_cuda(IndexUse::kRead, x, pad_access(kMode, x, pad, out), out);
}
template <PadMode kMode>
void pad_mode_backward_cuda(const KernelContext&, const Tensor& g, const Tensor&, const IntList& pad, Tensor& out) {
  zero_elements(out);
  if (g.numel() != 0) run_indexed_cuda(IndexUse::kAdd, out, pad_access(kMode, out, pad, g), g);
}
void pad_cuda(const KernelContext& context, const Tensor& x, const IntList& pad, const std::string& mode,
              std::optional<double> value, Tensor& out) {
  if (mode == "reflect") return pad_mode_cuda<PadMode::kReflect>(context, x, pad, out);
  if (mode == "replicate") return pad_mode_cuda<PadMode::kReplicate>(context, x, pad, out);
  if (mode != "constant") return pad_mode_cuda<PadMode::kCircular>(context, x, pad, out);
  static const ops::Op& constant = ops::get_op("aten::constant_pad_nd");
  const ops::Value arguments[] = {x, ops::make_int_list(pad), value.value_or(0.0)};
  constant.kernel(kCUDA)->fill(context, arguments, std::span(&out, 1));
}

IMPL("aten::pad", kCUDA, pad_cuda);
#define PAD_ON_CUDA(NAME, MODE)                    \
  IMPL("aten::" NAME, kCUDA, pad_mode_cuda<MODE>); \
  IMPL("aten::" NAME "_backward", kCUDA, pad_mode_backward_cuda<MODE>)
PAD_ON_CUDA("reflection_pad1d", PadMode::kReflect);
PAD_ON_CUDA("reflection_pad2d", PadMode::kReflect);
PAD_ON_CUDA("reflection_pad3d", PadMode::kReflect);
PAD_ON_CUDA("replication_pad1d", PadMode::kReplicate);
PAD_ON_CUDA("replication_pad2d", PadMode::kReplicate);
PAD_ON_CUDA("replication_pad3d", PadMode::kReplicate);
IMPL("aten::_pad_circular", kCUDA, pad_mode_cuda<PadMode::kCircular>);
IMPL("tensord::_pad_circular_backward", kCUDA, pad_mode_backward_cuda<PadMode::kCircular>);

}  // namespace
}  // namespace tensord::kernels
