// Pooling: schemas and shapes. Every operator amounts to a list of windows for each spatial dimension (pool.h), so max,
// average and adaptive pooling share two kernels (pool_cpu.cpp).
#include "kernels/pool/pool.h"

#include "core/ops/attributes/batch_independence.h"
#include "core/ops/attributes/rank.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/pool/windows.h"
#include "ops/pool.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::TensorMeta;
using Context = const ops::KernelContext&;

constexpr const char* kMaxNames[] = {"max_pool1d", "max_pool2d", "max_pool3d"};
constexpr const char* kAvgNames[] = {"avg_pool1d", "avg_pool2d", "avg_pool3d"};
constexpr const char* kAdaptiveAvgNames[] = {"adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"};
constexpr const char* kAdaptiveMaxNames[] = {"adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"};

template <size_t kSpatial>
struct Max {
  static constexpr const char* kName = kMaxNames[kSpatial - 1];
  static TensorMeta infer(const Tensor& x, const IntList& kernel, const IntList& stride, const IntList& padding,
                          const IntList& dilation, bool ceil_mode) {
    return pool_meta(
        x, pooled_sizes(kName, x, make_pool_window(kName, kSpatial, kernel, stride, padding, dilation), ceil_mode),
        x.dtype(), kSpatial);
  }
  static std::vector<TensorMeta> infer_both(const Tensor& x, const IntList& kernel, const IntList& stride,
                                            const IntList& padding, const IntList& dilation, bool ceil_mode) {
    return pool_metas(infer(x, kernel, stride, padding, dilation, ceil_mode));
  }
  static PoolProblem problem(const Tensor& x, const Tensor& out, const IntList& kernel, const IntList& stride,
                             const IntList& padding, const IntList& dilation, bool) {
    return {make_pool_windows(x, out, make_pool_window(kName, kSpatial, kernel, stride, padding, dilation)), kSpatial,
            true};
  }
  static void run(Context, const Tensor& x, const IntList& kernel, const IntList& stride, const IntList& padding,
                  const IntList& dilation, bool ceil_mode, Tensor& out) {
    if (out.numel() > 0) run_pool(problem(x, out, kernel, stride, padding, dilation, ceil_mode), x, out);
  }
  static void run_both(Context, const Tensor& x, const IntList& kernel, const IntList& stride, const IntList& padding,
                       const IntList& dilation, bool ceil_mode, Tensor& out, Tensor& indices) {
    if (out.numel() > 0) run_pool(problem(x, out, kernel, stride, padding, dilation, ceil_mode), x, out, indices);
  }
};

// `Divisor` is empty for avg_pool1d, and std::optional<int64_t> for the others.
template <size_t kSpatial, class... Divisor>
struct Avg {
  static constexpr const char* kName = kAvgNames[kSpatial - 1];
  static TensorMeta infer(const Tensor& x, const IntList& kernel, const IntList& stride, const IntList& padding,
                          bool ceil_mode, bool, const Divisor&... fixed) {
    if constexpr (sizeof...(fixed) == 1) (check(!fixed || *fixed != 0, "divisor must be not zero"), ...);
    check(x.dtype() != DType::kBool, kName, ": not supported for bool");
    return pool_meta(
        x, pooled_sizes(kName, x, make_pool_window(kName, kSpatial, kernel, stride, padding, Dims{1}), ceil_mode),
        x.dtype(), kSpatial);
  }
  static PoolProblem problem(const Tensor& x, const Tensor& out, const IntList& kernel, const IntList& stride,
                             const IntList& padding, bool, bool count_include_pad, const Divisor&... fixed) {
    PoolProblem pool{make_pool_windows(x, out, make_pool_window(kName, kSpatial, kernel, stride, padding, Dims{1})),
                     kSpatial, false, count_include_pad ? PoolDivisor::kWithPadding : PoolDivisor::kInside};
    if constexpr (sizeof...(fixed) == 1) {
      const std::optional<int64_t> given = (fixed, ...);
      if (given) {
        pool.divisor = PoolDivisor::kFixed;
        pool.fixed = *given;
      }
    }
    return pool;
  }
  static void run(Context, const Tensor& x, const IntList& kernel, const IntList& stride, const IntList& padding,
                  bool ceil_mode, bool count_include_pad, const Divisor&... fixed, Tensor& out) {
    if (out.numel() > 0)
      run_pool(problem(x, out, kernel, stride, padding, ceil_mode, count_include_pad, fixed...), x, out);
  }
};

