// Prepared matrix products of two tensors that are both inputs of the run: their strides are used unchanged, and
// nothing is copied.
#include <array>
#include <optional>

#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "kernels/base/prepared_operand.h"
#include "kernels/gemm/product.h"

namespace tensord::kernels {
namespace {

using ops::PrepareArgs;
using ops::PreparedCall;
using ops::PreparedRun;
using ops::Value;

// A tensor as a batch of matrices.
struct Batch {
  Dims sizes, strides;  // at least 2
  int operand;          // among the tensors of the call; -1 for the result
};

Batch batch_of(const Tensor& t, int operand) { return {t.sizes(), t.strides(), operand}; }
Batch transposed(Batch b) {
  const size_t n = b.sizes.size();
  std::swap(b.sizes[n - 1], b.sizes[n - 2]);
  std::swap(b.strides[n - 1], b.strides[n - 2]);
  return b;
}
int64_t from_end(const Dims& dims, size_t i) { return dims[dims.size() - i]; }

struct Problem {
  Batch left, right, out;
  std::optional<Batch> addend;  // the result's sizes, or broadcast to them
  double alpha = 1, beta = 1;
};

class PreparedProduct final : public PreparedCall {
 public:
  PreparedProduct(const Problem& p, const PrepareArgs& args, PreparedOperands operands)
      : operands_(std::move(operands)),
        left_(p.left.operand),
        right_(p.right.operand),
        addend_(p.addend ? p.addend->operand : -1),
        beta_(static_cast<float>(p.beta)) {
    shape_.rows = from_end(p.out.sizes, 2), shape_.columns = from_end(p.out.sizes, 1);
    shape_.depth = from_end(p.left.sizes, 1);
    shape_.left_row = from_end(p.left.strides, 2), shape_.left_depth = from_end(p.left.strides, 1);
    shape_.right_depth = from_end(p.right.strides, 2), shape_.right_column = from_end(p.right.strides, 1);
    shape_.out_row = from_end(p.out.strides, 2);
    shape_.alpha = static_cast<float>(p.alpha);
    shape_.accumulates = p.addend.has_value();
    const Dims batch = p.out.sizes.span().first(p.out.sizes.size() - 2);
    offsets_.resize(static_cast<size_t>(checked_numel(batch)));
    add_offsets(0, p.left, batch);
    add_offsets(1, p.right, batch);
    add_offsets(2, p.out, batch);
    if (p.addend) {
      const Dims strides = broadcast_strides(p.addend->sizes, p.addend->strides, p.out.sizes);
      addend_row_ = from_end(strides, 2), addend_column_ = from_end(strides, 1);
      add_offsets(3, {p.out.sizes, strides, addend_}, batch);
    }
    cut(args.threads);
    variant = "gemm f32";
  }

  void run(const ops::KernelContext&, const PreparedRun& memory) const override {
    const auto at = [&](int i) { return static_cast<const float*>(operands_[static_cast<size_t>(i)].at(memory)); };
    const float *left = at(left_), *right = at(right_), *addend = addend_ >= 0 ? at(addend_) : nullptr;
    auto* out = static_cast<float*>(memory.outputs[0]);
    const int64_t units = splits_ * static_cast<int64_t>(offsets_.size());
    parallel_run(parts_, [&](int part) {
      float* scratch = static_cast<float*>(memory.scratch) + part * scratch_;
      for (int64_t u = units * part / parts_; u < units * (part + 1) / parts_; ++u) {
        const auto& offset = offsets_[static_cast<size_t>(u / splits_)];
        const int64_t begin = u % splits_ * rows_, end = std::min(shape_.rows, begin + rows_);
        if (begin >= end) continue;
        if (addend) start(addend + offset[3], out + offset[2], begin, end);
        multiply(shape_, left + offset[0], right + offset[1], out + offset[2], begin, end, scratch);
      }
    });
  }

 private:
  void add_offsets(size_t which, const Batch& b, const Dims& batch) {
    const size_t n = b.sizes.size() - 2;
    const Dims steps = broadcast_strides(b.sizes.span().first(n), b.strides.span().first(n), batch);
    for (size_t i = 0; i < offsets_.size(); ++i) {
      int64_t offset = 0, rest = static_cast<int64_t>(i);
      for (size_t d = batch.size(); d-- > 0; rest /= batch[d]) offset += rest % batch[d] * steps[d];
      offsets_[i][which] = offset;
    }
  }

  void start(const float* addend, float* out, int64_t begin, int64_t end) const {
    for (int64_t r = begin; r < end; ++r) {
      const float* from = addend + r * addend_row_;
      float* to = out + r * shape_.out_row;
      for (int64_t j = 0; j < shape_.columns; ++j) to[j] = beta_ * from[j * addend_column_];
    }
  }

  void cut(int threads) {
    const auto count = static_cast<int64_t>(offsets_.size());
    const double rows = static_cast<double>(shape_.rows), columns = static_cast<double>(shape_.columns),
                 depth = static_cast<double>(shape_.depth), batch = static_cast<double>(count);
    cost = {2 * batch * rows * columns * depth, 4 * batch * (rows * depth + columns * depth + rows * columns)};
    // About 80 operations, or 16 bytes, a nanosecond.
    parts_ = parallel_parts(
        count * std::max<int64_t>(1, shape_.rows / 12),
        (cost.flops / 80 + cost.bytes / 16) / (batch * std::max(1.0, static_cast<double>(shape_.rows / 12))), threads);
    splits_ = std::max<int64_t>(1, count >= 2 * parts_ ? 1 : parts_);
    rows_ = (shape_.rows + splits_ - 1) / splits_;
    scratch_ = kMaxProductScratch;
    scratch_bytes = static_cast<size_t>(parts_ * scratch_) * sizeof(float);
  }

