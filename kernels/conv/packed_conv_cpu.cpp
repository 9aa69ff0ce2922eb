// Packed convolution: channels_last inside, batch norm folded into the weights, activations and a residual sum applied
// while the results are in registers. A rule chooses the fastest kernel for each shape (kernel.h); weights are
// reordered once for each layout that a kernel asks for.
#include "kernels/conv/packed_conv.h"

#include <cstring>

#include "core/base/thread_budget_scope.h"
#include "kernels/base/packed_half.h"
#include "kernels/conv/kernel.h"
#include "kernels/gemm/packed_gemm_tile.h"

namespace tensord::kernels {

Dims last_strides(const Dims& sizes) {
  if (sizes.size() > 3) return channels_last_strides(sizes);
  return Dims{sizes[1] * sizes[2], 1, sizes[1]};
}

namespace {

using ops::BoundCall;
using ops::PackedOp;

// The memory layout of a tensor of known sizes.
enum class Order : uint8_t { kNone, kLast, kPlanes, kOther };

Order order_of(const Tensor& t) {
  if (!t.defined()) return Order::kNone;
  if (t.ndim() > 3 ? t.is_channels_last() : t.strides() == last_strides(t.sizes())) return Order::kLast;
  return t.is_contiguous() ? Order::kPlanes : Order::kOther;
}

std::unique_ptr<PackedPlan> reorder_plan(const MemoryDesc& from, const MemoryDesc& to) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::reorder::primitive_desc pd(onednn_engine(), from, onednn_engine(), to, attr);
  return std::make_unique<PackedPlan>(dnnl::reorder(pd), from, to, pd.scratchpad_desc(),
                                      std::pair<MemoryDesc, Tensor>(), std::pair<MemoryDesc, Tensor>());
}

std::unique_ptr<PackedPlan> planes_to_last(const Dims& sizes) {
  return reorder_plan(onednn_desc(sizes, contiguous_strides(sizes)), onednn_desc(sizes, last_strides(sizes)));
}

void copy_floats(float* to, const float* from, int64_t count) {
  constexpr double kNsPerFloat = 0.3;
  parallel_for_cost(count, kNsPerFloat, [&](int64_t begin, int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin) * sizeof(float));
  });
}

// The memory of a call's tensors.
struct ConvOrders {
  Order input, other, output;
};

// A kernel, and the conversion of operands to and from channels_last.
class ConvCall final : public ops::PreparedCall {
 public:
  ConvCall(const ConvProblem& problem, ConvOrders orders, std::unique_ptr<ConvKernel> kernel)
      : kernel_(std::move(kernel)), orders_(orders), output_count_(numel(problem.output)) {
    if (orders.input == Order::kPlanes && !kernel_->reads_planes) {
      to_last_ = planes_to_last(problem.input);
      src_at_ = take(static_cast<size_t>(numel(problem.input)));
    }
    if (orders.other == Order::kPlanes) {
      other_to_last_ = planes_to_last(problem.output);
      if (!kernel_->sums_in_place) other_at_ = take(static_cast<size_t>(output_count_));
    }
    if (orders.output == Order::kPlanes) {
      from_last_ = reorder_plan(onednn_desc(problem.output, last_strides(problem.output)),
                                onednn_desc(problem.output, contiguous_strides(problem.output)));
      dst_at_ = take(static_cast<size_t>(output_count_));
    }
    size_t inner = kernel_->scratch_bytes;
    for (const auto* plan : {&to_last_, &other_to_last_, &from_last_}) {
      if (*plan) inner = std::max(inner, (*plan)->scratch_bytes());
    }
    inner_at_ = scratch_bytes;
    scratch_bytes += inner;
    if (orders.other != Order::kNone && orders.other == orders.output) may_overwrite = 2;
    variant = kernel_->variant;
  }

