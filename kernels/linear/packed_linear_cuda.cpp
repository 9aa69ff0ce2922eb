// Packed linear on a CUDA device: the weight as it lies, and one activation behind the product as cuBLASLt's epilogue.
#include <memory>
#include <optional>

#include "core/ops/attributes/packed.h"
#include "kernels/cuda/product_cuda.h"

namespace tensord::kernels {
namespace {

using ops::BoundCall;
using ops::PackArgs;
using ops::PackedOp;

struct CudaLinear {
  Tensor weight;  // n × k
  std::optional<Tensor> bias;
  BlasEpilogue epilogue = BlasEpilogue::kNone;
};

class PreparedCudaLinear final : public ops::PreparedCall {
 public:
  PreparedCudaLinear(CudaLinear linear, const Tensor& input, const Tensor& out)
      : linear_(std::move(linear)), input_(input), out_(out) {
    const auto terms = static_cast<double>(linear_.weight.size(1));
    const auto bytes = static_cast<double>(size_of(out.dtype()));
    cost.flops = 2 * terms * static_cast<double>(out.numel());
    cost.bytes = bytes * static_cast<double>(input.numel() + out.numel() + linear_.weight.numel());
    variant = "cuBLASLt";
  }
  void run(const ops::KernelContext& context, const ops::PreparedRun& memory) const override {
    const auto over = [&](const void* at, const Tensor& like) {
      const auto bytes = static_cast<size_t>(like.numel()) * size_of(like.dtype());
      return Tensor::from_storage(wrap_storage(
                                      const_cast<void*>(at), bytes, [] {}, context.device),
                                  like.sizes(), like.strides(), 0, like.dtype());
    };
    Tensor out = over(memory.outputs[0], out_);
    linear_on_cuda(context, over(memory.inputs[0], input_), linear_.weight, linear_.bias, linear_.epilogue, out);
  }

 private:
  const CudaLinear linear_;
  const Tensor input_, out_;  // meta, dense
};

class PackedCudaLinear final : public PackedOp {
 public:
  PackedCudaLinear(const PackArgs& args, CudaLinear linear) : PackedOp(args, 0), linear_(std::move(linear)) {}
  PackedCudaLinear(const PackedCudaLinear& other) : PackedOp(other), linear_(other.linear_) {}

  IntrusivePtr<PackedOp> with(const BoundCall& call, const ops::Epilogue& epilogue) const override {
    if (linear_.epilogue != BlasEpilogue::kNone || epilogue.kind != ops::Epilogue::Kind::kFormula) return nullptr;
    const bool is_relu = epilogue.formula == "relu";
    if (!is_relu && epilogue.formula != "gelu_tanh") return nullptr;
    auto joined = make_intrusive<PackedCudaLinear>(*this);
    joined->linear_.epilogue = is_relu ? BlasEpilogue::kRelu : BlasEpilogue::kGelu;
    joined->extend(*this, call);
    return joined;
  }
  IntrusivePtr<PackedOp> with_channels_last() const override { return nullptr; }
  bool is_channels_last() const override { return false; }

  std::unique_ptr<ops::PreparedCall> prepare(const Tensor& input, const Tensor& other,
                                             const ops::PrepareArgs& args) const override {
    if (other.defined() || !covers(input) || !input.is_contiguous() || !args.outputs[0].is_contiguous()) return nullptr;
    auto call = std::make_unique<PreparedCudaLinear>(linear_, input, args.outputs[0]);
    call->label = linear_.epilogue == BlasEpilogue::kNone   ? "linear"
                  : linear_.epilogue == BlasEpilogue::kRelu ? "linear+relu"
                                                            : "linear+gelu";
    return call;
  }

 protected:
  std::optional<Tensor> try_run(const Tensor& input, const Tensor& other, bool) const override {
    if (other.defined() || !covers(input)) return std::nullopt;
    Dims sizes = input.sizes();
    sizes.back() = linear_.weight.size(0);
    Tensor out = Tensor::empty(sizes, input.dtype(), input.device());
    linear_on_cuda(ops::KernelContext(input.device()), input, linear_.weight, linear_.bias, linear_.epilogue, out);
    return out;
  }

 private:
  bool covers(const Tensor& input) const {
    const Tensor& weight = linear_.weight;
    return input.device() == weight.device() && input.dtype() == weight.dtype() && input.ndim() >= 1 &&
           input.numel() != 0 && input.size(-1) == weight.size(1);
  }

  CudaLinear linear_;
};

IntrusivePtr<PackedOp> pack_cuda_linear(const PackArgs& args) {
  if (args.widened != 0 || !args.arguments[1].is_tensor()) return nullptr;
  CudaLinear linear{args.arguments[1].to_tensor(), {}};
  const Tensor& weight = linear.weight;
  if (weight.is_meta() || !is_floating(weight.dtype()) || weight.ndim() != 2 || weight.numel() == 0) return nullptr;
  if (args.arguments[2].is_tensor()) {
    linear.bias = args.arguments[2].to_tensor();
    if (linear.bias->dtype() != weight.dtype() || linear.bias->ndim() != 1 || linear.bias->size(0) != weight.size(0))
      return nullptr;
  }
  return make_intrusive<PackedCudaLinear>(args, std::move(linear));
}
PACK("aten::linear", kCUDA, &pack_cuda_linear);

}  // namespace
}  // namespace tensord::kernels