template <size_t kSpatial>
struct Adaptive {
  static TensorMeta infer_avg(const Tensor& x, const IntList& output_size) {
    check(x.dtype() != DType::kBool, kAdaptiveAvgNames[kSpatial - 1], ": not supported for bool");
    // As in PyTorch, 3-d averages need channels; 1-d and 2-d ones do not.
    return pool_meta(x, adaptive_pool_sizes(kAdaptiveAvgNames[kSpatial - 1], x, output_size, kSpatial, true), x.dtype(),
                     kSpatial);
  }
  static void run_avg(Context, const Tensor& x, const IntList&, Tensor& out) {
    if (out.numel() > 0) run_pool({adaptive_pool_windows(x, out, kSpatial), kSpatial}, x, out);
  }
  static PoolProblem average(const Tensor& x, const Tensor& out, const IntList&) {
    return {adaptive_pool_windows(x, out, kSpatial), kSpatial};
  }
  static std::vector<TensorMeta> infer_max(const Tensor& x, const IntList& output_size) {
    return pool_metas(pool_meta(
        x, adaptive_pool_sizes(kAdaptiveMaxNames[kSpatial - 1], x, output_size, kSpatial, false), x.dtype(), kSpatial));
  }
  static void run_max(Context, const Tensor& x, const IntList&, Tensor& out, Tensor& indices) {
    if (out.numel() > 0) run_pool({adaptive_pool_windows(x, out, kSpatial), kSpatial, true}, x, out, indices);
  }
};

class PoolCall final : public ops::PreparedCall {
 public:
  PoolCall(PoolProblem pool, const Tensor& input, const Tensor& out)
      : pool_(std::move(pool)),
        extents_(pool_extents(input, out, pool_.spatial)),
        is_last_(is_pool_last(input, out, pool_.spatial)) {
    double window = 1;
    for (const PoolAxis& axis : pool_.windows.axes) window *= static_cast<double>(axis.extent[0]);
    cost = {window * static_cast<double>(out.numel()), static_cast<double>(input.size_bytes() + out.size_bytes())};
  }
  void run(Context, const ops::PreparedRun& memory) const override {
    run_pool(pool_, extents_, is_last_, static_cast<const float*>(memory.inputs[0]),
             static_cast<float*>(memory.outputs[0]));
  }

 private:
  PoolProblem pool_;
  PoolExtents extents_;
  bool is_last_;
};

// Makes the call from `problem(input, output, the other arguments…)`.
template <class... Rest, size_t... I>
std::unique_ptr<ops::PreparedCall> prepare_pool(PoolProblem (*problem)(const Tensor&, const Tensor&, Rest...),
                                                const ops::PrepareArgs& args, std::index_sequence<I...>) {
  if (!args.arguments[0].is_tensor() || args.outputs.size() != 1) return nullptr;
  const Tensor &x = args.arguments[0].to_tensor(), &out = args.outputs[0];
  if (!x.is_meta() || x.dtype() != DType::kFloat32 || out.numel() == 0) return nullptr;
  PoolProblem pool = problem(x, out, ops::UnboxOf<std::decay_t<Rest>>::get(args.arguments[I + 1])...);
  const bool has_order = is_pool_last(x, out, pool.spatial) || (x.is_contiguous() && out.is_contiguous());
  if (!has_order) return nullptr;
  return std::make_unique<PoolCall>(std::move(pool), x, out);
}
template <class... Rest>
ops::PrepareFn preparer(PoolProblem (*problem)(const Tensor&, const Tensor&, Rest...)) {
  return [problem](const ops::PrepareArgs& args) {
    return prepare_pool(problem, args, std::make_index_sequence<sizeof...(Rest)>());
  };
}

