// Packed linear: a product with weights in panels (packed_gemm.h), with what follows done while a
// tile of the result is in the cache.
#include "kernels/linear/packed_linear.h"

#include "core/base/mutex.h"
#include "core/base/parallel.h"
#include "kernels/gemm/packed_gemm.h"

namespace tensord::kernels {
namespace {

using ops::BoundCall;
using ops::EpilogueKind;
using ops::PackedOp;
using ops::Precision;

bool is_cpu_f32(const Tensor& t) { return t.dtype() == DType::kFloat32 && t.device() == Device{}; }

// The weights as tiles need them, packed when the first call comes and shared by the operators that were
// made from one another.
class LazyMatrix {
 public:
  std::shared_ptr<const PackedMatrix> get(const Tensor& weight, const std::vector<float>& scale, Precision precision) {
    MutexLock lock(mutex_);
    if (!matrix_) {
      const Matrix rows{weight.raw_data(), weight.sizes()[0], weight.sizes()[1], weight.strides()[0],
                        weight.strides()[1]};
      matrix_ = std::make_shared<const PackedMatrix>(rows, scale.empty() ? nullptr : scale.data(), precision);
    }
    return matrix_;
  }

 private:
  Mutex mutex_;
  std::shared_ptr<const PackedMatrix> matrix_ TENSORD_GUARDED_BY(mutex_);
};

class PreparedLinear final : public ops::PreparedCall {
 public:
  explicit PreparedLinear(PackedGemm gemm) : gemm_(std::move(gemm)) {
    scratch_bytes = gemm_.scratch_bytes();
    cost = gemm_.cost();
    variant = gemm_.variant();
  }
  void run(const ops::KernelContext&, const ops::PreparedRun& memory) const override {
    const auto input = [&](int i) { return static_cast<const float*>(memory.inputs[i]); };
    gemm_.run(input(0), gemm_.adds_other() ? input(1) : nullptr, static_cast<float*>(memory.outputs[0]),
              memory.scratch);
  }

 private:
  PackedGemm gemm_;
};

struct Weights {
  Tensor weight, bias;  // n × k; n, or undefined
  double scale = 1;     // of the weight
  int input = 0;        // the argument that comes with each call
  bool needs_matrix = false;
};

class PackedLinear final : public PackedOp {
 public:
  PackedLinear(BoundCall call, const Weights& weights, Precision precision)
      : PackedOp(std::move(call)),
        weight_(weights.weight),
        needs_matrix_(weights.needs_matrix),
        precision_(precision),
        matrix_(std::make_shared<LazyMatrix>()) {
    GemmFinish finish;
    finish.bias.assign(static_cast<size_t>(weight_.sizes()[0]), 0.0f);
    if (weights.bias.defined()) std::copy_n(weights.bias.data<float>(), finish.bias.size(), finish.bias.begin());
    if (weights.scale != 1) scale_.assign(finish.bias.size(), static_cast<float>(weights.scale));
    finish_ = std::make_shared<const GemmFinish>(std::move(finish));
  }
  PackedLinear(const PackedLinear&) = default;

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
    // The rows of x are still read when the first results are written.
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
    const Tensor out = overwrites ? other : Tensor::empty(sizes, DType::kFloat32);
    const Tensor scratch = Tensor::empty(Dims{static_cast<int64_t>(product.scratch_bytes())}, DType::kUInt8);
    product.run(input.data<float>(), addend.defined() ? addend.data<float>() : nullptr, out.data<float>(),
                scratch.raw_data());
    return out;
  }

 private:
  static std::string short_name(const BoundCall& call) {
    const std::string& name = call.op->schema.name;
    const std::string base = name.substr(name.find("::") + 2);
    return base.substr(0, base.find('.'));
  }

  // False, and nothing changed, when `next` cannot come after what is there.
  bool join(const ops::Epilogue& next) {
    GemmFinish finish = *finish_;
    if (next.kind == EpilogueKind::kChannelAffine) {
      if (!join_affine(next, finish)) return false;
    } else {
      constexpr size_t kMostSteps = 6;
      if (finish.steps.size() >= kMostSteps || (next.kind == EpilogueKind::kAdd && finish.adds_other())) return false;
      finish.steps.push_back({next.kind, static_cast<float>(next.alpha), static_cast<float>(next.beta)});
    }
    finish_ = std::make_shared<const GemmFinish>(std::move(finish));
    return true;
  }

