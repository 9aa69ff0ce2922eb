#include "kernels/onednn/packed_plan.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/base/parallel.h"
#include "kernels/onednn/description.h"

namespace tensord::kernels {

struct PackedPlan::Call {
  dnnl::memory src, dst, weights, bias, scratchpad;
  std::vector<dnnl_exec_arg_t> arguments;
};

PackedPlan::PackedPlan(dnnl::primitive primitive, const MemoryDesc& src, const MemoryDesc& dst,
                       const MemoryDesc& scratchpad, std::pair<MemoryDesc, Tensor> weights,
                       std::pair<MemoryDesc, Tensor> bias)
    : primitive_(std::move(primitive)),
      src_(src),
      dst_(dst),
      scratchpad_(scratchpad),
      weights_(std::move(weights)),
      bias_(std::move(bias)) {}

PackedPlan::~PackedPlan() {
  for (auto& idle : idle_) delete idle.load();
}

std::unique_ptr<PackedPlan::Call> PackedPlan::make_call() const {
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

std::unique_ptr<PackedPlan::Call> PackedPlan::take_call() const {
  for (auto& idle : idle_) {
    if (idle.load(std::memory_order_relaxed) == nullptr) continue;
    if (Call* call = idle.exchange(nullptr, std::memory_order_acquire)) return std::unique_ptr<Call>(call);
  }
  return make_call();
}

void PackedPlan::give_call(std::unique_ptr<Call> call) const {
  Call* const given = call.release();
  for (auto& idle : idle_) {
    Call* none = nullptr;
    if (idle.compare_exchange_strong(none, given, std::memory_order_release, std::memory_order_relaxed)) return;
  }
  call.reset(given);
}

void PackedPlan::run(const void* src, void* dst) const {
  Tensor scratch;
  if (scratch_bytes() > 0) scratch = Tensor::empty(Dims{static_cast<int64_t>(scratch_bytes())}, DType::kUInt8);
  run(src, dst, scratch.defined() ? scratch.raw_data() : nullptr);
}

void PackedPlan::run(const void* src, void* dst, void* scratch) const {
  std::unique_ptr<Call> call = take_call();
  call->src.set_data_handle(const_cast<void*>(src));
  call->dst.set_data_handle(dst);
  if (call->scratchpad) call->scratchpad.set_data_handle(scratch);
  const dnnl_status_t status = dnnl_primitive_execute(primitive_.get(), onednn_stream().get(),
                                                      static_cast<int>(call->arguments.size()), call->arguments.data());
  give_call(std::move(call));
  check_internal(status == dnnl_success, "a packed primitive failed with status ", static_cast<int>(status));
}

namespace {

// The weight's rows (dimension 0), multiplied by scale.
Tensor scaled_rows(const Tensor& weight, const Tensor& scale) {
  const Tensor source = weight.contiguous();
  Tensor out = Tensor::empty(source.sizes(), DType::kFloat32);
  const int64_t rows = out.sizes()[0], row = out.numel() / std::max<int64_t>(rows, 1);
  const float* from = source.data<float>();
  const float* by = scale.data<float>();
  float* to = out.data<float>();
  parallel_for_cost(rows, 0.5 * static_cast<double>(row), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t i = r * row; i < (r + 1) * row; ++i) to[i] = from[i] * by[r];
    }
  });
  return out;
}

}  // namespace

Tensor onednn_weight(ops::PackStore* store, const MemoryDesc& packed, const Tensor& weight, const Tensor& scale,
                     const std::function<MemoryDesc(const Tensor&)>& describe) {
  const auto make = [&] {
    const Tensor source = scale.defined() ? scaled_rows(weight, scale) : weight;
    Tensor result;
    dnnl::memory from = onednn_memory(describe(source), source.raw_data()), to = onednn_allocate(packed, result);
    dnnl::reorder(from, to).execute(onednn_stream(), from, to);
    return std::make_shared<const Tensor>(std::move(result));
  };
  if (!store) return *make();
  const Tensor of[] = {weight, scale};
  return *store->get<Tensor>("onednn " + onednn_key(packed), of, make);
}

bool Epilogues::join(const ops::Epilogue& next, int64_t channels) {
  using Kind = EpilogueStep::Kind;
  if (next.kind == ops::Epilogue::Kind::kChannelAffine) {
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
  const std::optional<EpilogueStep> step = epilogue_step_of(next);
  if (!step) return false;
  if (step->kind == Kind::kAdd) {
    if (has_add || !steps.empty()) return false;
    return has_add = true;
  }
  // oneDNN 2.6's vector code gives two post-ops of the same algorithm the parameters of the first.
  if (std::any_of(steps.begin(), steps.end(), [&](const EpilogueStep& e) { return e.kind == step->kind; }))
    return false;
  constexpr size_t kMaxSteps = 3;
  if (steps.size() >= kMaxSteps) return false;
  steps.push_back(*step);
  return true;
}

size_t Epilogues::onednn_steps() const {
  using Kind = EpilogueStep::Kind;
#ifdef __aarch64__
  constexpr bool has_sigmoid = false, has_tanh = false;  // oneDNN's lose a NaN there
#else
  // On processors without AVX2, oneDNN's sigmoid turns NaN into 0.
  static const bool has_sigmoid = [] {
    const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
    return isa != dnnl::cpu_isa::sse41 && isa != dnnl::cpu_isa::avx;
  }();
  constexpr bool has_tanh = true;
#endif
  const auto is_ours = [](const EpilogueStep& step) {
    return step.kind == Kind::kRelu || step.kind == Kind::kClip || step.kind == Kind::kHardSigmoid ||
           (step.kind == Kind::kSigmoid && !has_sigmoid) || (step.kind == Kind::kTanh && !has_tanh);
  };
  return static_cast<size_t>(std::find_if(steps.begin(), steps.end(), is_ours) - steps.begin());
}

dnnl::primitive_attr Epilogues::attributes() const {
  using Kind = EpilogueStep::Kind;
  using A = dnnl::algorithm;
  dnnl::post_ops post;
  if (has_add) post.append_sum(1.0f);
  const auto add = [&](A algorithm, double alpha = 0, double beta = 0) {
    onednn_append(post, algorithm, static_cast<float>(alpha), static_cast<float>(beta));
  };
  for (const EpilogueStep& e : std::span(steps).first(onednn_steps())) {
    switch (e.kind) {
      case Kind::kLinear: add(A::eltwise_linear, e.alpha, e.beta); break;
      case Kind::kSigmoid: add(A::eltwise_logistic); break;
      case Kind::kTanh: add(A::eltwise_tanh); break;
      case Kind::kGelu: add(A::eltwise_gelu_erf); break;
      case Kind::kGeluTanh: add(A::eltwise_gelu_tanh); break;
      case Kind::kSilu: add(A::eltwise_swish, 1); break;
      case Kind::kHardSwish: add(A::eltwise_hardswish, 1.0 / 6, 0.5); break;
      case Kind::kElu: add(A::eltwise_elu, e.alpha); break;
      case Kind::kRelu:
      case Kind::kClip:
      case Kind::kHardSigmoid:
      case Kind::kAdd: break;
    }
  }
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr.set_post_ops(post);
  return attr;
}

}  // namespace tensord::kernels
