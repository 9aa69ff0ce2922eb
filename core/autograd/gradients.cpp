#include "core/autograd/gradients.h"

#include "core/autograd/differentiable.h"
#include "core/ops/run.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::autograd {
namespace {

using ops::Value;

Tensor run_one(const ops::Op& op, std::initializer_list<Value> arguments) {
  std::vector<Value> returns;
  ops::run(op, std::span(arguments.begin(), arguments.size()), returns);
  return returns.front().to_tensor();
}

bool is_expandable(const Dims& from, const Dims& to) {
  if (from.size() > to.size()) return false;
  for (size_t i = 1; i <= from.size(); ++i) {
    const int64_t size = from[from.size() - i];
    if (size != 1 && size != to[to.size() - i]) return false;
  }
  return true;
}

Tensor sum_to(const Tensor& gradient, const Dims& sizes) {
  Dims dims;
  const size_t extra = gradient.sizes().size() - sizes.size();
  for (size_t i = 0; i < gradient.sizes().size(); ++i) {
    if (i < extra || sizes[i - extra] == 1) dims.push_back(static_cast<int64_t>(i));
  }
  const Tensor sum = ops::sum(gradient, dims, true);
  return extra == 0 ? sum : ops::reshape(sum, sizes);
}

bool is_ours_alone(const Tensor& tensor) {
  return tensor.impl()->use_count() == 1 && tensor.is_strided() && tensor.storage() &&
         tensor.storage()->use_count() == 1;
}

}  // namespace

// A sparse tensor can be added to a dense one, but not the other way around.
Tensor sum_of(const Tensor& a, const Tensor& b) {
  static const ops::Op& add = ops::get_op("aten::add.Tensor");
  return !a.is_strided() && b.is_strided() ? run_one(add, {b, a, 1}) : run_one(add, {a, b, 1});
}

Tensor copy_of(const Tensor& gradient) {
  static const ops::Op& clone = ops::get_op("aten::clone");
  return run_one(clone, {gradient, Value()});
}

bool has_nan(const Tensor& gradient) { return ops::any(ops::isnan(gradient)).item_bool(); }

void add_gradient(Tensor& total, Tensor gradient) {
  static const ops::Op& add = ops::get_op("aten::add_.Tensor");
  if (!total.defined()) {
    total = std::move(gradient);
  } else if (!is_grad_enabled() && is_ours_alone(total) && total.storage()->is_writable() &&
             is_non_overlapping_and_dense(total.sizes(), total.strides())) {
    run_one(add, {total, gradient, 1});
  } else {
    total = sum_of(total, gradient);
  }
}

bool fits(const Tensor& gradient, const Tensor& like) {
  return gradient.sizes() == like.sizes() && gradient.dtype() == like.dtype() && gradient.device() == like.device();
}

std::string fit_gradient(Tensor& gradient, const Tensor& like) {
  if (!(gradient.device() == like.device())) {
    return concat("expected device ", to_string(like.device()), " but got ", to_string(gradient.device()));
  }
  if (!is_differentiable(gradient.dtype())) return concat("got ", name_of(gradient.dtype()));
  if (gradient.sizes() != like.sizes()) {
    if (!gradient.is_strided()) return concat("got ", describe(gradient), " but expected ", to_string(like.sizes()));
    if (!is_expandable(like.sizes(), gradient.sizes())) {
      return concat("got ", to_string(gradient.sizes()), " but expected shape compatible with ",
                    to_string(like.sizes()));
    }
    gradient = sum_to(gradient, like.sizes());
  }
  if (gradient.dtype() != like.dtype()) {
    static const ops::Op& to = ops::get_op("aten::to.dtype");
    gradient = run_one(to, {gradient, static_cast<int64_t>(like.dtype()), false, false, Value()});
  }
  return {};
}

}  // namespace tensord::autograd
