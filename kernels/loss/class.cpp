// nll_loss and its variants, and what losses of labeled samples have in common.
#include "kernels/loss/class.h"

#include <vector>

#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/loss/loss.h"
#include "ops/view.h"

namespace tensord::kernels {

using MaybeTensor = std::optional<Tensor>;

ClassLoss make_class_loss(const Tensor& scores, const Tensor& target, const MaybeTensor& weight, int64_t ignore_index) {
  if (!is_floating(scores.dtype())) fail_dtype("nll_loss", scores.dtype());
  check(target.dtype() == DType::kInt64 || target.dtype() == DType::kUInt8, "expected scalar type Long but found ",
        name_of(target.dtype()));
  ClassLoss loss;
  loss.ignore_index = ignore_index;
  const int64_t ndim = scores.ndim();
  check(ndim >= 1, "Expected 1 or more dimensions (got ", ndim, ")");
  if (ndim == 1) {
    check(target.ndim() == 0 || (target.ndim() == 1 && target.numel() == 1),
          "For 1D input, the target must be a single label, got size ", target.sizes());
    loss.samples = 1;
    loss.classes = scores.sizes()[0];
  } else {
    check(target.ndim() != 0 && target.sizes()[0] == scores.sizes()[0], "Expected input batch_size (",
          scores.sizes()[0], ") to match target batch_size (", target.ndim() == 0 ? 0 : target.sizes()[0], ").");
    check(ndim > 2 || target.ndim() == 1, "0D or 1D target tensor expected, multi-target not supported");
    check(target.ndim() == ndim - 1, "Expected target of ", ndim - 1, " dimensions, got ", target.ndim());
    loss.samples = scores.sizes()[0];
    loss.classes = scores.sizes()[1];
    for (int64_t d = 2; d < ndim; ++d) {
      check(scores.sizes()[d] == target.sizes()[d - 1], "size mismatch (got input: ", scores.sizes(),
            ", target: ", target.sizes());
      loss.inner *= scores.sizes()[d];
    }
  }
  check(!weight || (weight->ndim() == 1 && weight->numel() == loss.classes),
        "weight tensor should be defined either for all ", loss.classes,
        " classes or no classes but got weight tensor of shape: ", weight ? weight->sizes() : Dims{});
  return loss;
}

namespace {

using ops::TensorMeta;
using ops::Value;

void add_nll(const char* name, bool has_planes) {
  const std::string forward = concat(name, "_forward"), backward = concat(name, "_backward");
  const auto check_ndim = [has_planes](const Tensor& x, const Tensor& target) {
    if (has_planes)
      check(x.ndim() == 4 && target.ndim() == 3,
            "only batches of spatial targets supported (3D tensors) but got "
            "targets of dimension: ",
            target.ndim(), " and input of ", x.ndim());
    else
      check(x.ndim() == 1 || x.ndim() == 2, "input tensor should be 1D or 2D");
  };
  ops::OpBuilder(forward, __FILE__, __LINE__)
      .infer([=](const Tensor& x, const Tensor& target, MaybeTensor weight, int64_t reduction, int64_t ignore) {
        check_ndim(x, target);
        check_reduction(reduction);
        make_class_loss(x, target, weight, ignore);
        return std::vector<TensorMeta>{
            {reduction == kLossNone && x.ndim() > 1 ? target.sizes() : Dims{}, x.dtype(), {}, x.device()},
            {Dims{}, x.dtype(), {}, x.device()}};
      })
      .gradient([backward](const ops::GradArgs& args) {
        const auto& v = args.inputs;
        std::vector<Value> out(v.size());
        if (!args.grad_outputs[0].defined()) return out;
        out[0] =
            ops::call_by_name(backward.c_str(), args.grad_outputs[0], v[0], v[1], v[2], v[3], v[4], args.outputs[1]);
        return out;
      })
      .saves("target, weight, result1")
      .reduction();
  ops::OpBuilder(backward, __FILE__, __LINE__)
      .infer([=](const Tensor& g, const Tensor& x, const Tensor& target, MaybeTensor weight, int64_t reduction,
                 int64_t ignore, const Tensor& total_weight) {
        check_ndim(x, target);
        check_reduction(reduction);
        const ClassLoss loss = make_class_loss(x, target, weight, ignore);
        check(g.numel() == (reduction == kLossNone ? loss.count() : 1) && total_weight.numel() == 1,
              "the gradient is of size ", g.sizes());
        return TensorMeta{x.sizes(), x.dtype(), {}, x.device()};
      })
      // Linear in the incoming gradient; its transpose is the loss itself.
      .gradient([forward](const ops::GradArgs& args) {
        const auto& v = args.inputs;
        std::vector<Value> out(v.size());
        if (!args.needs(0)) return out;
        const ops::Op& op = ops::get_op(forward);
        out[0] = ops::run(op, ops::bind(op, {args.grad_outputs[0], v[2], v[3], v[4], v[5]})).at(0);
        return out;
      })
      .saves("target, weight");
}

Tensor nll(const char* forward, const Tensor& x, const Tensor& target, const MaybeTensor& weight, int64_t reduction,
           int64_t ignore) {
  const ops::Op& op = ops::get_op(forward);
  const Value by = weight ? Value(*weight) : Value();
  return ops::run(op, ops::bind(op, {x, target, by, reduction, ignore})).at(0).to_tensor();
}
// More than two dimensions are treated as one plane.
Tensor nll_nd(const Tensor& x, const Tensor& target, MaybeTensor weight, int64_t reduction, int64_t ignore) {
  check(x.ndim() >= 1, "Expected 1 or more dimensions (got ", x.ndim(), ")");
  if (x.ndim() <= 2) return nll("aten::nll_loss_forward", x, target, weight, reduction, ignore);
  const ClassLoss loss = make_class_loss(x, target, weight, ignore);
  const Tensor flat = ops::reshape(x, Dims{loss.samples, loss.classes, 1, loss.inner}),
               labels = ops::reshape(target, Dims{loss.samples, 1, loss.inner});
  const Tensor out = nll("aten::nll_loss2d_forward", flat, labels, weight, reduction, ignore);
  return reduction == kLossNone ? ops::reshape(out, target.sizes()) : out;
}

[[maybe_unused]] const bool class_registered = [] {
  add_nll("aten::nll_loss", false);
  add_nll("aten::nll_loss2d", true);
  const auto composite = [](const char* name, auto function) {
    ops::OpBuilder(name, __FILE__, __LINE__).impl(function).composite();
  };
  composite("aten::nll_loss",
            [](const Tensor& x, const Tensor& target, MaybeTensor weight, int64_t reduction, int64_t ignore) {
              return nll("aten::nll_loss_forward", x, target, weight, reduction, ignore);
            });
  composite("aten::nll_loss2d",
            [](const Tensor& x, const Tensor& target, MaybeTensor weight, int64_t reduction, int64_t ignore) {
              return nll("aten::nll_loss2d_forward", x, target, weight, reduction, ignore);
            });
  composite("aten::nll_loss_nd", nll_nd);
  return true;
}();

}  // namespace
}  // namespace tensord::kernels
