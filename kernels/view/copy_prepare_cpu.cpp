// Prepared forms of operators that only copy each input to its place in the result.
#include "core/ops/op.h"
#include "core/tensor/strided_copy.h"
#include "kernels/base/lines.h"
#include "kernels/view/view.h"

namespace tensord::kernels {
namespace {

class PreparedCopies final : public ops::PreparedCall {
 public:
  // `target` is the part of the result for the next input.
  void add(const Tensor& target, const Tensor& source) {
    pieces_.push_back({StridedCopy(target, source), source.is_meta() ? Tensor() : source,
                       target.offset() * static_cast<int64_t>(size_of(target.dtype()))});
    cost.bytes += 2.0 * static_cast<double>(target.size_bytes());
  }
  void run(const ops::KernelContext&, const ops::PreparedRun& memory) const override {
    size_t next = 0;
    for (const Piece& piece : pieces_) {
      const void* source = piece.constant ? piece.constant.raw_data() : memory.inputs[next++];
      piece.copy.run(static_cast<char*>(memory.outputs[0]) + piece.offset, source);
    }
  }

 private:
  struct Piece {
    StridedCopy copy;
    Tensor constant;  // undefined when it is an input of the run
    int64_t offset;   // in the result, in bytes
  };
  std::vector<Piece> pieces_;
};

// Copies one tensor into a result of its sizes.
std::unique_ptr<ops::PreparedCall> prepare_copy(const ops::PrepareArgs& args) {
  const Tensor& in = args.arguments[0].to_tensor();
  const Tensor& out = args.outputs[0];
  if (!(in.sizes() == out.sizes()) || in.dtype() != out.dtype()) return nullptr;
  auto prepared = std::make_unique<PreparedCopies>();
  prepared->add(Tensor::meta_strided(out.sizes(), out.strides(), out.dtype()), in);
  return prepared;
}

// Joins a list along a dimension, which is a new one with `stacks`.
std::unique_ptr<ops::PreparedCall> prepare_joined(const ops::PrepareArgs& args, bool stacks) {
  const auto tensors = ops::Unbox<ops::TensorList>::get(args.arguments[0]);
  const Tensor& out = args.outputs[0];
  const Tensor whole = Tensor::meta_strided(out.sizes(), out.strides(), out.dtype());
  const int64_t dim = wrap_dim(args.arguments[1].to_int(), out.ndim());
  auto prepared = std::make_unique<PreparedCopies>();
  int64_t position = 0;
  for (const Tensor& tensor : tensors) {
    // The kernel skips empty tensors of another rank; this form does not.
    if (tensor.dtype() != out.dtype() || tensor.ndim() + (stacks ? 1 : 0) != out.ndim()) return nullptr;
    const int64_t length = stacks ? 1 : tensor.sizes()[static_cast<size_t>(dim)];
    const Tensor part = narrow(whole, dim, position, length);
    prepared->add(stacks ? part.as_view(without(part.sizes(), dim), without(part.strides(), dim), part.offset()) : part,
                  tensor);
    position += length;
  }
  return prepared;
}

PREPARE("aten::clone", DeviceKind::kCPU, prepare_copy);
PREPARE("aten::contiguous", DeviceKind::kCPU, prepare_copy);
[[maybe_unused]] const bool copy_prepare_cpu_registered = [] {
  for (const char* name : {"aten::cat", "aten::concat", "aten::concatenate"}) {
    ops::PrepareBuilder(name, DeviceKind::kCPU,
                        [](const ops::PrepareArgs& args) { return prepare_joined(args, false); });
  }
  ops::PrepareBuilder("aten::stack", DeviceKind::kCPU,
                      [](const ops::PrepareArgs& args) { return prepare_joined(args, true); });
  return true;
}();

}  // namespace
}  // namespace tensord::kernels
