// Packed convolution: channels_last inside, weights reordered once for each order that oneDNN asks
// for, batch norm folded into them, activations and a residual sum done by the primitive.
#include "kernels/packed_conv.h"

#include <dnnl.hpp>

#include "core/base/parallel.h"
#include "kernels/conv_onednn.h"
#include "kernels/packed_plan.h"

namespace tensord::kernels {
namespace {

using ops::BoundCall;
using ops::PackedOp;

// Strides of memory order N, spatial…, C, for one spatial dimension too.
Dims last_strides(const Dims& sizes) {
  if (sizes.size() > 3) return channels_last_strides(sizes);
  return Dims{sizes[1] * sizes[2], 1, sizes[1]};
}

bool is_last(const Tensor& t) {
  if (t.ndim() > 3) return t.is_channels_last();
  return t.strides() == last_strides(t.sizes());
}

// The primitive for one input shape, and how operands in planes come in and go out.
struct ConvPlan {
  std::unique_ptr<PackedPlan> conv, to_last, from_last;
};

std::unique_ptr<PackedPlan> reorder_plan(const MemoryDesc& from, const MemoryDesc& to) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::reorder::primitive_desc pd(onednn_engine(), from, onednn_engine(), to, attr);
  return std::make_unique<PackedPlan>(dnnl::reorder(pd), from, to, pd.scratchpad_desc(),
                                      std::pair<MemoryDesc, Tensor>(), std::pair<MemoryDesc, Tensor>());
}

class PackedConv final : public PackedOp {
 public:
  PackedConv(BoundCall call, ConvGeometry geometry, Tensor weight, Tensor bias)
      : PackedOp(std::move(call)), geometry_(std::move(geometry)), weight_(std::move(weight)) {
    epilogues_.bias = std::move(bias);
  }
  // Copies what is constant; the caches start empty.
  PackedConv(const PackedConv& other)
      : PackedOp(other),
        geometry_(other.geometry_),
        weight_(other.weight_),
        epilogues_(other.epilogues_),
        is_channels_last_(other.is_channels_last_) {}

  IntrusivePtr<PackedOp> with(const BoundCall& call, const ops::Epilogue& epilogue) const override {
    auto joined = make_intrusive<PackedConv>(*this);
    if (!joined->epilogues_.join(epilogue, weight_.sizes()[0])) return nullptr;
    joined->extend(*this, call);
    return joined;
  }
  IntrusivePtr<PackedOp> with_channels_last() const override {
    if (geometry_.spatial() < 2) return nullptr;
    auto last = make_intrusive<PackedConv>(*this);
    last->is_channels_last_ = true;
    return last;
  }
  bool is_channels_last() const override { return is_channels_last_; }

 protected:
  std::optional<Tensor> try_run(const Tensor& input, const Tensor& other, bool can_overwrite) const override {
    if (!covers(input)) return std::nullopt;
    const Dims sizes = conv_output_sizes("conv", input.sizes(), weight_.sizes(), geometry_);
    if (other.defined() && !(other.sizes() == sizes && other.dtype() == DType::kFloat32 && other.device() == Device{}))
      return std::nullopt;
    const Tensor x = is_last(input) ? input : input.contiguous();
    const bool is_planes = !is_last(x);
    const auto plan = plans_.get({input.sizes(), is_planes, thread_budget()}, [&] {
      return onednn_call("conv", [&] { return make_plan(input.sizes(), sizes, is_planes); });
    });
    Tensor src = x;
    if (is_planes) {
      src = Tensor::empty_strided(x.sizes(), last_strides(x.sizes()), DType::kFloat32);
      plan->to_last->run(x.raw_data(), src.raw_data());
    }
    const Tensor dst = destination(sizes, other, can_overwrite);
    plan->conv->run(src.raw_data(), dst.raw_data());
    if (is_channels_last_) return dst;
    const Tensor out = Tensor::empty(sizes, DType::kFloat32);
    plan->from_last->run(dst.raw_data(), out.raw_data());
    return out;
  }

