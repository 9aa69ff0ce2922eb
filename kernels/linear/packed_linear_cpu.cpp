// Packed linear: a product with weights in panels (packed_gemm.h). Steps that follow are done while a tile of the
// result is in the cache.
#include <atomic>
#include <memory>
#include <optional>

#include "core/base/parallel.h"
#include "core/ops/attributes/packed.h"
#include "kernels/base/packed_half.h"
#include "kernels/gemm/packed_gemm.h"

namespace tensord::kernels {
namespace {

using ops::BoundCall;
using ops::PackArgs;
using ops::PackedOp;
using ops::Precision;

bool is_cpu_f32(const Tensor& t) { return t.dtype() == DType::kFloat32 && t.device() == Device{}; }

class PreparedLinear final : public ops::PreparedCall {
 public:
  explicit PreparedLinear(PackedGemm gemm) : gemm_(std::move(gemm)) {
    scratch_bytes = gemm_.scratch_bytes();
    cost = gemm_.cost();
    variant = gemm_.variant();
  }
  void run(const ops::KernelContext&, const ops::PreparedRun& memory) const override {
    const auto input = [&](int i) { return static_cast<const float*>(memory.inputs[i]); };
    gemm_.run(
        {.x = input(0), .other = gemm_.adds_other() ? input(1) : nullptr, .y = static_cast<float*>(memory.outputs[0])},
        memory.scratch);
  }

 private:
  PackedGemm gemm_;
};

struct Weights {
  Tensor weight, bias;  // n × k; n, or undefined
  double scale = 1;     // of the weight
  int input = 0;        // the argument that varies from call to call
  bool needs_matrix = false;
};

class PackedLinear final : public PackedOp {
 public:
  PackedLinear(const PackArgs& args, const Weights& weights, Precision precision)
      : PackedOp(args, weights.input),
        weight_(weights.weight),
        needs_matrix_(weights.needs_matrix),
        is_widened_(args.widened != 0),
        precision_(precision) {
    GemmEpilogue finish;
    finish.bias.assign(static_cast<size_t>(weight_.sizes()[0]), 0.0f);
    if (weights.bias.defined()) std::copy_n(weights.bias.data<float>(), finish.bias.size(), finish.bias.begin());
    if (weights.scale != 1) scale_ = filled(weight_.sizes()[0], static_cast<float>(weights.scale));
    finish_ = std::make_shared<const GemmEpilogue>(std::move(finish));
  }
  // Copies the constant parts, which `with` may change.
  PackedLinear(const PackedLinear& other)
      : PackedOp(other),
        weight_(other.weight_),
        scale_(other.scale_),
        finish_(other.finish_),
        needs_matrix_(other.needs_matrix_),
        is_widened_(other.is_widened_),
        precision_(other.precision_) {}

  IntrusivePtr<PackedOp> with(const BoundCall& call, const ops::Epilogue& epilogue) const override {
    auto joined = make_intrusive<PackedLinear>(*this);
    if (!joined->join(epilogue)) return nullptr;
    joined->extend(*this, call);
    return joined;
  }
  IntrusivePtr<PackedOp> with_channels_last() const override { return nullptr; }
  bool is_channels_last() const override { return false; }

  std::unique_ptr<ops::PreparedCall> prepare(const Tensor& input, const Tensor& other,
                                             const ops::PrepareArgs& args) const override {
    if (!covers(input, other) || !args.outputs[0].is_contiguous() || (other.defined() && !other.is_contiguous()))
      return nullptr;
    auto call = std::make_unique<PreparedLinear>(gemm(input, other, args.threads));
    // In place: rows of x are still read when the first results are written.
    const bool is_input =
        other.defined() && (other.is_same(input) || (other.alias_id() != 0 && other.alias_id() == input.alias_id()));
    if (other.defined() && !is_input && other.sizes() == args.outputs[0].sizes()) call->may_overwrite = 2;
    for (const BoundCall& bound : calls()) call->label += (call->label.empty() ? "" : "+") + short_name(bound);
    return call;
  }

 protected:
  std::optional<Tensor> try_run(const Tensor& input, const Tensor& other, bool can_overwrite) const override {
    if (!covers(input, other)) return std::nullopt;
    const Dims sizes = result_sizes(input);
    const Tensor addend = other.defined() ? other.contiguous() : Tensor();
    const PackedGemm product = gemm(input, addend, thread_budget());
    const bool overwrites = can_overwrite && addend.is_same(other) && other.sizes() == sizes;
    Tensor out = overwrites ? other : Tensor::empty(sizes, DType::kFloat32);
    const Tensor scratch = Tensor::empty(Dims{static_cast<int64_t>(product.scratch_bytes())}, DType::kUInt8);
    product.run(
        {.x = input.data<float>(), .other = addend.defined() ? addend.data<float>() : nullptr, .y = out.data<float>()},
        scratch.raw_data());
    return out;
  }

