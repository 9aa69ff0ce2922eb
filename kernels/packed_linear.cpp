// Packed linear: oneDNN's inner product with weights reordered for it, activations and a residual
// sum done by the primitive. One row is bound by reading the weights, so it uses our own gemv on
// the weights as they lie.
#include "kernels/packed_linear.h"

#include <cstring>
#include <dnnl.hpp>

#include "core/base/parallel.h"
#include "kernels/gemm.h"
#include "kernels/packed_plan.h"

namespace tensord::kernels {
namespace {

using ops::BoundCall;
using ops::PackedOp;

// A plan over contiguous memory. A residual sum adds to what the output holds, so the other
// tensor goes there first.
class PreparedLinear final : public ops::PreparedCall {
 public:
  PreparedLinear(std::shared_ptr<const PackedPlan> plan, bool has_other, size_t output_bytes)
      : plan_(std::move(plan)), has_other_(has_other), output_bytes_(output_bytes) {}

  void run(const ops::KernelContext&, const ops::PreparedRun& memory) const override {
    if (has_other_ && memory.inputs[1] != memory.outputs[0])
      std::memcpy(memory.outputs[0], memory.inputs[1], output_bytes_);
    plan_->run(memory.inputs[0], memory.outputs[0]);
  }

 private:
  std::shared_ptr<const PackedPlan> plan_;
  bool has_other_;
  size_t output_bytes_;
};

class PackedLinear final : public PackedOp {
 public:
  PackedLinear(BoundCall call, Tensor weight, Tensor bias)
      : PackedOp(std::move(call)), weight_(std::move(weight)), bias_(std::move(bias)) {
    epilogues_.bias = bias_;
  }
  // Copies what is constant; the caches start empty.
  PackedLinear(const PackedLinear& other)
      : PackedOp(other), weight_(other.weight_), bias_(other.bias_), epilogues_(other.epilogues_) {}

  IntrusivePtr<PackedOp> with(const BoundCall& call, const ops::Epilogue& epilogue) const override {
    auto joined = make_intrusive<PackedLinear>(*this);
    if (!joined->epilogues_.join(epilogue, weight_.sizes()[0])) return nullptr;
    joined->extend(*this, call);
    return joined;
  }
  IntrusivePtr<PackedOp> with_channels_last() const override { return nullptr; }
  bool is_channels_last() const override { return false; }

  std::unique_ptr<ops::PreparedCall> prepare(const Tensor& input, const Tensor& other,
                                             const ops::PrepareArgs& args) const override {
    if (!covers(input, other) || !input.is_contiguous() || !args.outputs[0].is_contiguous() ||
        (other.defined() && !other.is_contiguous())) {
      return nullptr;
    }
    const int64_t outputs = weight_.sizes()[0], features = weight_.sizes()[1], rows = input.numel() / features;
    const auto plan = plans_.get({Dims{rows}, 0, args.threads},
                                 [&] { return onednn_call("linear", [&] { return make_plan(rows); }); });
    auto call = std::make_unique<PreparedLinear>(plan, other.defined(), args.outputs[0].size_bytes());
    call->may_overwrite = other.defined() ? 2 : 0;
    const auto m = static_cast<double>(rows), n = static_cast<double>(outputs), k = static_cast<double>(features);
    call->cost = {2 * m * n * k, 4 * (m * k + n * k + m * n * (other.defined() ? 2 : 1))};
    for (const BoundCall& bound : calls()) call->label += (call->label.empty() ? "" : "+") + short_name(bound);
    call->variant = "onednn";
    return call;
  }

 protected:
  std::optional<Tensor> try_run(const Tensor& input, const Tensor& other, bool can_overwrite) const override {
    if (!covers(input, other)) return std::nullopt;
    const int64_t outputs = weight_.sizes()[0], features = weight_.sizes()[1];
    Dims sizes = input.sizes();
    sizes.back() = outputs;
    const Tensor x = input.contiguous();
    const int64_t rows = x.numel() / features;
    if (rows == 1 && weight_.strides()[1] == 1) return run_calls(1, single_row(x, sizes), other);
    const auto plan = plans_.get({Dims{rows}, 0, thread_budget()},
                                 [&] { return onednn_call("linear", [&] { return make_plan(rows); }); });
    Tensor out = other;
    if (!other.defined() || !can_overwrite || !other.is_contiguous()) {
      out = Tensor::empty(sizes, DType::kFloat32);
      if (other.defined()) out.copy_from(other);
    }
    plan->run(x.raw_data(), out.raw_data());
    return out;
  }

 private:
  static std::string short_name(const BoundCall& call) {
    const std::string& name = call.op->schema.name;
    const std::string base = name.substr(name.find("::") + 2);
    return base.substr(0, base.find('.'));
  }