  void run(const ops::KernelContext&, const ops::PreparedRun& memory) const override {
    const auto at = [&](size_t offset) {
      return reinterpret_cast<float*>(static_cast<char*>(memory.scratch) + offset);
    };
    void* inner = static_cast<char*>(memory.scratch) + inner_at_;
    const float* src = static_cast<const float*>(memory.inputs[0]);
    if (to_last_) {
      to_last_->run(src, at(src_at_), inner);
      src = at(src_at_);
    }
    float* dst = from_last_ ? at(dst_at_) : static_cast<float*>(memory.outputs[0]);
    const float* other = orders_.other == Order::kNone ? nullptr : static_cast<const float*>(memory.inputs[1]);
    if (other_to_last_) {
      float* to = kernel_->sums_in_place ? dst : at(other_at_);
      other_to_last_->run(other, to, inner);
      other = to;
    }
    if (kernel_->sums_in_place && other != nullptr && other != dst) copy_floats(dst, other, output_count_);
    kernel_->run(src, other, dst, inner);
    if (from_last_) from_last_->run(dst, memory.outputs[0], inner);
  }

 private:
  static int64_t numel(const Dims& sizes) {
    int64_t count = 1;
    for (const int64_t size : sizes) count *= size;
    return count;
  }
  size_t take(size_t floats) {
    constexpr size_t kAlign = 64;
    const size_t at = scratch_bytes;
    scratch_bytes += (floats * sizeof(float) + kAlign - 1) / kAlign * kAlign;
    return at;
  }

  std::unique_ptr<ConvKernel> kernel_;
  ConvOrders orders_;
  int64_t output_count_;
  std::unique_ptr<PackedPlan> to_last_, other_to_last_, from_last_;
  size_t src_at_ = 0, other_at_ = 0, dst_at_ = 0, inner_at_ = 0;  // in scratch
};

// A kernel that reads and writes bfloat16 itself.
class HalfConvCall final : public ops::PreparedCall {
 public:
  HalfConvCall(std::unique_ptr<ConvKernel> kernel, HalfSteps steps)
      : kernel_(std::move(kernel)), steps_(std::move(steps)) {
    scratch_bytes = *kernel_->halves_scratch_bytes();
    variant = std::string(kernel_->variant) + " of " + std::string(name_of(DType::kBFloat16));
    if (steps_.has_add) may_overwrite = 2;
  }

  void run(const ops::KernelContext&, const ops::PreparedRun& memory) const override {
    HalfEpilogue finish{.has_row_of_scales = steps_.scale.defined(), .low = steps_.low, .high = steps_.high};
    if (steps_.scale.defined()) {
      finish.scale = steps_.scale.data<float>();
      finish.shift = steps_.shift.data<float>();
    }
    if (steps_.has_add) finish.other = memory.inputs[1];
    kernel_->run_halves(static_cast<const BFloat16*>(memory.inputs[0]), finish,
                        static_cast<BFloat16*>(memory.outputs[0]), memory.scratch);
  }

 private:
  std::unique_ptr<ConvKernel> kernel_;
  HalfSteps steps_;
};

class PackedConv final : public PackedOp, public ReadsHalves {
 public:
  PackedConv(const ops::PackArgs& args, ConvGeometry geometry, Tensor weight, Tensor bias)
      : PackedOp(args, 0), geometry_(std::move(geometry)), weight_(std::move(weight)), precision_(args.precision) {
    epilogues_.bias = std::move(bias);
  }
  // Copies the constant parts; the cache of calls starts empty.
  PackedConv(const PackedConv& other)
      : PackedOp(other),
        geometry_(other.geometry_),
        weight_(other.weight_),
        epilogues_(other.epilogues_),
        precision_(other.precision_),
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

  std::unique_ptr<ops::PreparedCall> prepare(const Tensor& input, const Tensor& other,
                                             const ops::PrepareArgs& args) const override {
    if (!covers(input)) return nullptr;
    const Tensor& out = args.outputs[0];
    // When the other tensor of a sum is larger, the convolution's result is repeated.
    if (out.sizes() != conv_output_sizes("conv", input.sizes(), weight_.sizes(), geometry_)) return nullptr;
    if (!covers_other(other, out.sizes())) return nullptr;
    const ConvOrders orders{order_of(input), order_of(other), order_of(out)};
    if (orders.input == Order::kOther || orders.other == Order::kOther || orders.output == Order::kOther)
      return nullptr;
    auto call = make_call(input.sizes(), out.sizes(), orders, args.threads);
    // In place: the input is still read when the first results are written.
    if (is_one_memory(input, other)) call->may_overwrite = 0;
    return call;
  }