 private:
  static std::string short_name(const BoundCall& call) {
    const std::string& name = call.op->schema.name;
    const std::string base = name.substr(name.find("::") + 2);
    return base.substr(0, base.find('.'));
  }

  static Tensor filled(int64_t count, float value) {
    const Tensor t = Tensor::empty(Dims{count}, DType::kFloat32);
    std::fill_n(t.data<float>(), count, value);
    return t;
  }

  // Returns false, and changes nothing, when `next` cannot follow the present steps.
  bool join(const ops::Epilogue& next) {
    GemmEpilogue finish = *finish_;
    if (next.kind == ops::Epilogue::Kind::kChannelAffine) {
      if (!join_affine(next, finish)) return false;
    } else {
      constexpr size_t kMaxSteps = 6;
      const std::optional<EpilogueStep> step = epilogue_step_of(next);
      if (!step || finish.steps.size() >= kMaxSteps) return false;
      if (step->kind == EpilogueStep::Kind::kAdd && finish.adds_other()) return false;
      finish.steps.push_back(*step);
    }
    finish_ = std::make_shared<const GemmEpilogue>(std::move(finish));
    return true;
  }

  // A batch norm is folded into the weights and the bias.
  bool join_affine(const ops::Epilogue& next, GemmEpilogue& finish) {
    const auto channels = static_cast<int64_t>(finish.bias.size());
    if (!finish.steps.empty() || next.scale.numel() != channels || next.shift.numel() != channels) return false;
    const Tensor scale = scale_.defined() ? scale_.clone() : filled(channels, 1.0f);
    for (size_t c = 0; c < finish.bias.size(); ++c) {
      const float by = next.scale.data<float>()[c];
      scale.data<float>()[c] *= by;
      finish.bias[c] = finish.bias[c] * by + next.shift.data<float>()[c];
    }
    scale_ = scale;
    needs_matrix_ = true;  // channels are along dimension 1
    return true;
  }

  Dims result_sizes(const Tensor& input) const {
    Dims sizes = input.sizes();
    sizes.back() = weight_.sizes()[0];
    return sizes;
  }

  bool covers(const Tensor& input, const Tensor& other) const {
    if (!is_cpu_f32(input) || input.ndim() < 1 || input.sizes().back() != weight_.sizes()[1] || input.numel() == 0)
      return false;
    if (needs_matrix_ && input.ndim() != 2) return false;
    return !other.defined() || (is_cpu_f32(other) && repeats(other, result_sizes(input)));
  }

  // Whether `other`, broadcast to `sizes`, repeats its rows.
  static bool repeats(const Tensor& other, const Dims& sizes) {
    const size_t dims = static_cast<size_t>(other.ndim());
    if (dims == 0 || dims > sizes.size()) return false;
    bool is_repeated = false;
    for (size_t i = 1; i <= dims; ++i) {
      const int64_t size = other.sizes()[dims - i];
      is_repeated |= size != sizes[sizes.size() - i];
      if (is_repeated && (size != 1 || i == 1)) return false;
    }
    return true;
  }

  PackedGemm gemm(const Tensor& input, const Tensor& other, int threads) const {
    const int64_t other_rows = other.defined() ? other.numel() / weight_.sizes()[0] : 1;
    RowLayout rows = RowLayout::of(input);
    const Precision precision = precision_of(rows.rows);
    return PackedGemm(matrix(precision), finish_, std::move(rows), other_rows, threads);
  }

  // A processor that has to widen bfloat16 gains from it where reading the weights takes longest: in products of few
  // rows. Others are computed in float32, for which the weights are packed a second time.
  Precision precision_of(int64_t rows) const {
    constexpr int64_t kFewRows = 8, kCachedNumbers = 256 * 1024;
    if (precision_ != Precision::kBf16 || is_half(weight_.dtype()) || !tile_kernels(WordType::kBf16).widens)
      return precision_;
    const bool is_few = rows == 1 || (rows < kFewRows && weight_.numel() > kCachedNumbers);
    return is_few ? Precision::kBf16 : Precision::kF32;
  }

  // The weight in the layout that tiles need, from the store, which lives as long as its holder.
  std::shared_ptr<const PackedMatrix> matrix(Precision precision) const {
    std::atomic<const PackedMatrix*>& matrix = precision == precision_ ? matrix_ : matrix_in_f32_;
    const PackedMatrix* known = matrix.load(std::memory_order_acquire);
    if (!known) {
      const Tensor of[] = {weight_, scale_};
      known = store()
                  ->get<PackedMatrix>(concat(is_widened_ ? "wide panels " : "panels ", static_cast<int>(precision)), of,
                                      [&] {
                                        const Matrix rows{weight_.raw_data(), weight_.sizes()[0], weight_.sizes()[1],
                                                          weight_.strides()[0], weight_.strides()[1]};
                                        return std::make_shared<const PackedMatrix>(
                                            rows, weight_.dtype(), scale_.defined() ? scale_.data<float>() : nullptr,
                                            precision, is_widened_);
                                      })
                  .get();
      matrix.store(known, std::memory_order_release);
    }
    return {store(), known};
  }

