// The backward of pooling. For max pooling without indices it finds them again, which costs less than keeping 8 bytes
// for each output.
#include <vector>

#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/expr/expr.h"
#include "kernels/pool/windows.h"
#include "ops/index.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::TensorMeta;
using ops::Value;
using MaybeInt = std::optional<int64_t>;

TensorMeta infer_like(const Tensor& g, const Tensor& x, const Dims& out_sizes, size_t spatial) {
  const auto ndim = x.sizes().size();
  check((ndim == spatial + 1 || ndim == spatial + 2) && out_sizes.size() == ndim, "the input has ", ndim,
        " dimensions, the result ", out_sizes.size());
  for (size_t d = 0; d < ndim - spatial; ++d) {
    check(x.sizes()[d] == out_sizes[d], "the input is of size ", x.sizes(), ", the result of ", to_string(out_sizes));
  }
  check(g.sizes() == out_sizes, "the gradient is of size ", g.sizes(), ", expected ", to_string(out_sizes));
  if (!is_floating(x.dtype())) fail_dtype("pool_backward", x.dtype());
  return pool_meta(x, x.sizes(), x.dtype(), spatial);
}

// --- max pooling

// The elements of the planes of `a` at `indices`.
Tensor gather(const Tensor& a, const Tensor& indices, size_t spatial) {
  const auto flat = [&](const Tensor& x) {
    Dims sizes(x.sizes().span().first(x.sizes().size() - spatial));
    sizes.push_back(-1);
    return ops::reshape(x, sizes);
  };
  return ops::reshape(ops::gather(flat(a), -1, flat(indices)), indices.sizes());
}
ops::GradientFn gather_gradient(size_t indices, size_t spatial) {
  return [=](const ops::GradArgs& args) {
    std::vector<Value> out(args.inputs.size());
    const Tensor& at = args.inputs[indices].to_tensor();
    const size_t dims = spatial != 0 ? spatial : static_cast<size_t>(args.inputs[3].to_int());
    if (args.needs(0)) out[0] = gather(args.grad_outputs[0], at, dims);
    if (args.needs(1)) out[1] = gradient::zeros_like(args.inputs[1]);
    return out;
  };
}

// The indices are the forward's.
std::vector<Value> max_pool_backward_gradient(const ops::GradArgs& args) {
  std::vector<Value> out(args.inputs.size());
  if (!args.needs(0)) return out;
  const auto& v = args.inputs;
  const size_t spatial = v[2].to_list()->items.size();
  constexpr const char* kNames[] = {"aten::max_pool1d_with_indices", "aten::max_pool2d_with_indices",
                                    "aten::max_pool3d_with_indices"};
  const ops::Op& op = ops::get_op(kNames[spatial - 1]);
  const std::vector<Value> results =
      ops::run(op, ops::bind(op, {ops::detach(v[1].to_tensor()), v[2], v[3], v[4], v[5], v[6]}));
  out[0] = gather(args.grad_outputs[0], results[1].to_tensor(), spatial);
  return out;
}

TensorMeta infer_max_backward(const Tensor& g, const Tensor& x, const IntList& kernel, const IntList& stride,
                              const IntList& padding, const IntList& dilation, bool ceil_mode) {
  check(!kernel.empty() && kernel.size() <= 3, "kernel_size must have 1 to 3 items");
  const PoolWindow w = make_pool_window("max_pool_backward", kernel.size(), kernel, stride, padding, dilation);
  return infer_like(g, x, pooled_sizes("max_pool_backward", x, w, ceil_mode), kernel.size());
}

// The lists of windows have one item for each spatial dimension.
OP("tensord::max_pool_backward").infer(infer_max_backward).gradient(max_pool_backward_gradient).saves("self");

// For any pooling with indices over the last `spatial` dimensions.
OP("tensord::max_pool_scatter")
    .infer([](const Tensor& g, const Tensor& x, const Tensor& indices, int64_t spatial) {
      check(spatial >= 1 && spatial <= 3, "spatial must be 1 to 3");
      check(indices.dtype() == DType::kInt64, "indices must be int64");
      return infer_like(g, x, indices.sizes(), static_cast<size_t>(spatial));
    })
    .gradient(gather_gradient(2, 0))
    .saves("indices");

