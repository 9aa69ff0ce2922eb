// Pooling: schemas and shapes. Every form comes down to a list of windows for each spatial
// dimension (pool.h), so max, average and adaptive pooling share two kernels (pool_cpu.cpp).
#include "kernels/pool.h"

#include "core/ops/op.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::TensorMeta;
using Context = const ops::KernelContext&;

struct Window {
  Dims kernel, stride, padding, dilation;
};

Dims repeated(const char* op, const Dims& list, size_t count, const char* name) {
  if (list.size() == 1) return Dims(count, list[0]);
  check(list.size() == count, op, ": ", name, " must either be a single int, or a tuple of ", count, " ints");
  return list;
}

Window make_window(const char* op, size_t spatial, const Dims& kernel, const Dims& stride, const Dims& padding,
                   const Dims& dilation) {
  Window w{repeated(op, kernel, spatial, "kernel_size"),
           {},
           repeated(op, padding, spatial, "padding"),
           repeated(op, dilation, spatial, "dilation")};
  w.stride = stride.empty() ? w.kernel : repeated(op, stride, spatial, "stride");
  for (size_t i = 0; i < spatial; ++i) {
    constexpr int64_t kMost = int64_t{1} << 31;
    check(w.kernel[i] > 0 && w.kernel[i] < kMost, op, ": kernel size should be greater than zero, but got ",
          to_string(w.kernel));
    check(w.stride[i] > 0 && w.stride[i] < kMost, op, ": stride should be greater than zero, but got ",
          to_string(w.stride));
    check(w.dilation[i] > 0 && w.dilation[i] < kMost, op, ": dilation should be greater than zero, but got ",
          to_string(w.dilation));
    check(w.padding[i] >= 0 && w.padding[i] <= w.kernel[i] / 2, op,
          ": pad should be smaller than or equal to half of kernel size, but got padding = ", to_string(w.padding),
          ", kernel_size = ", to_string(w.kernel));
  }
  return w;
}

void check_input(const char* op, const Tensor& input, size_t spatial) {
  const auto ndim = static_cast<size_t>(input.ndim());
  check(ndim == spatial + 1 || ndim == spatial + 2, op, ": Expected ", spatial + 1, "D or ", spatial + 2,
        "D (batch mode) tensor for input, but got ", to_string(input.sizes()));
  for (size_t d = ndim == spatial + 2 ? 1 : 0; d < ndim; ++d) {
    check(input.sizes()[d] > 0, op,
          "(): Expected input to have non-zero size for non-batch dimensions, but input has sizes ",
          to_string(input.sizes()), " with dimension ", d, " being empty");
  }
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

Dims pooled_sizes(const char* op, const Tensor& input, const Window& w, bool ceil_mode) {
  const size_t spatial = w.kernel.size(), first = input.sizes().size() - spatial;
  check_input(op, input, spatial);
  Dims sizes = input.sizes();
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t in = sizes[first + i], pad = w.padding[i];
    int64_t out = floor_div(in + 2 * pad - w.dilation[i] * (w.kernel[i] - 1) - 1 + (ceil_mode ? w.stride[i] - 1 : 0),
                            w.stride[i]) +
                  1;
    // The last window must start inside of the input or its near padding.
    if (ceil_mode && (out - 1) * w.stride[i] >= in + pad) --out;
    check(out >= 1, "Given input size: ", to_string(input.sizes().span().subspan(first - 1)),
          ". Calculated output size would be ", out, " at dimension ", i, ". Output size is too small");
    sizes[first + i] = out;
  }
  return sizes;
}

TensorMeta like_input(const Tensor& input, const Dims& sizes, DType dtype) {
  TensorMeta meta{sizes, dtype, {}, input.device()};
  if (input.ndim() >= 4 && input.is_channels_last() && !input.is_contiguous())
    meta.strides = channels_last_strides(sizes);
  return meta;
}

std::vector<TensorMeta> with_indices(TensorMeta values) {
  TensorMeta indices = values;
  indices.dtype = DType::kInt64;
  return {values, indices};
}