 private:
  bool covers(const Tensor& input) const {
    const auto ndim = static_cast<size_t>(input.ndim());
    return input.dtype() == DType::kFloat32 && input.device() == Device{} && ndim == geometry_.spatial() + 2 &&
           input.numel() > 0 && input.sizes()[1] == weight_.sizes()[1] * geometry_.groups;
  }

  // Memory for the result; when a sum is joined it holds the other tensor.
  Tensor destination(const Dims& sizes, const Tensor& other, bool can_overwrite) const {
    const Dims strides = last_strides(sizes);
    if (other.defined() && can_overwrite && other.strides() == strides) return other;
    const Tensor dst = Tensor::empty_strided(sizes, strides, DType::kFloat32);
    if (other.defined()) dst.copy_from(other);
    return dst;
  }

  std::shared_ptr<const ConvPlan> make_plan(const Dims& in, const Dims& out, bool is_planes) const {
    const auto describe = [this](const Tensor& weight) { return conv_weight_desc(weight, geometry_); };
    ConvDescs descs{onednn_desc(in, last_strides(in)),
                    MemoryDesc(describe(weight_).dims(), dnnl::memory::data_type::f32, dnnl::memory::format_tag::any),
                    MemoryDesc(), onednn_desc(out, last_strides(out))};
    const Tensor& bias = epilogues_.bias;
    if (bias.defined()) descs.bias = onednn_desc(bias.sizes(), bias.strides());
    const auto pd = conv_primitive_desc<dnnl::convolution_forward>(
        geometry_, descs, dnnl::algorithm::convolution_direct, epilogues_.attributes());
    const Tensor packed = weights_.get(pd.weights_desc(), weight_, epilogues_.scale, describe);
    auto plan = std::make_shared<ConvPlan>();
    plan->conv = std::make_unique<PackedPlan>(dnnl::convolution_forward(pd), descs.src, descs.dst, pd.scratchpad_desc(),
                                              std::pair(pd.weights_desc(), packed), std::pair(descs.bias, bias));
    if (is_planes) plan->to_last = reorder_plan(onednn_desc(in, contiguous_strides(in)), descs.src);
    if (!is_channels_last_) plan->from_last = reorder_plan(descs.dst, onednn_desc(out, contiguous_strides(out)));
    return plan;
  }

  ConvGeometry geometry_;
  Tensor weight_;  // as the archive has it
  Epilogues epilogues_;
  bool is_channels_last_ = false;
  mutable PackedWeights weights_;
  mutable PlanCache<ConvPlan> plans_;
};

}  // namespace

IntrusivePtr<ops::PackedOp> pack_conv(const ops::Op& op, std::span<const ops::Value> arguments,
                                      ops::Precision precision, const ConvGeometry& geometry) {
  (void)precision;
  if (!arguments[1].is_tensor() || geometry.is_transposed) return nullptr;
  Tensor weight = arguments[1].to_tensor();
  const auto is_plain = [](const Tensor& t) {
    return t.dtype() == DType::kFloat32 && t.device() == Device{} && !t.is_meta();
  };
  if (!is_plain(weight) || static_cast<size_t>(weight.ndim()) != geometry.spatial() + 2 || weight.numel() == 0)
    return nullptr;
  if (geometry.groups <= 0 || weight.sizes()[0] % geometry.groups != 0) return nullptr;
  // Views that leave out or repeat elements are not what oneDNN reads.
  if (!is_non_overlapping_and_dense(weight.sizes(), weight.strides())) weight = weight.contiguous();
  Tensor bias;
  if (arguments[2].is_tensor()) {
    bias = arguments[2].to_tensor();
    if (!is_plain(bias) || bias.ndim() != 1 || bias.numel() != weight.sizes()[0]) return nullptr;
    bias = bias.contiguous();
  }
  return make_intrusive<PackedConv>(BoundCall{&op, {arguments.begin(), arguments.end()}, 0, -1}, geometry, weight,
                                    bias);
}

}  // namespace tensord::kernels