// Under PyTorch's names, with windows of one number or one for each dimension.
template <size_t kSpatial>
void add_indices_backward() {
  const std::string n = std::to_string(kSpatial);
  const std::string windowed = concat("aten::max_pool", n, "d_with_indices_backward"),
                    adaptive = concat("aten::adaptive_max_pool", n, "d_backward");
  ops::OpBuilder(windowed, __FILE__, __LINE__)
      .infer([](const Tensor& g, const Tensor& x, const IntList& kernel, const IntList& stride, const IntList& padding,
                const IntList& dilation, bool ceil_mode, const Tensor& indices) {
        const char* name = "max_pool_with_indices_backward";
        const PoolWindow w = make_pool_window(name, kSpatial, kernel, stride, padding, dilation);
        const Dims sizes = pooled_sizes(name, x, w, ceil_mode);
        check(indices.dtype() == DType::kInt64 && indices.sizes() == sizes, "indices must be int64 of size ",
              to_string(sizes), ", got ", describe(indices));
        return infer_like(g, x, sizes, kSpatial);
      })
      .gradient(gather_gradient(7, kSpatial))
      .saves("indices");
  ops::OpBuilder(adaptive, __FILE__, __LINE__)
      .infer([](const Tensor& g, const Tensor& x, const Tensor& indices) {
        check(indices.dtype() == DType::kInt64, "indices must be int64");
        return infer_like(g, x, indices.sizes(), kSpatial);
      })
      .gradient(gather_gradient(2, kSpatial))
      .saves("indices");
}

// --- averages

template <size_t kSpatial>
void add_average_backward(const char* name_space) {
  const std::string n = std::to_string(kSpatial);
  const std::string name = concat(name_space, "::avg_pool", n, "d_backward"),
                    forward = concat("aten::avg_pool", n, "d");
  ops::OpBuilder(name, __FILE__, __LINE__)
      .infer([](const Tensor& g, const Tensor& x, const IntList& kernel, const IntList& stride, const IntList& padding,
                bool ceil_mode, bool, MaybeInt divisor) {
        check(!divisor || *divisor != 0, "divisor must be not zero");
        const PoolWindow w = make_pool_window("avg_pool_backward", kSpatial, kernel, stride, padding, Dims{1});
        return infer_like(g, x, pooled_sizes("avg_pool_backward", x, w, ceil_mode), kSpatial);
      })
      .gradient([forward](const ops::GradArgs& args) {
        const auto& v = args.inputs;
        std::vector<Value> out(v.size()), arguments{args.grad_outputs[0], v[2], v[3], v[4], v[5], v[6]};
        if (kSpatial > 1) arguments.push_back(v[7]);
        const ops::Op& op = ops::get_op(forward);
        if (args.needs(0)) out[0] = ops::run(op, ops::bind(op, arguments)).at(0);
        if (args.needs(1)) out[1] = gradient::zeros_like(v[1]);
        return out;
      })
      .saves("");
}

template <size_t kSpatial>
void add_adaptive_backward(const char* name_space) {
  const std::string name = concat(name_space, "::_adaptive_avg_pool", kSpatial, "d_backward"),
                    forward = concat("aten::adaptive_avg_pool", kSpatial, "d");
  ops::OpBuilder(name, __FILE__, __LINE__)
      .infer([](const Tensor& g, const Tensor& x) {
        check(g.ndim() == x.ndim() && g.sizes().size() >= kSpatial, "the gradient has ", g.ndim(), " dimensions");
        const Dims spatial(g.sizes().span().last(kSpatial));
        return infer_like(g, x, adaptive_pool_sizes("adaptive_avg_pool_backward", x, spatial, kSpatial, true),
                          kSpatial);
      })
      .gradient([forward](const ops::GradArgs& args) {
        std::vector<Value> out(2);
        const Dims& sizes = args.inputs[0].to_tensor().sizes();
        const Tensor& incoming = args.grad_outputs[0];
        // Windows without elements have no mean; their gradients are zeros.
        if (args.needs(0) && incoming.numel() == 0) out[0] = gradient::zeros_like(args.inputs[0]);
        if (args.needs(0) && incoming.numel() > 0) {
          out[0] = ops::call_by_name(forward.c_str(), incoming, Dims(sizes.span().last(kSpatial)));
        }
        if (args.needs(1)) out[1] = gradient::zeros_like(args.inputs[1]);
        return out;
      })
      .saves("");
}

[[maybe_unused]] const bool pool_backward_registered = [] {
  add_indices_backward<2>();
  add_indices_backward<3>();
  add_average_backward<1>("tensord");
  add_average_backward<2>("aten");
  add_average_backward<3>("aten");
  add_adaptive_backward<1>("tensord");
  add_adaptive_backward<2>("aten");
  add_adaptive_backward<3>("aten");
  return true;
}();

}  // namespace
}  // namespace tensord::kernels