PoolWindows make_windows(const Tensor& input, const Tensor& out, const Window& w) {
  PoolWindows windows;
  const size_t spatial = w.kernel.size(), lead = 3 - spatial;
  for (size_t i = 0; i < lead; ++i) windows.axes[i] = {{0}, {1}, {1}, 1};
  for (size_t i = 0; i < spatial; ++i) {
    PoolAxis& axis = windows.axes[lead + i];
    const int64_t in = input.sizes()[input.sizes().size() - spatial + i],
                  outs = out.sizes()[out.sizes().size() - spatial + i];
    axis.step = w.dilation[i];
    for (int64_t o = 0; o < outs; ++o) {
      int64_t begin = o * w.stride[i] - w.padding[i];
      const int64_t end = begin + (w.kernel[i] - 1) * axis.step + 1;
      axis.extent.push_back(std::min(end, in + w.padding[i]) - begin);
      if (begin < 0) begin += (-begin + axis.step - 1) / axis.step * axis.step;
      axis.begin.push_back(begin);
      axis.end.push_back(std::min(end, in));
    }
  }
  return windows;
}

PoolWindows adaptive_windows(const Tensor& input, const Tensor& out, size_t spatial) {
  PoolWindows windows;
  const size_t lead = 3 - spatial;
  for (size_t i = 0; i < lead; ++i) windows.axes[i] = {{0}, {1}, {1}, 1};
  for (size_t i = 0; i < spatial; ++i) {
    PoolAxis& axis = windows.axes[lead + i];
    const int64_t in = input.sizes()[input.sizes().size() - spatial + i],
                  outs = out.sizes()[out.sizes().size() - spatial + i];
    for (int64_t o = 0; o < outs; ++o) {
      axis.begin.push_back(o * in / outs);
      axis.end.push_back(((o + 1) * in + outs - 1) / outs);
      axis.extent.push_back(axis.end.back() - axis.begin.back());
    }
  }
  return windows;
}

Dims adaptive_sizes(const char* op, const Tensor& input, const Dims& output_size, size_t spatial) {
  check(output_size.size() == spatial || output_size.size() == 1, op, ": output_size must be ", spatial);
  check_input(op, input, spatial);
  Dims sizes = input.sizes();
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t size = output_size[output_size.size() == 1 ? 0 : i];
    check(size >= 0 && size < (int64_t{1} << 24), op,
          ": elements of output_size must be greater than or equal to 0, but got ", to_string(output_size));
    sizes[sizes.size() - spatial + i] = size;
  }
  return sizes;
}

constexpr const char* kMaxNames[] = {"max_pool1d", "max_pool2d", "max_pool3d"};
constexpr const char* kAvgNames[] = {"avg_pool1d", "avg_pool2d", "avg_pool3d"};
constexpr const char* kAdaptiveAvgNames[] = {"adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"};
constexpr const char* kAdaptiveMaxNames[] = {"adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"};

