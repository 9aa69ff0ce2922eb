// Gradients of embedding_bag: for the table, dense, and for the weights of samples.
#include "kernels/embedding/embedding_bag_gradient.h"

#include <algorithm>

#include "core/base/execution_context.h"
#include "core/base/parallel.h"
#include "core/ops/run.h"
#include "core/ops/sparse.h"
#include "core/tensor/strided_copy.h"
#include "kernels/embedding/embedding_bag.h"
#include "kernels/embedding/sparse_gradient.h"
#include "kernels/fused/gradient_expr.h"

namespace tensord::kernels {
namespace {

using ops::GradArgs;
using ops::KernelContext;
using ops::TensorMeta;
using ops::Value;
using MaybeTensor = std::optional<Tensor>;

// Where bags begin, and what is in them, read and checked.
struct Bags {
  std::vector<int64_t> indices, offsets;
  int64_t count;
  int64_t padding;

  Bags(const Tensor& index, const Tensor& offset, int64_t count, int64_t rows, int64_t padding)
      : indices(read(index)), offsets(read(offset)), count(count), padding(padding) {
    check(static_cast<int64_t>(offsets.size()) == count || static_cast<int64_t>(offsets.size()) == count + 1,
          "embedding_bag: expected gradients of ", offsets.size(), " bags, but got ", count);
    int64_t before = 0;
    for (const int64_t o : offsets) {
      check(o >= before && o <= static_cast<int64_t>(indices.size()), "embedding_bag: a bag begins at ", o, " of ",
            indices.size(), " indices, after ", before);
      before = o;
    }
    for (const int64_t i : indices) {
      if (i < 0 || i >= rows) fail(ErrorCode::kOutOfRange, "embedding_bag: index ", i, " is out of range");
    }
  }

  int64_t end(int64_t bag) const {
    const auto next = static_cast<size_t>(bag) + 1;
    return next < offsets.size() ? offsets[next] : static_cast<int64_t>(indices.size());
  }
  bool is_padding(int64_t i) const { return indices[static_cast<size_t>(i)] == padding; }
  int64_t size(int64_t bag) const {
    int64_t rows = 0;
    for (int64_t i = offsets[static_cast<size_t>(bag)]; i < end(bag); ++i) rows += is_padding(i) ? 0 : 1;
    return rows;
  }

