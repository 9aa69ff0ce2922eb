#include <algorithm>

#include "core/ops/attributes/written.h"
#include "core/tensor/device_copy.h"
#include "kernels/expr/expr.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/view/view.h"
#include "ops/view.h"

// Triangles and diagonals of matrices.
namespace tensord::kernels {
namespace {

using ops::TensorMeta;
using ops::WritesInto;

TensorMeta triangle_meta(const Tensor& x, int64_t) {
  const bool has_nothing = x.ndim() == 1 && x.numel() == 0;
  check(x.ndim() >= 2 || has_nothing, "tril/triu: input tensor must have at least 2 dimensions");
  return {x.sizes(), x.dtype(), {}, x.device()};
}

// The positions of a diagonal in a square of this size.
Tensor diagonal_of(const Tensor& square, int64_t offset, int64_t length) {
  const int64_t row = square.ndim() - 2, column = square.ndim() - 1;
  Dims sizes = square.sizes(), strides = square.strides();
  const int64_t start = offset >= 0 ? offset * strides[column] : -offset * strides[row];
  const int64_t step = strides[row] + strides[column];
  sizes.resize(static_cast<size_t>(row));
  strides.resize(static_cast<size_t>(row));
  sizes.push_back(length);
  strides.push_back(step);
  return square.as_view(std::move(sizes), std::move(strides), square.offset() + start);
}

Tensor diag_embed(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  check(x.ndim() > 0, "diag_embed: a 0-dim tensor has no diagonal");
  check(offset > -(int64_t{1} << 31) && offset < (int64_t{1} << 31), "diag_embed: offset ", offset, " is too large");
  dim1 = wrap_dim(dim1, x.ndim() + 1);
  dim2 = wrap_dim(dim2, x.ndim() + 1);
  check(dim1 != dim2, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  const int64_t length = x.sizes().back(), size = length + std::abs(offset);
  Dims sizes = x.sizes();
  sizes[x.ndim() - 1] = size;
  sizes.push_back(size);
  Tensor square =
      x.is_meta() ? Tensor::meta(sizes, x.dtype(), x.device()) : Tensor::empty(sizes, x.dtype(), x.device());
  if (!x.is_meta() && square.numel() != 0) {
    zero_elements(square);
    if (length > 0) copy_elements(diagonal_of(square, offset, length), x);
  }
  // Moves the last two dimensions to dim1 (rows) and dim2 (columns).
  Dims order;
  int64_t next = 0;
  for (int64_t d = 0; d < square.ndim(); ++d) {
    order.push_back(d == dim1 ? square.ndim() - 2 : d == dim2 ? square.ndim() - 1 : next++);
  }
  return permute(square, order);
}

Tensor diag(const Tensor& x, int64_t offset) {
  check(x.ndim() == 1 || x.ndim() == 2, "diag(): Supports 1D or 2D tensors. Got ", x.ndim(), "D");
  if (x.ndim() == 1) return diag_embed(x, offset, 0, 1);
  check(offset > -(int64_t{1} << 31) && offset < (int64_t{1} << 31), "diag: offset ", offset, " is too large");
  const int64_t rows = x.sizes()[0], columns = x.sizes()[1];
  const int64_t length =
      std::max<int64_t>(0, offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns));
  if (length == 0) {
    return x.is_meta() ? Tensor::meta(Dims{0}, x.dtype(), x.device()) : Tensor::empty(Dims{0}, x.dtype(), x.device());
  }
  return diagonal_of(x, offset, length).clone();
}

Tensor block_diag(const std::vector<Tensor>& tensors) {
  int64_t rows = 0, columns = 0;
  check(!tensors.empty(), "block_diag: expected at least one tensor");
  const DType dtype = promote_operands(std::vector<Operand>(tensors.begin(), tensors.end()));
  std::vector<Tensor> blocks;
  for (const Tensor& x : tensors) {
    check(x.ndim() <= 2, "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input has ", x.ndim(),
          " dimensions");
    blocks.push_back(x.ndim() == 2 ? x : reshape(x, Dims{1, x.numel()}));
    rows += blocks.back().sizes()[0];
    columns += blocks.back().sizes()[1];
  }
  for (const Tensor& x : tensors) {
    if (x.is_meta()) return Tensor::meta(Dims{rows, columns}, dtype, x.device());
  }
  const Tensor out = Tensor::empty(Dims{rows, columns}, dtype, tensors[0].device());
  zero_elements(out);
  int64_t row = 0, column = 0;
  for (const Tensor& block : blocks) {
    if (block.numel() != 0) {
      copy_elements(narrow(narrow(out, 0, row, block.sizes()[0]), 1, column, block.sizes()[1]), block);
    }
    row += block.sizes()[0];
    column += block.sizes()[1];
  }
  return out;
}

using gradient::of_first;
using ops::GradArgs;

gradient::GradientFn same_triangle(const char* op) {
  return of_first([op](const GradArgs& args, const Tensor& g) { return ops::call_by_name(op, g, args.inputs[1]); });
}
Tensor diag_gradient(const GradArgs& args, const Tensor& g) {
  const Tensor& x = args.inputs[0].to_tensor();
  if (x.ndim() == 1) return ops::diagonal(g, args.inputs[1].to_int());
  return ops::diagonal_backward(g, x.sizes(), args.inputs[1].to_int(), 0, 1);
}
std::vector<ops::Value> block_diag_gradient(const GradArgs& args) {
  std::vector<Tensor> gradients;
  int64_t row = 0, column = 0;
  const Tensor& g = args.grad_outputs[0];
  for (const ops::Value& item : args.inputs[0].to_list()->items) {
    const Tensor& x = item.to_tensor();
    const int64_t rows = x.ndim() == 2 ? x.sizes()[0] : 1, columns = x.ndim() == 2 ? x.sizes()[1] : x.numel();
    if (g) {
      Tensor part = ops::narrow(ops::narrow(g, 0, row, rows), 1, column, columns);
      if (x.ndim() != 2) part = ops::reshape(part, x.sizes());
      gradients.push_back(part.dtype() == x.dtype() ? part : ops::to(part, x.dtype()));
    } else {
      gradients.emplace_back();
    }
    row += rows;
    column += columns;
  }
  return {ops::make_tensor_list(gradients)};
}

OP("aten::tril")
    .infer(triangle_meta)
    .gradient(same_triangle("aten::tril"))
    .saves("")
    .set<WritesInto>(WritesInto::kSameDType);
OP("aten::triu")
    .infer(triangle_meta)
    .gradient(same_triangle("aten::triu"))
    .saves("")
    .set<WritesInto>(WritesInto::kSameDType);
OP("aten::diag_embed")
    .impl(diag_embed)
    .gradient(of_first([](const GradArgs& args, const Tensor& g) {
      return ops::diagonal(g, args.inputs[1].to_int(), args.inputs[2].to_int(), args.inputs[3].to_int());
    }))
    .saves("")
    .kind(ops::OpKind::kComposite);
OP("aten::diag").impl(diag).gradient(of_first(diag_gradient)).saves("").kind(ops::OpKind::kComposite);
OP("aten::block_diag").impl(block_diag).gradient(block_diag_gradient).saves("").kind(ops::OpKind::kComposite);

}  // namespace
}  // namespace tensord::kernels