  // A batch norm goes into the weights and the bias.
  bool join_affine(const ops::Epilogue& next, GemmFinish& finish) {
    const auto channels = static_cast<int64_t>(finish.bias.size());
    if (!finish.steps.empty() || next.scale.numel() != channels || next.shift.numel() != channels) return false;
    if (scale_.empty()) scale_.assign(finish.bias.size(), 1.0f);
    for (size_t c = 0; c < finish.bias.size(); ++c) {
      const float by = next.scale.data<float>()[c];
      scale_[c] *= by;
      finish.bias[c] = finish.bias[c] * by + next.shift.data<float>()[c];
    }
    matrix_ = std::make_shared<LazyMatrix>();
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

  // Whether `other`, broadcast to `sizes`, is its rows over and over.
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
    return PackedGemm(matrix_->get(weight_, scale_, precision_), finish_, RowLayout::of(input), other_rows, threads);
  }

  Tensor weight_;             // as the archive has it
  std::vector<float> scale_;  // of its rows, or empty
  std::shared_ptr<const GemmFinish> finish_;
  bool needs_matrix_;
  Precision precision_;
  std::shared_ptr<LazyMatrix> matrix_;
};

bool is_plain(const Tensor& t) { return is_cpu_f32(t) && !t.is_meta(); }

IntrusivePtr<PackedOp> pack(const ops::Op& op, std::span<const ops::Value> arguments, const Weights& weights,
                            Precision precision) {
  // Sums of 8-bit products stay below 2^31.
  constexpr int64_t kMostInt8 = 65'536;
  if (precision == Precision::kInt8 && weights.weight.sizes()[1] > kMostInt8) precision = Precision::kBf16;
  return make_intrusive<PackedLinear>(BoundCall{&op, {arguments.begin(), arguments.end()}, weights.input, -1}, weights,
                                      precision);
}

// The matrix on the right of a product, as n × k; undefined when it cannot be prepared.
Tensor right_matrix(const ops::Value& value) {
  if (!value.is_tensor()) return {};
  const Tensor& right = value.to_tensor();
  if (!is_plain(right) || right.ndim() != 2 || right.numel() == 0) return {};
  return right.as_view(Dims{right.sizes()[1], right.sizes()[0]}, Dims{right.strides()[1], right.strides()[0]},
                       right.offset());
}

}  // namespace

IntrusivePtr<ops::PackedOp> pack_linear(const ops::Op& op, std::span<const ops::Value> arguments, Precision precision) {
  if (!arguments[1].is_tensor()) return nullptr;
  Weights weights{arguments[1].to_tensor(), {}};
  const Tensor& weight = weights.weight;
  if (!is_plain(weight) || weight.ndim() != 2 || weight.numel() == 0) return nullptr;
  if (arguments[2].is_tensor()) {
    const Tensor& bias = arguments[2].to_tensor();
    if (!is_plain(bias) || bias.ndim() != 1 || bias.numel() != weight.sizes()[0]) return nullptr;
    weights.bias = bias.contiguous();
  }
  return pack(op, arguments, weights, precision);
}

IntrusivePtr<ops::PackedOp> pack_matmul(const ops::Op& op, std::span<const ops::Value> arguments, Precision precision) {
  const Tensor weight = right_matrix(arguments[1]);
  return weight.defined() ? pack(op, arguments, {weight, {}}, precision) : nullptr;
}

IntrusivePtr<ops::PackedOp> pack_mm(const ops::Op& op, std::span<const ops::Value> arguments, Precision precision) {
  const Tensor weight = right_matrix(arguments[1]);
  return weight.defined() ? pack(op, arguments, {weight, {}, 1, 0, true}, precision) : nullptr;
}

IntrusivePtr<ops::PackedOp> pack_addmm(const ops::Op& op, std::span<const ops::Value> arguments, Precision precision) {
  const Tensor weight = right_matrix(arguments[2]);
  if (!weight.defined() || !arguments[0].is_tensor()) return nullptr;
  const Tensor& self = arguments[0].to_tensor();
  const Dims row{1, weight.sizes()[0]};
  if (!is_plain(self) || self.ndim() > 2 || !(broadcast_sizes(self.sizes(), row) == row)) return nullptr;
  Weights weights{weight, {}, arguments[4].to_scalar().to_double(), 1, true};
  const double beta = arguments[3].to_scalar().to_double();
  if (beta != 0) {
    weights.bias = Tensor::empty(row, DType::kFloat32);
    weights.bias.copy_from(self);
    for (int64_t i = 0; i < row[1]; ++i) weights.bias.data<float>()[i] *= static_cast<float>(beta);
  }
  return pack(op, arguments, weights, precision);
}

}  // namespace tensord::kernels