 private:
  static std::vector<int64_t> read(const Tensor& t) {
    const Tensor wide = t.to(DType::kInt64).contiguous();
    return {wide.data<int64_t>(), wide.data<int64_t>() + wide.numel()};
  }
};

// One term of a sum: row `row` of the table gets `factor` times the gradient of `bag`.
struct Term {
  int64_t row, bag;
  double factor;
};

std::vector<Term> terms_of(const Bags& bags, BagMode mode, bool scales, const MaybeTensor& weights, int64_t rows) {
  std::vector<double> by_row(static_cast<size_t>(rows), scales ? 0.0 : 1.0);
  if (scales) {
    for (const int64_t i : bags.indices) by_row[static_cast<size_t>(i)] += 1;
    for (double& count : by_row) count = 1 / std::max(count, 1.0);
  }
  const Tensor factors = weights ? weights->to(DType::kFloat64).contiguous() : Tensor();
  std::vector<Term> terms;
  terms.reserve(bags.indices.size());
  for (int64_t bag = 0; bag < bags.count; ++bag) {
    const double of_bag = mode == BagMode::kMean ? 1 / std::max(1.0, static_cast<double>(bags.size(bag))) : 1;
    for (int64_t i = bags.offsets[static_cast<size_t>(bag)]; i < bags.end(bag); ++i) {
      if (bags.is_padding(i)) continue;
      const int64_t row = bags.indices[static_cast<size_t>(i)];
      terms.push_back(
          {row, bag, of_bag * by_row[static_cast<size_t>(row)] * (factors ? factors.data<double>()[i] : 1)});
    }
  }
  return terms;
}

// Threads share the rows of the table, so sums do not depend on how many there are.
template <class T>
void add_terms(const std::vector<Term>& terms, const Tensor& grad, const Tensor& out) {
  const int64_t rows = out.sizes()[0], width = out.sizes()[1];
  const T* from = grad.data<T>();
  T* table = out.data<T>();
  const double work = static_cast<double>(rows + static_cast<int64_t>(terms.size())) * static_cast<double>(width);
  // Each range reads all indices, so pieces of it would cost more.
  const ContextPart<&ExecutionContext::cancellation> whole(nullptr);
  parallel_for_cost(rows, 0.2 * work / static_cast<double>(std::max<int64_t>(rows, 1)),
                    [&](int64_t begin, int64_t end) {
                      std::fill(table + begin * width, table + end * width, T(0));
                      for (const Term& term : terms) {
                        if (term.row < begin || term.row >= end) continue;
                        const T factor = static_cast<T>(term.factor);
                        for (int64_t k = 0; k < width; ++k)
                          table[term.row * width + k] += factor * from[term.bag * width + k];
                      }
                    });
}

// Of maxima, each element came from one row; bags without rows came from none.
template <class T>
void add_maxima(const Bags& bags, const Tensor& from_rows, const Tensor& grad, const Tensor& out) {
  const int64_t rows = out.sizes()[0], width = out.sizes()[1];
  const Tensor from = from_rows.to(DType::kInt64).contiguous();
  T* table = out.data<T>();
  std::fill_n(table, out.numel(), T(0));
  for (int64_t bag = 0; bag < bags.count; ++bag) {
    if (bags.size(bag) == 0) continue;
    for (int64_t k = bag * width; k < (bag + 1) * width; ++k) {
      const int64_t row = from.data<int64_t>()[k];
      if (row < 0 || row >= rows) fail(ErrorCode::kOutOfRange, "embedding_bag: index ", row, " is out of range");
      table[row * width + k % width] += grad.data<T>()[k];
    }
  }
}

void check_mode(int64_t mode) { check(mode >= 0 && mode <= 2, "embedding_bag: unknown mode ", mode); }

TensorMeta table_meta(const Tensor& grad, const Tensor& indices, const Tensor&, const Tensor&, const Tensor&,
                      const Tensor& maxima, int64_t rows, bool, int64_t mode, bool, const MaybeTensor& weights,
                      int64_t) {
  check_mode(mode);
  check(grad.ndim() == 2 && rows >= 0, "embedding_bag: expected a gradient of 2 dimensions, but got ", grad.ndim());
  check(mode != static_cast<int64_t>(BagMode::kMax) || maxima.sizes() == grad.sizes(),
        "embedding_bag: expected the rows of maxima to have shape ", grad.sizes());
  check(!weights || weights->numel() == indices.numel(), "embedding_bag: expected ", indices.numel(), " weights");
  return {Dims{rows, grad.sizes()[1]}, grad.dtype(), {}, grad.device()};
}

void table_kernel(const KernelContext&, const Tensor& grad, const Tensor& indices, const Tensor& offsets, const Tensor&,
                  const Tensor&, const Tensor& maxima, int64_t rows, bool scales, int64_t mode, bool,
                  const MaybeTensor& weights, int64_t padding, Tensor& out) {
  const Bags bags(indices, offsets, grad.sizes()[0], rows, padding);
  const DType dtype = grad.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const Tensor dense = grad.to(dtype).contiguous();
  const bool fits = out.dtype() == dtype && out.is_contiguous();
  const Tensor table = fits ? out : Tensor::empty(out.sizes(), dtype);
  const auto run = [&]<class T>() {
    if (static_cast<BagMode>(mode) == BagMode::kMax) return add_maxima<T>(bags, maxima, dense, table);
    add_terms<T>(terms_of(bags, static_cast<BagMode>(mode), scales, weights, rows), dense, table);
  };
  dtype == DType::kFloat64 ? run.template operator()<double>() : run.template operator()<float>();
  if (!fits) strided_copy(out, table.to(out.dtype()));
}

TensorMeta weights_meta(const Tensor& grad, const Tensor& table, const Tensor& indices, const Tensor&, const Tensor&,
                        int64_t mode, int64_t) {
  check(mode == 0, "embedding_bag: per_sample_weights only supported with mode='sum'");
  check(grad.ndim() == 2 && table.ndim() == 2 && grad.sizes()[1] == table.sizes()[1] && grad.dtype() == table.dtype(),
        "embedding_bag: a gradient of shape ", grad.sizes(), " does not fit a table of shape ", table.sizes());
  return {Dims{indices.numel()}, grad.dtype(), {}, grad.device()};
}

// Of each index, its row of the table times the gradient of its bag.
void weights_kernel(const KernelContext&, const Tensor& grad, const Tensor& table, const Tensor& indices,
                    const Tensor& offsets, const Tensor&, int64_t, int64_t padding, Tensor& out) {
  const Bags bags(indices, offsets, grad.sizes()[0], table.sizes()[0], padding);
  const Tensor g = grad.to(DType::kFloat64).contiguous(), rows = table.to(DType::kFloat64).contiguous();
  const Tensor sums = Tensor::empty(out.sizes(), DType::kFloat64);
  std::fill_n(sums.data<double>(), sums.numel(), 0.0);
  const int64_t width = grad.sizes()[1];
  for (int64_t bag = 0; bag < bags.count; ++bag) {
    for (int64_t i = bags.offsets[static_cast<size_t>(bag)]; i < bags.end(bag); ++i) {
      if (bags.is_padding(i)) continue;
      const double* row = rows.data<double>() + bags.indices[static_cast<size_t>(i)] * width;
      double sum = 0;
      for (int64_t k = 0; k < width; ++k) sum += row[k] * g.data<double>()[bag * width + k];
      sums.data<double>()[i] = sum;
    }
  }
  strided_copy(out, sums.to(out.dtype()));
}

Value padding_of(int64_t padding) { return padding < 0 ? Value() : Value(padding); }

// The bags of another table.
Tensor forward(const Tensor& table, const Value& indices, const Value& offsets, const Value& scales, const Value& mode,
               const Value& weights, bool has_last, int64_t padding) {
  return ops::call("aten::embedding_bag.padding_idx", table, indices, offsets, scales, mode, false, weights, has_last,
                   padding_of(padding));
}

// The incoming gradient is one for the table; the call is linear in its own gradient, but by counts of rows.
std::vector<Tensor> gradient_of_table(const GradArgs& args) {
  const auto& in = args.inputs;
  const Tensor &g = args.grad_outputs[0], &grad = in[0].to_tensor();
  const bool has_last = in[2].to_tensor().numel() > grad.sizes()[0];
  std::vector<Tensor> out(12);
  check(!in[7].to_bool(), "embedding_bag: there is no second derivative with scale_grad_by_freq");
  if (args.needs(0) && in[8].to_int() == static_cast<int64_t>(BagMode::kMax)) {
    const Tensor rows = ops::call("aten::to.dtype", in[5], DType::kInt64),
                 picked = ops::call("aten::gather", g, 0, rows);
    const Tensor filled = ops::call("aten::gt.Scalar", ops::call("aten::unsqueeze", in[4], 1), ops::Scalar(0));
    out[0] = ops::call("aten::mul.Tensor", picked, ops::call("aten::to.dtype", filled, g.dtype()));
  } else if (args.needs(0)) {
    out[0] = forward(g, in[1], in[2], false, in[8], in[10], has_last, in[11].to_int());
  }
  if (args.needs(10) && in[10].is_tensor())
    out[10] =
        ops::call("aten::_embedding_bag_per_sample_weights_backward", grad, g, in[1], in[2], in[3], in[8], in[11]);
  return out;
}

std::vector<Tensor> gradient_of_weights(const GradArgs& args) {
  const auto& in = args.inputs;
  const Tensor &g = args.grad_outputs[0], &grad = in[0].to_tensor(), &table = in[1].to_tensor();
  const bool has_last = in[3].to_tensor().numel() > grad.sizes()[0];
  std::vector<Tensor> out(7);
  if (args.needs(0)) out[0] = forward(table, in[2], in[3], false, in[5], g, has_last, in[6].to_int());
  if (args.needs(1))
    out[1] = ops::call("aten::_embedding_bag_backward", grad, in[2], in[3], in[4], in[4], in[4], table.sizes()[0],
                       false, in[5], false, g, in[6]);
  return out;
}

// Of each index, the gradient of its bag times its factor.
Value sparse_table(const Tensor& grad, const Tensor& indices, const Tensor& offsets, const Tensor&, const Tensor&,
                   int64_t rows, bool scales, int64_t mode, const MaybeTensor& weights, int64_t padding) {
  check(mode == 0 || mode == 1, "embedding_bag: sparse gradients are for the modes 'sum' and 'mean'");
  check(!scales, "embedding_bag: scale_grad_by_freq not supported with sparse gradients");
  check(grad.ndim() == 2, "embedding_bag: expected a gradient of 2 dimensions, but got ", grad.ndim());
  const Bags bags(indices, offsets, grad.sizes()[0], rows, padding);
  const int64_t count = indices.numel();
  const Tensor bag_of = Tensor::empty(Dims{count}, DType::kInt64),
               factors = Tensor::empty(Dims{count, 1}, DType::kFloat64);
  check(bags.offsets.empty() ? count == 0 : bags.offsets.front() == 0, "embedding_bag: offsets[0] has to be 0");
  for (int64_t bag = 0; bag < bags.count; ++bag) {
    const double size = static_cast<double>(std::max<int64_t>(bags.size(bag), 1));
    for (int64_t i = bags.offsets[static_cast<size_t>(bag)]; i < bags.end(bag); ++i) {
      bag_of.data<int64_t>()[i] = bag;
      factors.data<double>()[i] = size;
    }
  }
  Tensor values = ops::call("aten::index_select", grad, int64_t{0}, bag_of);
  if (mode == 1) values = ops::call("aten::div.Tensor", values, ops::call("aten::to.dtype", factors, grad.dtype()));
  if (weights) values = ops::call("aten::mul.Tensor", values, ops::call("aten::unsqueeze", *weights, int64_t{1}));
  return sparse_table_gradient(values, indices, rows, padding);
}

OP("aten::_embedding_bag_sparse_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor "
   "bag_size, int num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, int padding_idx=-1) -> "
   "Tensor")
    .direct(sparse_table)
    .composite()
    .dynamic_shape();
OP("aten::_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, "
   "Tensor maximum_indices, int num_weights, bool scale_grad_by_freq, int mode, bool sparse, Tensor? "
   "per_sample_weights, int padding_idx=-1) -> Tensor")
    .infer(table_meta)
    .gradient(gradient_of_table)
    .saves("grad, indices, offsets, bag_size, maximum_indices, per_sample_weights");
KERNEL("aten::_embedding_bag_backward", kCPU, table_kernel);
OP("aten::_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, "
   "Tensor offset2bag, int mode, int padding_idx=-1) -> Tensor")
    .infer(weights_meta)
    .gradient(gradient_of_weights)
    .saves("grad, weight, indices, offsets");
KERNEL("aten::_embedding_bag_per_sample_weights_backward", kCPU, weights_kernel);

}  // namespace

std::vector<Tensor> gradient_of_embedding_bag(const GradArgs& args) {
  const auto &in = args.inputs, &out = args.outputs;
  const Tensor &g = args.grad_outputs[0], &table = in[0].to_tensor();
  int64_t padding = in.size() > 8 && in[8].is_int() ? in[8].to_int() : -1;
  if (padding < 0 && in.size() > 8 && in[8].is_int()) padding += table.sizes()[0];
  std::vector<Tensor> gradients(in.size());
  if (!g.defined()) return gradients;
  if (args.needs(0) && in[5].to_bool())
    gradients[0] = ops::to_tensor(ops::call<Value>("aten::_embedding_bag_sparse_backward", g, in[1], in[2], out[1],
                                                   out[2], table.sizes()[0], in[3], in[4], in[6], padding));
  else if (args.needs(0))
    gradients[0] = ops::call("aten::_embedding_bag_backward", g, in[1], in[2], out[1], out[2], out[3], table.sizes()[0],
                             in[3], in[4], false, in[6], padding);
  if (args.needs(6) && in[6].is_tensor())
    gradients[6] =
        ops::call("aten::_embedding_bag_per_sample_weights_backward", g, table, in[1], in[2], out[1], in[4], padding);
  return gradients;
}

}  // namespace tensord::kernels
