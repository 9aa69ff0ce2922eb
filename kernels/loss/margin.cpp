// multi_margin_loss and multilabel_margin_loss: how close the scores of wrong classes come to those of right ones.
#include <vector>

#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/expr/expr.h"
#include "kernels/loss/loss.h"
#include "kernels/loss/margin.h"
#include "ops/loss.h"

namespace tensord::kernels {

MarginRows::MarginRows(const char* op, const Tensor& x, const Tensor& target, bool has_label_lists) {
  if (!is_floating(x.dtype())) fail_dtype(op, x.dtype());
  check(target.dtype() == DType::kInt64, "expected scalar type Long but found ", name_of(target.dtype()));
  check(x.ndim() <= 2 && (x.ndim() < 2 || x.sizes()[1] > 0),
        "Expected non-empty vector or matrix with optional 0-dim batch size, but got: ", x.sizes());
  count = x.ndim() < 2 ? 1 : x.sizes()[0];
  classes = x.ndim() == 0 ? 1 : x.sizes().back();
  const bool fits = has_label_lists ? target.ndim() == x.ndim() && target.sizes() == x.sizes()
                                    : target.ndim() <= 1 && target.numel() == count;
  check(fits, "inconsistent target size, got: ", target.sizes());
}

namespace {

using ops::Scalar;
using ops::TensorMeta;
using MaybeTensor = std::optional<Tensor>;

Dims loss_sizes(const MarginRows& rows, const Tensor& x, int64_t reduction) {
  return reduction == kLossNone && x.ndim() == 2 ? Dims{rows.count} : Dims{};
}

TensorMeta infer_multi_margin(const Tensor& x, const Tensor& target, const Scalar& p, const MaybeTensor& weight,
                              int64_t reduction) {
  const MarginRows rows("multi_margin_loss", x, target, false);
  check(p.to_double() == 1 || p.to_double() == 2, "only p == 1 and p == 2 supported");
  check(!weight || (weight->ndim() <= 1 && weight->numel() == rows.classes), "inconsistent weight size");
  check_reduction(reduction);
  return {loss_sizes(rows, x, reduction), x.dtype(), {}, x.device()};
}

OP("aten::multi_margin_loss")
    .infer([](const Tensor& x, const Tensor& target, Scalar p, Scalar, MaybeTensor weight, int64_t reduction) {
      return infer_multi_margin(x, target, p, weight, reduction);
    })
    .gradient(gradient::of_first([](const ops::GradArgs& args, const Tensor& g) {
      const auto& v = args.inputs;
      return ops::multi_margin_loss_backward(g, v[0].to_tensor(), v[1].to_tensor(), v[2].to_scalar(), v[3].to_scalar(),
                                             ops::unbox<std::optional<Tensor>>(v[4]), v[5].to_int());
    }))
    .saves("self, target, weight");

// As in PyTorch, the backward has no gradient of its own.
OP("aten::multi_margin_loss_backward")
    .infer([](const Tensor& g, const Tensor& x, const Tensor& target, Scalar p, Scalar, MaybeTensor weight,
              int64_t reduction) {
      const TensorMeta loss = infer_multi_margin(x, target, p, weight, reduction);
      check(g.numel() == checked_numel(loss.sizes), "the gradient is of size ", g.sizes());
      return TensorMeta{x.sizes(), x.dtype(), {}, x.device()};
    });

// --- multilabel_margin_loss: sum over right classes y and wrong ones c of max(0, 1 - x_y + x_c) / classes. A row's
// labels end before the first negative one.

OP("aten::multilabel_margin_loss_forward")
    .infer([](const Tensor& x, const Tensor& target, int64_t reduction) {
      const MarginRows rows("multilabel_margin_loss", x, target, true);
      check_reduction(reduction);
      return std::vector<TensorMeta>{{loss_sizes(rows, x, reduction), x.dtype(), {}, x.device()},
                                     {target.sizes(), x.dtype(), {}, x.device()}};
    })
    .gradient(gradient::of_first([](const ops::GradArgs& args, const Tensor& g) {
      return ops::multilabel_margin_loss_backward(g, args.inputs[0].to_tensor(), args.inputs[1].to_tensor(),
                                                  args.inputs[2].to_int(), args.outputs[1].to_tensor());
    }))
    .saves("self, target, result1");
OP("aten::multilabel_margin_loss_backward")
    .infer([](const Tensor& g, const Tensor& x, const Tensor& target, int64_t reduction, const Tensor& is_target) {
      const MarginRows rows("multilabel_margin_loss", x, target, true);
      check(g.numel() == checked_numel(loss_sizes(rows, x, reduction)), "the gradient is of size ", g.sizes());
      check(is_target.numel() == x.numel(), "is_target is of size ", is_target.sizes());
      return TensorMeta{x.sizes(), x.dtype(), {}, x.device()};
    });
OP("aten::multilabel_margin_loss")
    .impl([](const Tensor& x, const Tensor& target, int64_t reduction) {
      return std::get<0>(ops::multilabel_margin_loss_forward(x, target, reduction));
    })
    .composite();

}  // namespace
}  // namespace tensord::kernels