// Gradients. A list of one number applies to all dimensions.
Dims each(const ops::Value& list, size_t spatial) {
  const auto given = ops::unbox<Dims>(list);
  return given.size() == 1 ? Dims(spatial, given[0]) : given;
}
template <size_t kSpatial>
std::vector<Tensor> max_gradient(const ops::GradArgs& args) {
  const auto& v = args.inputs;
  std::vector<Tensor> gradients(v.size());
  gradients[0] = ops::tensord_max_pool_backward(args.grad_outputs[0], v[0].to_tensor(), each(v[1], kSpatial),
                                                ops::unbox<Dims>(v[2]), ops::unbox<Dims>(v[3]), ops::unbox<Dims>(v[4]),
                                                v[5].to_bool());
  return gradients;
}
template <size_t kSpatial>
std::vector<Tensor> max_indices_gradient(const ops::GradArgs& args) {
  constexpr const char* kNames[] = {"", "aten::max_pool2d_with_indices_backward",
                                    "aten::max_pool3d_with_indices_backward"};
  const auto& v = args.inputs;
  std::vector<Tensor> gradients(v.size());
  if (!args.grad_outputs[0].defined()) return gradients;
  gradients[0] = kSpatial == 1 ? ops::tensord_max_pool_scatter(args.grad_outputs[0], v[0].to_tensor(),
                                                               args.outputs[1].to_tensor(), 1)
                               : ops::call_by_name(kNames[kSpatial - 1], args.grad_outputs[0], v[0], v[1], v[2], v[3],
                                                   v[4], v[5], args.outputs[1]);
  return gradients;
}
template <size_t kSpatial>
std::vector<Tensor> avg_gradient(const ops::GradArgs& args) {
  constexpr const char* kNames[] = {"tensord::avg_pool1d_backward", "aten::avg_pool2d_backward",
                                    "aten::avg_pool3d_backward"};
  const auto& v = args.inputs;
  std::vector<Tensor> gradients(v.size());
  gradients[0] = ops::call_by_name(kNames[kSpatial - 1], args.grad_outputs[0], v[0], v[1], v[2], v[3], v[4], v[5],
                                   kSpatial == 1 ? ops::Value() : v[v.size() - 1]);
  return gradients;
}
template <size_t kSpatial>
std::vector<Tensor> adaptive_avg_gradient(const ops::GradArgs& args) {
  constexpr const char* kNames[] = {"tensord::_adaptive_avg_pool1d_backward", "aten::_adaptive_avg_pool2d_backward",
                                    "aten::_adaptive_avg_pool3d_backward"};
  std::vector<Tensor> gradients(args.inputs.size());
  gradients[0] = ops::call_by_name(kNames[kSpatial - 1], args.grad_outputs[0], args.inputs[0]);
  return gradients;
}
template <size_t kSpatial>
std::vector<Tensor> adaptive_max_gradient(const ops::GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  if (!args.grad_outputs[0].defined()) return gradients;
  gradients[0] = ops::tensord_max_pool_scatter(args.grad_outputs[0], args.inputs[0].to_tensor(),
                                               args.outputs[1].to_tensor(), static_cast<int64_t>(kSpatial));
  return gradients;
}

using MaybeInt = std::optional<int64_t>;

OP("aten::max_pool1d")
    .set<ops::BatchIndependent>(ops::always_batch_independent)
    .set<ops::KeepsRank>()
    .infer(&Max<1>::infer)
    .gradient(max_gradient<1>)
    .saves("self")
    .keeps_layout();
OP("aten::max_pool2d")
    .set<ops::BatchIndependent>(ops::always_batch_independent)
    .set<ops::KeepsRank>()
    .infer(&Max<2>::infer)
    .gradient(max_gradient<2>)
    .saves("self")
    .keeps_layout();
OP("aten::max_pool3d")
    .set<ops::BatchIndependent>(ops::always_batch_independent)
    .set<ops::KeepsRank>()
    .infer(&Max<3>::infer)
    .gradient(max_gradient<3>)
    .saves("self")
    .keeps_layout();
OP("aten::max_pool1d_with_indices")
    .infer(&Max<1>::infer_both)
    .gradient(max_indices_gradient<1>)
    .saves("result1")
    .keeps_layout();
OP("aten::max_pool2d_with_indices")
    .infer(&Max<2>::infer_both)
    .gradient(max_indices_gradient<2>)
    .saves("result1")
    .keeps_layout();
OP("aten::max_pool3d_with_indices")
    .infer(&Max<3>::infer_both)
    .gradient(max_indices_gradient<3>)
    .saves("result1")
    .keeps_layout();
IMPL("aten::max_pool1d", kCPU, &Max<1>::run);
PREPARE("aten::max_pool1d", kCPU, preparer(&Max<1>::problem));
IMPL("aten::max_pool2d", kCPU, &Max<2>::run);
PREPARE("aten::max_pool2d", kCPU, preparer(&Max<2>::problem));
IMPL("aten::max_pool3d", kCPU, &Max<3>::run);
PREPARE("aten::max_pool3d", kCPU, preparer(&Max<3>::problem));
IMPL("aten::max_pool1d_with_indices", kCPU, &Max<1>::run_both);
IMPL("aten::max_pool2d_with_indices", kCPU, &Max<2>::run_both);
IMPL("aten::max_pool3d_with_indices", kCPU, &Max<3>::run_both);