template <size_t kSpatial>
struct Max {
  static constexpr const char* kName = kMaxNames[kSpatial - 1];
  static TensorMeta infer(const Tensor& x, const IntList& kernel, const IntList& stride, const IntList& padding,
                          const IntList& dilation, bool ceil_mode) {
    return like_input(
        x, pooled_sizes(kName, x, make_window(kName, kSpatial, kernel, stride, padding, dilation), ceil_mode),
        x.dtype());
  }
  static std::vector<TensorMeta> infer_both(const Tensor& x, const IntList& kernel, const IntList& stride,
                                            const IntList& padding, const IntList& dilation, bool ceil_mode) {
    return with_indices(infer(x, kernel, stride, padding, dilation, ceil_mode));
  }
  static PoolProblem problem(const Tensor& x, const Tensor& out, const IntList& kernel, const IntList& stride,
                             const IntList& padding, const IntList& dilation, bool) {
    return {make_windows(x, out, make_window(kName, kSpatial, kernel, stride, padding, dilation)), kSpatial, true};
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

// `Divisor` is empty for avg_pool1d and std::optional<int64_t> for the others.
template <size_t kSpatial, class... Divisor>
struct Avg {
  static constexpr const char* kName = kAvgNames[kSpatial - 1];
  static TensorMeta infer(const Tensor& x, const IntList& kernel, const IntList& stride, const IntList& padding,
                          bool ceil_mode, bool, const Divisor&... fixed) {
    if constexpr (sizeof...(fixed) == 1) (check(!fixed || *fixed != 0, "divisor must be not zero"), ...);
    check(x.dtype() != DType::kBool, kName, ": not supported for bool");
    return like_input(x,
                      pooled_sizes(kName, x, make_window(kName, kSpatial, kernel, stride, padding, Dims{1}), ceil_mode),
                      x.dtype());
  }
  static PoolProblem problem(const Tensor& x, const Tensor& out, const IntList& kernel, const IntList& stride,
                             const IntList& padding, bool, bool count_include_pad, const Divisor&... fixed) {
    PoolProblem pool{make_windows(x, out, make_window(kName, kSpatial, kernel, stride, padding, Dims{1})), kSpatial,
                     false, count_include_pad ? PoolDivisor::kWithPadding : PoolDivisor::kInside};
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
    return like_input(x, adaptive_sizes(kAdaptiveAvgNames[kSpatial - 1], x, output_size, kSpatial), x.dtype());
  }
  static void run_avg(Context, const Tensor& x, const IntList&, Tensor& out) {
    if (out.numel() > 0) run_pool({adaptive_windows(x, out, kSpatial), kSpatial}, x, out);
  }
  static PoolProblem average(const Tensor& x, const Tensor& out, const IntList&) {
    return {adaptive_windows(x, out, kSpatial), kSpatial};
  }
  static std::vector<TensorMeta> infer_max(const Tensor& x, const IntList& output_size) {
    return with_indices(
        like_input(x, adaptive_sizes(kAdaptiveMaxNames[kSpatial - 1], x, output_size, kSpatial), x.dtype()));
  }
  static void run_max(Context, const Tensor& x, const IntList&, Tensor& out, Tensor& indices) {
    if (out.numel() > 0) run_pool({adaptive_windows(x, out, kSpatial), kSpatial, true}, x, out, indices);
  }
};

class PoolCall final : public ops::PreparedCall {
 public:
  PoolCall(PoolProblem pool, const Tensor& input, const Tensor& out)
      : pool_(std::move(pool)), extents_(pool_extents(input, out, pool_.spatial)), is_last_(is_pool_last(input, out)) {
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
  const bool has_order = is_pool_last(x, out) || (x.is_contiguous() && out.is_contiguous());
  if (!x.is_meta() || x.dtype() != DType::kFloat32 || !has_order || out.numel() == 0) return nullptr;
  return std::make_unique<PoolCall>(problem(x, out, ops::UnboxOf<std::decay_t<Rest>>::get(args.arguments[I + 1])...), x,
                                    out);
}
template <class... Rest>
ops::PrepareFn preparer(PoolProblem (*problem)(const Tensor&, const Tensor&, Rest...)) {
  return [problem](const ops::PrepareArgs& args) {
    return prepare_pool(problem, args, std::make_index_sequence<sizeof...(Rest)>());
  };
}

using MaybeInt = std::optional<int64_t>;
constexpr auto kCPU = DeviceKind::kCPU;

OP("aten::max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool "
   "ceil_mode=False) -> Tensor")
    .infer(&Max<1>::infer)
    .keeps_layout();
OP("aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool "
   "ceil_mode=False) -> Tensor")
    .infer(&Max<2>::infer)
    .keeps_layout();
OP("aten::max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool "
   "ceil_mode=False) -> Tensor")
    .infer(&Max<3>::infer)
    .keeps_layout();
OP("aten::max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] "
   "dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)")
    .infer(&Max<1>::infer_both)
    .keeps_layout();
OP("aten::max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] "
   "dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)")
    .infer(&Max<2>::infer_both)
    .keeps_layout();
OP("aten::max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] "
   "dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)")
    .infer(&Max<3>::infer_both)
    .keeps_layout();
KERNEL("aten::max_pool1d", kCPU, &Max<1>::run);
PREPARE("aten::max_pool1d", kCPU, preparer(&Max<1>::problem));
KERNEL("aten::max_pool2d", kCPU, &Max<2>::run);
PREPARE("aten::max_pool2d", kCPU, preparer(&Max<2>::problem));
KERNEL("aten::max_pool3d", kCPU, &Max<3>::run);
PREPARE("aten::max_pool3d", kCPU, preparer(&Max<3>::problem));
KERNEL("aten::max_pool1d_with_indices", kCPU, &Max<1>::run_both);
KERNEL("aten::max_pool2d_with_indices", kCPU, &Max<2>::run_both);
KERNEL("aten::max_pool3d_with_indices", kCPU, &Max<3>::run_both);

OP("aten::avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, bool "
   "count_include_pad=True) -> Tensor")
    .infer(&Avg<1>::infer)
    .keeps_layout();
OP("aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool "
   "count_include_pad=True, int? divisor_override=None) -> Tensor")
    .infer(&Avg<2, MaybeInt>::infer)
    .keeps_layout();
OP("aten::avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool "
   "count_include_pad=True, int? divisor_override=None) -> Tensor")
    .infer(&Avg<3, MaybeInt>::infer)
    .keeps_layout();
KERNEL("aten::avg_pool1d", kCPU, &Avg<1>::run);
PREPARE("aten::avg_pool1d", kCPU, preparer(&Avg<1>::problem));
KERNEL("aten::avg_pool2d", kCPU, (&Avg<2, MaybeInt>::run));
PREPARE("aten::avg_pool2d", kCPU, preparer(&Avg<2, MaybeInt>::problem));
KERNEL("aten::avg_pool3d", kCPU, (&Avg<3, MaybeInt>::run));
PREPARE("aten::avg_pool3d", kCPU, preparer(&Avg<3, MaybeInt>::problem));

OP("aten::adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor")
    .infer(&Adaptive<1>::infer_avg)
    .keeps_layout();
OP("aten::adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor")
    .infer(&Adaptive<2>::infer_avg)
    .keeps_layout();
OP("aten::adaptive_avg_pool3d(Tensor self, int[3] output_size) -> Tensor")
    .infer(&Adaptive<3>::infer_avg)
    .keeps_layout();
KERNEL("aten::adaptive_avg_pool1d", kCPU, &Adaptive<1>::run_avg);
PREPARE("aten::adaptive_avg_pool1d", kCPU, preparer(&Adaptive<1>::average));
KERNEL("aten::adaptive_avg_pool2d", kCPU, &Adaptive<2>::run_avg);
PREPARE("aten::adaptive_avg_pool2d", kCPU, preparer(&Adaptive<2>::average));
KERNEL("aten::adaptive_avg_pool3d", kCPU, &Adaptive<3>::run_avg);
PREPARE("aten::adaptive_avg_pool3d", kCPU, preparer(&Adaptive<3>::average));

OP("aten::adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)")
    .infer(&Adaptive<1>::infer_max)
    .keeps_layout();
OP("aten::adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)")
    .infer(&Adaptive<2>::infer_max)
    .keeps_layout();
OP("aten::adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)")
    .infer(&Adaptive<3>::infer_max)
    .keeps_layout();
KERNEL("aten::adaptive_max_pool1d", kCPU, &Adaptive<1>::run_max);
KERNEL("aten::adaptive_max_pool2d", kCPU, &Adaptive<2>::run_max);
KERNEL("aten::adaptive_max_pool3d", kCPU, &Adaptive<3>::run_max);

}  // namespace
}  // namespace tensord::kernels