  std::unique_ptr<ops::PreparedCall> prepare_halves(const Tensor& input, const Tensor& other,
                                                    const ops::PrepareArgs& args,
                                                    const HalfSteps& steps) const override {
    const Tensor& out = args.outputs[0];
    if (!epilogues_.steps.empty() || epilogues_.has_add || epilogues_.scale.defined()) return nullptr;
    if (static_cast<size_t>(input.ndim()) != geometry_.spatial() + 2 || input.numel() == 0) return nullptr;
    if (input.sizes()[1] != weight_.sizes()[1] * geometry_.groups) return nullptr;
    if (out.sizes() != conv_output_sizes("conv", input.sizes(), weight_.sizes(), geometry_)) return nullptr;
    const auto is_half = [](const Tensor& t) { return t.dtype() == DType::kBFloat16 && t.device() == Device{}; };
    const auto is_half_last = [&](const Tensor& t) { return is_half(t) && order_of(t) == Order::kLast; };
    const bool has_planes = order_of(input) == Order::kPlanes;
    if (!is_half(input) || order_of(input) == Order::kOther) return nullptr;
    if (!is_half_last(out) || (other.defined() && !is_half_last(other))) return nullptr;
    const ThreadBudgetScope budget(args.threads);
    auto kernel = onednn_call(
        "conv", [&] { return make_conv_kernel(problem_of(input.sizes(), out.sizes(), has_planes, args.threads)); });
    if (!kernel->halves_scratch_bytes() || kernel->reads_planes != has_planes) return nullptr;
    if (steps.has_add && !kernel->adds_halves) return nullptr;
    auto call = std::make_unique<HalfConvCall>(std::move(kernel), steps);
    describe(*call, input.sizes(), out.sizes());
    if (is_one_memory(input, other)) call->may_overwrite = 0;
    return call;
  }

 protected:
  std::optional<Tensor> try_run(const Tensor& input, const Tensor& other, bool can_overwrite) const override {
    if (!covers(input)) return std::nullopt;
    const Dims sizes = conv_output_sizes("conv", input.sizes(), weight_.sizes(), geometry_);
    if (!covers_other(other, sizes)) return std::nullopt;
    const auto in_order = [](const Tensor& t) { return order_of(t) == Order::kOther ? t.contiguous() : t; };
    const Tensor x = in_order(input), added = other.defined() ? in_order(other) : Tensor();
    const Order output = is_channels_last_ ? Order::kLast : Order::kPlanes;
    const ConvOrders orders{order_of(x), order_of(added), output};
    const int layout = static_cast<int>(orders.input) * 4 + static_cast<int>(orders.other);
    const auto call = calls_.get({input.sizes(), layout, thread_budget()}, [&]() -> std::shared_ptr<const ConvCall> {
      return make_call(input.sizes(), sizes, orders, thread_budget());
    });
    const bool reuses = can_overwrite && call->may_overwrite != 0 && added.is_same(other);
    Tensor out = reuses              ? other
                 : is_channels_last_ ? Tensor::empty_strided(sizes, last_strides(sizes), DType::kFloat32)
                                     : Tensor::empty(sizes, DType::kFloat32);
    const Tensor scratch = Tensor::empty(Dims{static_cast<int64_t>(call->scratch_bytes)}, DType::kUInt8);
    const void* const inputs[] = {x.raw_data(), added.defined() ? added.raw_data() : nullptr};
    void* const outputs[] = {out.raw_data()};
    call->run(ops::KernelContext{}, {inputs, outputs, scratch.raw_data()});
    return out;
  }

 private:
  bool covers(const Tensor& input) const {
    const auto ndim = static_cast<size_t>(input.ndim());
    return input.dtype() == DType::kFloat32 && input.device() == Device{} && ndim == geometry_.spatial() + 2 &&
           input.numel() > 0 && input.sizes()[1] == weight_.sizes()[1] * geometry_.groups;
  }
  static bool covers_other(const Tensor& other, const Dims& sizes) {
    return !other.defined() ||
           (other.sizes() == sizes && other.dtype() == DType::kFloat32 && other.device() == Device{});
  }

  std::unique_ptr<ConvCall> make_call(const Dims& input, const Dims& output, ConvOrders orders, int threads) const {
    const ThreadBudgetScope budget(threads);  // primitives may be made for another number of threads
    const ConvProblem problem = problem_of(input, output, orders.input == Order::kPlanes, threads);
    auto call =
        onednn_call("conv", [&] { return std::make_unique<ConvCall>(problem, orders, make_conv_kernel(problem)); });
    describe(*call, input, output);
    return call;
  }