  bool covers(const Tensor& input, const Tensor& other) const {
    const auto is_f32 = [](const Tensor& t) { return t.dtype() == DType::kFloat32 && t.device() == Device{}; };
    if (!is_f32(input) || input.ndim() < 1 || input.sizes().back() != weight_.sizes()[1] || input.numel() == 0)
      return false;
    // A folded batch norm has its channels along dimension 1.
    if (epilogues_.scale.defined() && input.ndim() != 2) return false;
    Dims sizes = input.sizes();
    sizes.back() = weight_.sizes()[0];
    return !other.defined() || (other.sizes() == sizes && is_f32(other));
  }

  Tensor single_row(const Tensor& x, const Dims& sizes) const {
    const Tensor out = Tensor::empty(sizes, DType::kFloat32);
    float* y = out.data<float>();
    gemv_rows(weight_.data<float>(), weight_.strides()[0], x.data<float>(), y, weight_.sizes()[0], weight_.sizes()[1]);
    if (bias_.defined()) {
      const float* b = bias_.data<float>();
      for (int64_t i = 0; i < out.numel(); ++i) y[i] += b[i];
    }
    return out;
  }

  std::shared_ptr<const PackedPlan> make_plan(int64_t rows) const {
    const int64_t outputs = weight_.sizes()[0], features = weight_.sizes()[1];
    const auto describe = [](const Tensor& weight) { return onednn_desc(weight.sizes(), weight.strides()); };
    const MemoryDesc src = onednn_desc(Dims{rows, features}, Dims{features, 1}),
                     dst = onednn_desc(Dims{rows, outputs}, Dims{outputs, 1});
    const Tensor& bias = epilogues_.bias;
    const MemoryDesc bias_desc = bias.defined() ? describe(bias) : MemoryDesc();
    using Primitive = dnnl::inner_product_forward;
    const auto kind = dnnl::prop_kind::forward_inference;
    const Primitive::desc desc = bias.defined()
                                     ? Primitive::desc(kind, src, onednn_any(weight_.sizes()), bias_desc, dst)
                                     : Primitive::desc(kind, src, onednn_any(weight_.sizes()), dst);
    const Primitive::primitive_desc pd(desc, epilogues_.attributes(), onednn_engine());
    const Tensor packed = weights_.get(pd.weights_desc(), weight_, epilogues_.scale, describe);
    return std::make_shared<PackedPlan>(Primitive(pd), src, dst, pd.scratchpad_desc(),
                                        std::pair(pd.weights_desc(), packed), std::pair(bias_desc, bias));
  }

  Tensor weight_;  // as the archive has it
  Tensor bias_;    // of the linear itself, or undefined
  Epilogues epilogues_;
  mutable PackedWeights weights_;
  mutable PlanCache<PackedPlan> plans_;
};

bool is_plain(const Tensor& t) { return t.dtype() == DType::kFloat32 && t.device() == Device{} && !t.is_meta(); }

// Views that leave out or repeat elements are not what oneDNN reads.
Tensor as_dense(const Tensor& t) { return is_non_overlapping_and_dense(t.sizes(), t.strides()) ? t : t.contiguous(); }

}  // namespace

IntrusivePtr<ops::PackedOp> pack_linear(const ops::Op& op, std::span<const ops::Value> arguments,
                                        ops::Precision precision) {
  (void)precision;
  if (!arguments[1].is_tensor()) return nullptr;
  const Tensor& weight = arguments[1].to_tensor();
  if (!is_plain(weight) || weight.ndim() != 2 || weight.numel() == 0) return nullptr;
  Tensor bias;
  if (arguments[2].is_tensor()) {
    bias = arguments[2].to_tensor();
    if (!is_plain(bias) || bias.ndim() != 1 || bias.numel() != weight.sizes()[0]) return nullptr;
    bias = bias.contiguous();
  }
  return make_intrusive<PackedLinear>(BoundCall{&op, {arguments.begin(), arguments.end()}, 0, -1}, as_dense(weight),
                                      bias);
}

IntrusivePtr<ops::PackedOp> pack_matmul(const ops::Op& op, std::span<const ops::Value> arguments,
                                        ops::Precision precision) {
  (void)precision;
  if (!arguments[1].is_tensor()) return nullptr;
  const Tensor& right = arguments[1].to_tensor();
  if (!is_plain(right) || right.ndim() != 2 || right.numel() == 0) return nullptr;
  const Tensor weight = right.as_view(Dims{right.sizes()[1], right.sizes()[0]},
                                      Dims{right.strides()[1], right.strides()[0]}, right.offset());
  return make_intrusive<PackedLinear>(BoundCall{&op, {arguments.begin(), arguments.end()}, 0, -1}, as_dense(weight),
                                      Tensor());
}

}  // namespace tensord::kernels
