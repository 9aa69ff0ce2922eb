#include "kernels/packed_plan.h"

#include <algorithm>
#include <limits>

namespace tensord::kernels {

struct PackedPlan::Call {
  dnnl::memory src, dst, weights, bias, scratchpad;
  std::vector<dnnl_exec_arg_t> arguments;
};

PackedPlan::PackedPlan(dnnl::primitive primitive, MemoryDesc src, MemoryDesc dst, MemoryDesc scratchpad,
                       std::pair<MemoryDesc, Tensor> weights, std::pair<MemoryDesc, Tensor> bias)
    : primitive_(std::move(primitive)),
      src_(std::move(src)),
      dst_(std::move(dst)),
      scratchpad_(std::move(scratchpad)),
      weights_(std::move(weights)),
      bias_(std::move(bias)) {}

PackedPlan::~PackedPlan() = default;

std::unique_ptr<PackedPlan::Call> PackedPlan::take_call() const {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto call = std::move(idle_.back());
      idle_.pop_back();
      return call;
    }
  }
  auto call = std::make_unique<Call>();
  const auto add = [&](int argument, dnnl::memory& memory, const MemoryDesc& desc, void* data) {
    memory = dnnl::memory(desc, onednn_engine(), data);
    call->arguments.push_back({argument, memory.get()});
  };
  add(DNNL_ARG_SRC, call->src, src_, nullptr);
  add(DNNL_ARG_DST, call->dst, dst_, nullptr);
  if (weights_.second.defined()) add(DNNL_ARG_WEIGHTS, call->weights, weights_.first, weights_.second.raw_data());
  if (bias_.second.defined()) add(DNNL_ARG_BIAS, call->bias, bias_.first, bias_.second.raw_data());
  if (scratchpad_.get_size() > 0) add(DNNL_ARG_SCRATCHPAD, call->scratchpad, scratchpad_, nullptr);
  return call;
}

void PackedPlan::run(const void* src, void* dst) const {
  std::unique_ptr<Call> call = take_call();
  Tensor scratch;
  call->src.set_data_handle(const_cast<void*>(src));
  call->dst.set_data_handle(dst);
  if (call->scratchpad) {
    scratch = Tensor::empty(Dims{static_cast<int64_t>(scratchpad_.get_size())}, DType::kUInt8);
    call->scratchpad.set_data_handle(scratch.raw_data());
  }
  const dnnl_status_t status = dnnl_primitive_execute(primitive_.get(), onednn_stream().get(),
                                                      static_cast<int>(call->arguments.size()), call->arguments.data());
  check_internal(status == dnnl_success, "a packed primitive failed with status ", static_cast<int>(status));
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(call));
}

namespace {

// The weight's rows (dimension 0) times scale.
Tensor scaled_rows(const Tensor& weight, const Tensor& scale) {
  Tensor out = weight.clone();
  const int64_t rows = out.sizes()[0], row = out.numel() / std::max<int64_t>(rows, 1);
  for (int64_t r = 0; r < rows; ++r) {
    float* p = out.data<float>() + r * row;
    for (int64_t i = 0; i < row; ++i) p[i] *= scale.data<float>()[r];
  }
  return out;
}

}  // namespace

Tensor PackedWeights::get(const MemoryDesc& packed, const Tensor& weight, const Tensor& scale,
                          const std::function<MemoryDesc(const Tensor&)>& describe) {
  std::lock_guard lock(mutex_);
  for (const auto& [desc, tensor] : packed_) {
    if (desc == packed) return tensor;
  }
  const Tensor source = scale.defined() ? scaled_rows(weight, scale) : weight;
  Tensor result;
  dnnl::memory from = onednn_memory(describe(source), source.raw_data()), to = onednn_allocate(packed, result);
  dnnl::reorder(from, to).execute(onednn_stream(), from, to);
  packed_.emplace_back(packed, result);
  return result;
}

bool Epilogues::join(const ops::Epilogue& next, int64_t channels) {
  using Kind = ops::EpilogueKind;
  if (next.kind == Kind::kChannelAffine) {
    if (has_add || !steps.empty() || next.scale.numel() != channels || next.shift.numel() != channels) return false;
    const Tensor new_scale = Tensor::empty(Dims{channels}, DType::kFloat32),
                 new_bias = Tensor::empty(Dims{channels}, DType::kFloat32);
    for (int64_t c = 0; c < channels; ++c) {
      const float by = next.scale.data<float>()[c];
      new_scale.data<float>()[c] = (scale.defined() ? scale.data<float>()[c] : 1.0f) * by;
      new_bias.data<float>()[c] = (bias.defined() ? bias.data<float>()[c] : 0.0f) * by + next.shift.data<float>()[c];
    }
    scale = new_scale;
    bias = new_bias;
    return true;
  }
  if (next.kind == Kind::kAdd) {
    if (has_add || !steps.empty()) return false;
    return has_add = true;
  }
  constexpr size_t kMostSteps = 3;
  if (steps.size() >= kMostSteps) return false;
  steps.push_back(next);
  return true;
}

dnnl::primitive_attr Epilogues::attributes() const {
  using Kind = ops::EpilogueKind;
  using A = dnnl::algorithm;
  dnnl::post_ops post;
  if (has_add) post.append_sum(1.0f);
  const auto add = [&](A algorithm, double alpha = 0, double beta = 0) {
    post.append_eltwise(1.0f, algorithm, static_cast<float>(alpha), static_cast<float>(beta));
  };
  for (const ops::Epilogue& e : steps) {
    switch (e.kind) {
      case Kind::kRelu: add(A::eltwise_relu, e.alpha); break;
      case Kind::kClip: add(A::eltwise_clip, e.alpha, e.beta); break;
      case Kind::kLinear: add(A::eltwise_linear, e.alpha, e.beta); break;
      case Kind::kSigmoid: add(A::eltwise_logistic); break;
      case Kind::kTanh: add(A::eltwise_tanh); break;
      case Kind::kGelu: add(A::eltwise_gelu_erf); break;
      case Kind::kGeluTanh: add(A::eltwise_gelu_tanh); break;
      case Kind::kSilu: add(A::eltwise_swish, 1); break;
      case Kind::kHardSwish: add(A::eltwise_hardswish); break;
      case Kind::kHardSigmoid:
        add(A::eltwise_linear, 1.0 / 6, 0.5);
        add(A::eltwise_clip, 0, 1);
        break;
      case Kind::kElu: add(A::eltwise_elu, e.alpha); break;
      case Kind::kChannelAffine:
      case Kind::kAdd: break;
    }
  }
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr.set_post_ops(post);
  return attr;
}

}  // namespace tensord::kernels