  Tensor weight_;  // as the archive has it
  Tensor scale_;   // of its rows, or undefined
  std::shared_ptr<const GemmEpilogue> finish_;
  bool needs_matrix_;
  bool is_widened_;  // halves that the call sees as float32
  Precision precision_;
  mutable std::atomic<const PackedMatrix*> matrix_{nullptr}, matrix_in_f32_{nullptr};
};

// the position of an argument in the call
DType dtype_of_call(const PackArgs& args, size_t i) {
  return args.widened >> i & 1 ? DType::kFloat32 : args.arguments[i].to_tensor().dtype();
}

bool is_plain(const Tensor& t) {
  return (t.dtype() == DType::kFloat32 || is_half(t.dtype())) && t.device() == Device{} && !t.is_meta();
}

Precision precision_of(const PackArgs& args, const Weights& weights) {
  constexpr int64_t kMostInt8 = 65'536;  // sums of this many 8-bit products stay below 2^31
  const bool is_too_deep = args.precision == Precision::kInt8 && weights.weight.sizes()[1] > kMostInt8;
  return is_too_deep ? Precision::kBf16 : args.precision;
}

IntrusivePtr<PackedOp> pack(const PackArgs& args, const Weights& weights) {
  auto packed = make_intrusive<PackedLinear>(args, weights, precision_of(args, weights));
  const DType dtype = weights.weight.dtype();
  return is_half(dtype) && args.widened == 0 ? pack_half(args, dtype, packed) : packed;
}

// The right matrix of a product, as n × k; undefined when it cannot be prepared.
Tensor right_matrix(const ops::Value& value) {
  if (!value.is_tensor()) return {};
  const Tensor& right = value.to_tensor();
  if (!is_plain(right) || right.ndim() != 2 || right.numel() == 0) return {};
  return right.as_view(Dims{right.sizes()[1], right.sizes()[0]}, Dims{right.strides()[1], right.strides()[0]},
                       right.offset());
}

IntrusivePtr<PackedOp> pack_linear(const PackArgs& args) {
  const auto arguments = args.arguments;
  if (!arguments[1].is_tensor()) return nullptr;
  Weights weights{arguments[1].to_tensor(), {}};
  const Tensor& weight = weights.weight;
  if (!is_plain(weight) || weight.ndim() != 2 || weight.numel() == 0) return nullptr;
  if (arguments[2].is_tensor()) {
    const Tensor& bias = arguments[2].to_tensor();
    if (!is_plain(bias) || dtype_of_call(args, 2) != dtype_of_call(args, 1) || bias.ndim() != 1 ||
        bias.numel() != weight.sizes()[0])
      return nullptr;
    weights.bias = bias.to(DType::kFloat32).contiguous();
  }
  return pack(args, weights);
}

IntrusivePtr<PackedOp> pack_matmul(const PackArgs& args) {
  const auto arguments = args.arguments;
  const Tensor weight = right_matrix(arguments[1]);
  return weight.defined() ? pack(args, {weight, {}}) : nullptr;
}

IntrusivePtr<PackedOp> pack_mm(const PackArgs& args) {
  const auto arguments = args.arguments;
  const Tensor weight = right_matrix(arguments[1]);
  return weight.defined() ? pack(args, {weight, {}, 1, 0, true}) : nullptr;
}

IntrusivePtr<PackedOp> pack_addmm(const PackArgs& args) {
  const auto arguments = args.arguments;
  const Tensor weight = right_matrix(arguments[2]);
  if (!weight.defined() || !arguments[0].is_tensor()) return nullptr;
  const Tensor& self = arguments[0].to_tensor();
  const Dims row{1, weight.sizes()[0]};
  if (!is_plain(self) || dtype_of_call(args, 0) != dtype_of_call(args, 2) || self.ndim() > 2 ||
      !(broadcast_sizes(self.sizes(), row) == row))
    return nullptr;
  Weights weights{weight, {}, arguments[4].to_scalar().to_double(), 1, true};
  const double beta = arguments[3].to_scalar().to_double();
  if (beta != 0) {
    weights.bias = Tensor::empty(row, DType::kFloat32);
    weights.bias.copy_from(self);
    for (int64_t i = 0; i < row[1]; ++i) weights.bias.data<float>()[i] *= static_cast<float>(beta);
  }
  return pack(args, weights);
}

// The weight, and a bias of one row. A constant matrix on the right of a product is the transposed weight of a linear
// layer without bias. mm takes matrices only, and the first argument of addmm is the same for each row.
PACK("aten::linear", DeviceKind::kCPU, &pack_linear);
PACK("aten::matmul", DeviceKind::kCPU, &pack_matmul);
PACK("aten::mm", DeviceKind::kCPU, &pack_mm);
PACK("aten::addmm", DeviceKind::kCPU, &pack_addmm);

}  // namespace
}  // namespace tensord::kernels