  PreparedOperands operands_;
  ProductShape shape_{};
  int left_, right_, addend_;
  float beta_;
  int64_t addend_row_ = 0, addend_column_ = 0;
  std::vector<std::array<int64_t, 4>> offsets_;  // by matrix: in left, right, out and addend
  int64_t rows_ = 0, splits_ = 1, scratch_ = 0;
  int parts_ = 1;
};

// Dimensions of the left that share one right matrix become rows of one product.
void fold(Problem& p) {
  if (p.right.sizes.size() != 2 || p.left.sizes.size() <= 2 || p.addend) return;
  const int64_t rows = checked_numel(p.left.sizes.span().first(p.left.sizes.size() - 1));
  const Dims left{rows, p.left.sizes.back()}, out{rows, p.out.sizes.back()};
  bool fits_left = false, fits_out = false;
  const Dims left_strides = view_strides(p.left.sizes, p.left.strides, left, &fits_left);
  const Dims out_strides = view_strides(p.out.sizes, p.out.strides, out, &fits_out);
  if (!fits_left || !fits_out) return;
  p.left = {left, left_strides, p.left.operand};
  p.out = {out, out_strides, -1};
}

std::unique_ptr<PreparedCall> prepare(Problem p, const PrepareArgs& args) {
  for (const Value& argument : args.arguments) {
    if (!argument.is_tensor()) continue;
    const Tensor& t = argument.to_tensor();
    if (t.dtype() != DType::kFloat32 || !(t.device() == Device{}) || t.numel() == 0) return nullptr;
  }
  if (args.outputs[0].numel() == 0) return nullptr;
  if (p.addend && p.beta == 0) p.addend.reset();
  fold(p);
  // Arranges for the columns of the result to be dense and, if possible, for more than one of them.
  const bool is_across = from_end(p.out.strides, 1) != 1 && from_end(p.out.sizes, 1) != 1;
  if (is_across || (from_end(p.out.sizes, 1) == 1 && from_end(p.out.strides, 2) == 1)) {
    if (from_end(p.out.strides, 2) != 1 && from_end(p.out.sizes, 2) != 1) return nullptr;
    const Batch left = transposed(p.right);
    p.right = transposed(p.left);
    p.left = left;
    p.out = transposed(p.out);
    if (p.addend) {
      Batch& a = *p.addend;
      a.strides = broadcast_strides(a.sizes, a.strides, args.outputs[0].sizes());
      a.sizes = args.outputs[0].sizes();
      if (a.sizes.size() != p.out.sizes.size()) return nullptr;
      a = transposed(a);
    }
  }
  return std::make_unique<PreparedProduct>(p, args, operands_of(args.arguments));
}

const Tensor& tensor(const PrepareArgs& args, size_t i) { return args.arguments[i].to_tensor(); }

std::unique_ptr<PreparedCall> prepare_product(const PrepareArgs& args) {
  return prepare({batch_of(tensor(args, 0), 0), batch_of(tensor(args, 1), 1), batch_of(args.outputs[0], -1), {}}, args);
}

// Vectors become matrices of one row or column.
std::unique_ptr<PreparedCall> prepare_matmul(const PrepareArgs& args) {
  Problem p{batch_of(tensor(args, 0), 0), batch_of(tensor(args, 1), 1), batch_of(args.outputs[0], -1), {}};
  const bool is_row = p.left.sizes.size() == 1, is_column = p.right.sizes.size() == 1;
  if (is_row) {
    p.left.sizes.insert(0, 1), p.left.strides.insert(0, 0);
    p.out.sizes.insert(p.out.sizes.size() - (is_column ? 0 : 1), 1);
    p.out.strides.insert(p.out.strides.size() - (is_column ? 0 : 1), 1);
  }
  if (is_column) {
    p.right.sizes.push_back(1), p.right.strides.push_back(1);
    p.out.sizes.push_back(1), p.out.strides.push_back(1);
  }
  return prepare(std::move(p), args);
}

// (addend, left, right, beta, alpha)
std::unique_ptr<PreparedCall> prepare_sum(const PrepareArgs& args) {
  return prepare({batch_of(tensor(args, 1), 1), batch_of(tensor(args, 2), 2), batch_of(args.outputs[0], -1),
                  batch_of(tensor(args, 0), 0), args.arguments[4].to_scalar().to_double(),
                  args.arguments[3].to_scalar().to_double()},
                 args);
}

PREPARE("aten::mm", DeviceKind::kCPU, &prepare_product);
PREPARE("aten::bmm", DeviceKind::kCPU, &prepare_product);
PREPARE("aten::matmul", DeviceKind::kCPU, &prepare_matmul);
PREPARE("aten::addmm", DeviceKind::kCPU, &prepare_sum);
PREPARE("aten::baddbmm", DeviceKind::kCPU, &prepare_sum);

}  // namespace
}  // namespace tensord::kernels