  ConvProblem problem_of(const Dims& input, const Dims& output, bool has_planes, int threads) const {
    return {geometry_, weight_, epilogues_, store().get(), input, output, has_planes, threads, precision_};
  }

  void describe(ops::PreparedCall& call, const Dims& input, const Dims& output) const {
    call.cost = cost(input, output);
    for (const BoundCall& step : calls()) {
      const std::string& name = step.op->schema.name;
      call.label += (call.label.empty() ? "" : "+") + name.substr(name.find("::") + 2);
    }
  }

  static bool is_one_memory(const Tensor& input, const Tensor& other) {
    return other.defined() && (other.is_same(input) || (other.alias_id() != 0 && other.alias_id() == input.alias_id()));
  }

  ops::Cost cost(const Dims& input, const Dims& output) const {
    const auto numel = [](const Dims& sizes) {
      double count = 1;
      for (const int64_t size : sizes) count *= static_cast<double>(size);
      return count;
    };
    const double row = static_cast<double>(weight_.numel()) / static_cast<double>(weight_.sizes()[0]);
    const double floats =
        numel(input) + static_cast<double>(weight_.numel()) + numel(output) * (epilogues_.has_add ? 2 : 1);
    return {2 * row * numel(output), floats * sizeof(float)};
  }

  ConvGeometry geometry_;
  Tensor weight_;  // as the archive has it
  Epilogues epilogues_;
  ops::Precision precision_;
  bool is_channels_last_ = false;
  mutable SharedCache<PlanKey, ConvCall> calls_{kMaxPlans};
};

// Computed by a convolution with the weights in float32.
IntrusivePtr<ops::PackedOp> pack_half_conv(const ops::PackArgs& args, const ConvGeometry& geometry) {
  const DType dtype = args.arguments[1].to_tensor().dtype();
  std::vector<ops::Value> wide(args.arguments.begin(), args.arguments.end());
  for (const size_t i : {size_t{1}, size_t{2}}) {
    if (!wide[i].is_tensor()) continue;
    const Tensor& tensor = wide[i].to_tensor();
    const bool is_widened = args.widened >> i & 1;
    const bool fits = args.widened == 0 ? tensor.dtype() == dtype : is_widened || tensor.dtype() == DType::kFloat32;
    if (!fits || tensor.device() != Device{} || tensor.is_meta()) return nullptr;
    wide[i] = tensor.to(DType::kFloat32);
  }
  if (args.widened != 0) return pack_conv({args.op, wide, args.precision, args.store}, geometry);
  // Weights that are bfloat16 already lose nothing in that precision.
  const bool multiplies_halves = dtype == DType::kBFloat16 && !tile_kernels(WordType::kBf16).widens;
  const bool is_kept = multiplies_halves && args.precision == ops::Precision::kF32;
  const ops::Precision precision = is_kept ? ops::Precision::kBf16 : args.precision;
  return pack_half(args, dtype, pack_conv({args.op, wide, precision, args.store}, geometry));
}

}  // namespace

IntrusivePtr<ops::PackedOp> pack_conv(const ops::PackArgs& args, const ConvGeometry& geometry) {
  const auto arguments = args.arguments;
  if (!arguments[1].is_tensor() || geometry.is_transposed) return nullptr;
  Tensor weight = arguments[1].to_tensor();
  if (is_half(weight.dtype())) return pack_half_conv(args, geometry);
  const auto is_plain = [](const Tensor& t) {
    return t.dtype() == DType::kFloat32 && t.device() == Device{} && !t.is_meta();
  };
  if (!is_plain(weight) || static_cast<size_t>(weight.ndim()) != geometry.spatial() + 2 || weight.numel() == 0)
    return nullptr;
  if (geometry.groups <= 0 || weight.sizes()[0] % geometry.groups != 0) return nullptr;
  // oneDNN does not read views that skip or repeat elements.
  if (!is_non_overlapping_and_dense(weight.sizes(), weight.strides())) weight = weight.contiguous();
  Tensor bias;
  if (arguments[2].is_tensor()) {
    bias = arguments[2].to_tensor();
    if (!is_plain(bias) || bias.ndim() != 1 || bias.numel() != weight.sizes()[0]) return nullptr;
    bias = bias.contiguous();
  }
  return make_intrusive<PackedConv>(args, geometry, weight, bias);
}

}  // namespace tensord::kernels