OP("aten::avg_pool1d")
    .set<ops::BatchIndependent>(ops::always_batch_independent)
    .set<ops::KeepsRank>()
    .infer(&Avg<1>::infer)
    .gradient(avg_gradient<1>)
    .saves("")
    .keeps_layout();
OP("aten::avg_pool2d")
    .set<ops::BatchIndependent>(ops::always_batch_independent)
    .set<ops::KeepsRank>()
    .infer(&Avg<2, MaybeInt>::infer)
    .gradient(avg_gradient<2>)
    .saves("")
    .keeps_layout();
OP("aten::avg_pool3d")
    .set<ops::BatchIndependent>(ops::always_batch_independent)
    .set<ops::KeepsRank>()
    .infer(&Avg<3, MaybeInt>::infer)
    .gradient(avg_gradient<3>)
    .saves("")
    .keeps_layout();
IMPL("aten::avg_pool1d", kCPU, &Avg<1>::run);
PREPARE("aten::avg_pool1d", kCPU, preparer(&Avg<1>::problem));
IMPL("aten::avg_pool2d", kCPU, (&Avg<2, MaybeInt>::run));
PREPARE("aten::avg_pool2d", kCPU, preparer(&Avg<2, MaybeInt>::problem));
IMPL("aten::avg_pool3d", kCPU, (&Avg<3, MaybeInt>::run));
PREPARE("aten::avg_pool3d", kCPU, preparer(&Avg<3, MaybeInt>::problem));

OP("aten::adaptive_avg_pool1d")
    .set<ops::BatchIndependent>(ops::always_batch_independent)
    .set<ops::KeepsRank>()
    .infer(&Adaptive<1>::infer_avg)
    .gradient(adaptive_avg_gradient<1>)
    .saves("")
    .keeps_layout();
OP("aten::adaptive_avg_pool2d")
    .set<ops::BatchIndependent>(ops::always_batch_independent)
    .set<ops::KeepsRank>()
    .infer(&Adaptive<2>::infer_avg)
    .gradient(adaptive_avg_gradient<2>)
    .saves("")
    .keeps_layout();
OP("aten::adaptive_avg_pool3d")
    .set<ops::BatchIndependent>(ops::always_batch_independent)
    .set<ops::KeepsRank>()
    .infer(&Adaptive<3>::infer_avg)
    .gradient(adaptive_avg_gradient<3>)
    .saves("")
    .keeps_layout();
IMPL("aten::adaptive_avg_pool1d", kCPU, &Adaptive<1>::run_avg);
PREPARE("aten::adaptive_avg_pool1d", kCPU, preparer(&Adaptive<1>::average));
IMPL("aten::adaptive_avg_pool2d", kCPU, &Adaptive<2>::run_avg);
PREPARE("aten::adaptive_avg_pool2d", kCPU, preparer(&Adaptive<2>::average));
IMPL("aten::adaptive_avg_pool3d", kCPU, &Adaptive<3>::run_avg);
PREPARE("aten::adaptive_avg_pool3d", kCPU, preparer(&Adaptive<3>::average));

OP("aten::adaptive_max_pool1d")
    .infer(&Adaptive<1>::infer_max)
    .gradient(adaptive_max_gradient<1>)
    .saves("result1")
    .keeps_layout();
OP("aten::adaptive_max_pool2d")
    .infer(&Adaptive<2>::infer_max)
    .gradient(adaptive_max_gradient<2>)
    .saves("result1")
    .keeps_layout();
OP("aten::adaptive_max_pool3d")
    .infer(&Adaptive<3>::infer_max)
    .gradient(adaptive_max_gradient<3>)
    .saves("result1")
    .keeps_layout();
IMPL("aten::adaptive_max_pool1d", kCPU, &Adaptive<1>::run_max);
IMPL("aten::adaptive_max_pool2d", kCPU, &Adaptive<2>::run_max);
IMPL("aten::adaptive_max_pool3d", kCPU, &Adaptive<3>::run_max);

}  // namespace
}  // namespace tensord::kernels
