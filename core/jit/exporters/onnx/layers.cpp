// Matrix products, convolutions, pooling, normalization, attention, resizing.
#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/jit/exporters/onnx/call.h"
#include "core/jit/importers/onnx/tensors.h"

namespace tensord::jit::onnx {
namespace {

std::vector<int64_t> vector_of(const Dims& dims) { return {dims.begin(), dims.end()}; }

std::string swapped_last(Call& c, const std::string& name, int64_t rank) {
  Dims order;
  for (int64_t i = 0; i < rank; ++i) order.push_back(i);
  std::swap(order[static_cast<size_t>(rank) - 1], order[static_cast<size_t>(rank) - 2]);
  return c.transpose(name, order);
}

void matmul(Call& c) {
  const char* second = c.op().schema.arguments[1].name.c_str();
  c.set(c.emit("MatMul", {c.x(), c.x(second)}));
}

void linear(Call& c) {
  if (c.t("weight").ndim() != 2) c.refuse("a weight of one dimension cannot be exported to ONNX");
  std::string y = c.emit("MatMul", {c.x("input"), swapped_last(c, c.x("weight"), 2)});
  if (c.has("bias")) y = c.emit("Add", {y, c.x("bias")});
  c.set(y);
}

// beta * self + alpha * product
void add_product(Call& c) {
  const bool is_batch = c.has("batch1");
  const char *first = is_batch ? "batch1" : "mat1", *second = is_batch ? "batch2" : c.has("vec") ? "vec" : "mat2";
  std::string y = c.emit("MatMul", {c.x(first), c.x(second)}), self = c.x();
  if (c.in("alpha").is_dynamic || c.number("alpha") != 1) y = c.emit("Mul", {y, c.scalar(c.in("alpha"), c.dtype())});
  if (c.in("beta").is_dynamic || c.number("beta") != 1) self = c.emit("Mul", {self, c.scalar(c.in("beta"), c.dtype())});
  c.set(c.emit("Add", {self, y}));
}

void einsum(Call& c) {
  std::string equation = c.text("equation");
  std::erase(equation, ' ');
  Strings names;
  for (const Traced& tensor : c.list("tensors")) names.push_back(c.tracer().name_of(tensor));
  c.set(c.emit("Einsum", names, {{"equation", equation}}));
}

Dims spread(Dims values, size_t count) {
  if (values.size() == 1) return Dims(count, values[0]);
  return values;
}

struct Window {
  Dims kernel, stride, padding, dilation;
};

Attributes window_attributes(const Window& window) {
  std::vector<int64_t> pads = vector_of(window.padding);
  pads.insert(pads.end(), window.padding.begin(), window.padding.end());
  return {{"kernel_shape", vector_of(window.kernel)}, {"strides", vector_of(window.stride)}, {"pads", pads}};
}

// Adds a batch dimension to unbatched input.
std::string with_batch(Call& c, const std::string& x, bool is_alone) {
  return is_alone ? c.emit("Unsqueeze", {x, c.int_vector({0})}) : x;
}
std::string without_batch(Call& c, const std::string& y, bool is_alone) {
  return is_alone ? c.emit("Squeeze", {y, c.int_vector({0})}) : y;
}

void convolution(Call& c) {
  const Tensor& weight = c.t("weight");
  const auto count = static_cast<size_t>(weight.ndim() - 2);
  const bool is_alone = c.t("input").ndim() == weight.ndim() - 1;
  const bool is_transposed =
      (c.has("transposed") && c.flag("transposed")) || c.op().schema.name.starts_with("aten::conv_transpose");
  Window window;
  bool has_open_kernel = false;
  for (size_t i = 0; i < count; ++i) {
    const int64_t dim = static_cast<int64_t>(i) + 2;
    window.kernel.push_back(weight.size(dim));
    has_open_kernel = has_open_kernel || c.is_open("weight", dim);
  }
  window.stride = spread(c.ints("stride"), count);
  window.dilation = spread(c.ints("dilation"), count);
  std::vector<int64_t> pads(2 * count, 0);
  if (c.in("padding").a.is_string()) {
    if (has_open_kernel) c.refuse("padding by name over a dynamic size of the kernel cannot be exported to ONNX");
    for (size_t i = 0; i < count && c.text("padding") == "same"; ++i) {
      const int64_t total = window.dilation[i] * (window.kernel[i] - 1);
      pads[i] = total / 2;
      pads[count + i] = total - total / 2;
    }
  } else {
    const Dims padding = spread(c.ints("padding"), count);
    for (size_t i = 0; i < count; ++i) pads[i] = pads[count + i] = padding[i];
  }
  Attributes attributes{{"strides", vector_of(window.stride)},
                        {"pads", pads},
                        {"dilations", vector_of(window.dilation)},
                        {"group", c.integer("groups")}};
  if (!has_open_kernel) attributes.emplace_back("kernel_shape", vector_of(window.kernel));
  if (is_transposed) attributes.emplace_back("output_padding", vector_of(spread(c.ints("output_padding"), count)));
  Strings inputs{with_batch(c, c.x("input"), is_alone), c.x("weight")};
  if (c.has("bias")) inputs.push_back(c.x("bias"));
  c.set(without_batch(c, c.emit(is_transposed ? "ConvTranspose" : "Conv", inputs, attributes), is_alone));
}

Window pool_window(Call& c, size_t count) {
  Window window;
  window.kernel = spread(c.ints("kernel_size"), count);
  window.stride = spread(c.ints("stride"), count);
  if (window.stride.empty()) window.stride = window.kernel;
  window.padding = spread(c.ints("padding"), count);
  return window;
}

// With ceil_mode, ONNX's last window may start beyond the input, PyTorch's never does: allowed only if both have the
// same number of windows.
void check_ceil(Call& c, const Window& window, const Dims& dilation) {
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    const int64_t dim = c.t().ndim() - std::ssize(window.kernel) + static_cast<int64_t>(i);
    if (c.is_open("self", dim)) c.refuse("ceil_mode over a dynamic size cannot be exported to ONNX");
    const int64_t span = c.t().size(dim) + 2 * window.padding[i] - dilation[i] * (window.kernel[i] - 1) - 1;
    const int64_t windows = (span + window.stride[i] - 1) / window.stride[i] + 1;
    if ((windows - 1) * window.stride[i] >= c.t().size(dim) + window.padding[i])
      c.refuse("ceil_mode with a window beyond the input cannot be exported to ONNX");
  }
}

template <size_t kCount>
void max_pool(Call& c) {
  const bool is_alone = c.t().ndim() == int64_t{kCount} + 1;
  const Window window = pool_window(c, kCount);
  const Dims dilation = spread(c.ints("dilation"), kCount);
  if (c.flag("ceil_mode")) check_ceil(c, window, dilation);
  Attributes attributes = window_attributes(window);
  attributes.emplace_back("dilations", vector_of(dilation));
  attributes.emplace_back("ceil_mode", int64_t{c.flag("ceil_mode")});
  c.set(without_batch(c, c.emit("MaxPool", {with_batch(c, c.x(), is_alone)}, attributes), is_alone));
}

template <size_t kCount>
void average_pool(Call& c) {
  if (c.has("divisor_override")) c.refuse("a divisor cannot be exported to ONNX");
  const bool is_alone = c.t().ndim() == int64_t{kCount} + 1;
  const Window window = pool_window(c, kCount);
  if (c.flag("ceil_mode")) c.refuse("ceil_mode cannot be exported to ONNX");
  Attributes attributes = window_attributes(window);
  attributes.emplace_back("count_include_pad", int64_t{c.flag("count_include_pad")});
  c.set(without_batch(c, c.emit("AveragePool", {with_batch(c, c.x(), is_alone)}, attributes), is_alone));
}

template <size_t kCount, bool kIsMax>
void adaptive_pool(Call& c) {
  const Dims size = spread(c.ints("output_size"), kCount);
  const int64_t rank = c.t().ndim(), first = rank - int64_t{kCount};
  if (std::ranges::all_of(size, [](int64_t one) { return one == 1; })) {
    Dims dims;
    for (int64_t i = first; i < rank; ++i) dims.push_back(i);
    return c.set(c.emit(kIsMax ? "ReduceMax" : "ReduceMean", {c.x(), c.int_vector(dims)}, {{"keepdims", int64_t{1}}}));
  }
  std::vector<int64_t> kernel;
  for (int64_t i = first; i < rank; ++i) {
    const int64_t in = c.t().size(i), out = size[static_cast<size_t>(i - first)];
    if (c.is_open("self", i) || out <= 0 || in % out != 0)
      c.refuse("windows of several sizes cannot be exported to ONNX");
    kernel.push_back(in / out);
  }
  const bool is_alone = rank == int64_t{kCount} + 1;
  const std::string y = c.emit(kIsMax ? "MaxPool" : "AveragePool", {with_batch(c, c.x(), is_alone)},
                               {{"kernel_shape", kernel}, {"strides", kernel}});
  c.set(without_batch(c, y, is_alone));
}

// A vector filled with a value, with the length of dimension `dim` of an argument.
std::string filled(Call& c, const char* argument, int64_t dim, double value, DType type) {
  if (c.is_open(argument, dim)) return c.emit("Expand", {c.scalar(value, type), c.size_at(c.x(argument), dim)});
  const Tensor tensor = Tensor::empty(Dims{c.t(argument).size(dim)}, DType::kFloat64);
  std::fill_n(tensor.data<double>(), tensor.numel(), value);
  return c.constant(tensor.to(type));
}

void batch_norm(Call& c) {
  const char* training = c.has("training") ? "training" : c.has("train") ? "train" : nullptr;
  if ((training && c.flag(training)) || !c.has("running_mean") || !c.has("running_var"))
    c.refuse("with the statistics of the batch cannot be exported to ONNX: call eval() before the model is saved");
  const DType type = c.t("running_mean").dtype();
  const std::string weight = c.has("weight") ? c.x("weight") : filled(c, "running_mean", 0, 1, type);
  const std::string bias = c.has("bias") ? c.x("bias") : filled(c, "running_mean", 0, 0, type);
  c.set(c.emit("BatchNormalization", {c.x("input"), weight, bias, c.x("running_mean"), c.x("running_var")},
               {{"epsilon", c.number("eps")}}));
}

void layer_norm(Call& c) {
  const Dims shape = c.ints("normalized_shape");
  const Tensor ones = Tensor::empty(shape, DType::kFloat64);
  std::fill_n(ones.data<double>(), ones.numel(), 1.0);
  Strings inputs{c.x("input"), c.has("weight") ? c.x("weight") : c.constant(ones.to(c.dtype()))};
  if (c.has("bias")) inputs.push_back(c.x("bias"));
  c.set(c.emit("LayerNormalization", inputs, {{"axis", -std::ssize(shape)}, {"epsilon", c.number("eps")}}));
}

void group_norm(Call& c) {
  const char* groups = c.has("num_groups") ? "num_groups" : "group";
  const std::string weight = c.has("weight") ? c.x("weight") : filled(c, "input", 1, 1, c.dtype());
  const std::string bias = c.has("bias") ? c.x("bias") : filled(c, "input", 1, 0, c.dtype());
  c.set(c.emit("GroupNormalization", {c.x("input"), weight, bias},
               {{"num_groups", c.integer(groups)}, {"epsilon", c.number("eps")}}));
}

void instance_norm(Call& c) {
  if (!c.flag("use_input_stats")) c.refuse("with running statistics cannot be exported to ONNX");
  const std::string weight = c.has("weight") ? c.x("weight") : filled(c, "input", 1, 1, c.dtype());
  const std::string bias = c.has("bias") ? c.x("bias") : filled(c, "input", 1, 0, c.dtype());
  c.set(c.emit("InstanceNormalization", {c.x("input"), weight, bias}, {{"epsilon", c.number("eps")}}));
}

void rms_norm(Call& c) {
  const Dims shape = c.ints("normalized_shape");
  Dims dims;
  for (int64_t i = c.t("input").ndim() - std::ssize(shape); i < c.t("input").ndim(); ++i) dims.push_back(i);
  const std::string x = c.x("input");
  const double epsilon = c.has("eps")                   ? c.number("eps")
                         : c.dtype() == DType::kFloat64 ? 2.220446049250313e-16
                                                        : 1.1920929e-07;
  const std::string mean =
      c.emit("ReduceMean", {c.emit("Mul", {x, x}), c.int_vector(dims)}, {{"keepdims", int64_t{1}}});
  const std::string y = c.emit("Div", {x, c.emit("Sqrt", {c.emit("Add", {mean, c.scalar(epsilon, c.dtype())})})});
  c.set(c.has("weight") ? c.emit("Mul", {y, c.x("weight")}) : y);
}

void attention(Call& c) {
  if (c.has("dropout_p") && c.number("dropout_p") != 0)
    c.refuse("drops elements: call eval() before the model is saved");
  const Tensor &query = c.t("query"), &key = c.t("key");
  if (c.has("enable_gqa") && c.flag("enable_gqa")) c.refuse("enable_gqa cannot be exported to ONNX");
  const int64_t rank = query.ndim(), width = query.size(rank - 1);
  const std::string q = c.x("query"), k = c.x("key");
  std::string scores = c.emit("MatMul", {q, swapped_last(c, k, key.ndim())});
  if (!c.has("scale") && c.is_open("query", rank - 1)) {
    const std::string open_width = c.cast(c.size_at(q, rank - 1), DType::kInt64, c.dtype());
    scores = c.emit("Div", {scores, c.emit("Sqrt", {open_width})});
  } else {
    const double scale = c.has("scale") ? c.number("scale") : 1 / std::sqrt(static_cast<double>(width));
    scores = c.emit("Mul", {scores, c.scalar(scale, c.dtype())});
  }
  const std::string hidden = c.scalar(-INFINITY, c.dtype()), seen = c.scalar(0, c.dtype());
  if (c.has("attn_mask")) {
    const std::string mask = c.x("attn_mask");
    const bool is_bool = c.t("attn_mask").dtype() == DType::kBool;
    scores = is_bool ? c.emit("Where", {mask, scores, hidden}) : c.emit("Add", {scores, mask});
  }
  if (c.flag("is_causal")) {
    const std::string shape =
        c.emit("Concat", {c.size_at(q, rank - 2), c.size_at(k, key.ndim() - 2)}, {{"axis", int64_t{0}}});
    const std::string one = c.constant(Tensor::scalar(int64_t{1}, DType::kInt64));
    scores =
        c.emit("Add", {scores, c.emit("Trilu", {c.emit("Expand", {hidden, shape}), one}, {{"upper", int64_t{1}}})});
  }
  std::string weights = c.emit("Softmax", {scores}, {{"axis", int64_t{-1}}});
  // A row without visible keys is zero, not NaN.
  if (c.has("attn_mask") && c.t("attn_mask").dtype() == DType::kBool)
    weights = c.emit("Where", {c.emit("IsNaN", {weights}), seen, weights});
  c.set(c.emit("MatMul", {weights, c.x("value")}));
}

// The operator has scale factors, or a size only.
void resize(Call& c, const char* mode, const std::string& coordinates, bool is_nearest) {
  const Tensor& given = c.t(c.op().schema.arguments[0].name.c_str());
  const size_t count = static_cast<size_t>(given.ndim() - 2);
  Dims axes;
  for (size_t i = 0; i < count; ++i) axes.push_back(static_cast<int64_t>(i) + 2);
  Attributes attributes{
      {"mode", std::string(mode)}, {"coordinate_transformation_mode", coordinates}, {"axes", vector_of(axes)}};
  if (is_nearest) attributes.emplace_back("nearest_mode", std::string("floor"));
  if (std::string_view(mode) == "cubic") attributes.emplace_back("cubic_coeff_a", -0.75);
  std::vector<double> factors;
  if (c.has("scale_factors")) factors = c.numbers("scale_factors");
  for (const char* name : {"scales", "scales_d", "scales_h", "scales_w"}) {
    if (c.has(name)) factors.push_back(c.number(name));
  }
  if (!factors.empty()) {
    if (factors.size() != count) c.refuse("some factors alone cannot be exported to ONNX");
    const Tensor scales = Tensor::empty(Dims{std::ssize(factors)}, DType::kFloat64);
    std::ranges::copy(factors, scales.data<double>());
    return c.set(c.emit("Resize",
                        {c.x(c.op().schema.arguments[0].name.c_str()), "", c.constant(scales.to(DType::kFloat32))},
                        attributes));
  }
  c.set(c.emit("Resize", {c.x(c.op().schema.arguments[0].name.c_str()), "", "", c.size_vector(c.list("output_size"))},
               attributes));
}

void nearest(Call& c) { resize(c, "nearest", "asymmetric", true); }
void linear_resize(Call& c) { resize(c, "linear", c.flag("align_corners") ? "align_corners" : "half_pixel", false); }
void cubic(Call& c) { resize(c, "cubic", c.flag("align_corners") ? "align_corners" : "half_pixel", false); }

void grid_sample(Call& c) {
  static const char* kModes[] = {"linear", "nearest", "cubic"};
  static const char* kPaddings[] = {"zeros", "border", "reflection"};
  c.set(c.emit("GridSample", {c.x("input"), c.x("grid")},
               {{"mode", std::string(kModes[c.integer("interpolation_mode")])},
                {"padding_mode", std::string(kPaddings[c.integer("padding_mode")])},
                {"align_corners", int64_t{c.flag("align_corners")}}}));
}

}  // namespace

std::span<const HandlerRow> layer_rows() {
  static const HandlerRow kRows[] = {
      {"aten::matmul", matmul},
      {"aten::mm", matmul},
      {"aten::bmm", matmul},
      {"aten::mv", matmul},
      {"aten::dot", matmul},
      {"aten::linear", linear},
      {"aten::addmm", add_product},
      {"aten::addmv", add_product},
      {"aten::baddbmm", add_product},
      {"aten::einsum", einsum},
      {"aten::conv1d", convolution},
      {"aten::conv2d", convolution},
      {"aten::conv3d", convolution},
      {"aten::convolution", convolution},
      {"aten::_convolution", convolution},
      {"aten::_convolution_mode", convolution},
      {"aten::conv_transpose1d", convolution},
      {"aten::conv_transpose2d", convolution},
      {"aten::conv_transpose3d", convolution},
      {"aten::max_pool1d", max_pool<1>},
      {"aten::max_pool2d", max_pool<2>},
      {"aten::max_pool3d", max_pool<3>},
      {"aten::max_pool2d_with_indices", max_pool<2>},
      {"aten::avg_pool1d", average_pool<1>},
      {"aten::avg_pool2d", average_pool<2>},
      {"aten::avg_pool3d", average_pool<3>},
      {"aten::adaptive_avg_pool1d", adaptive_pool<1, false>},
      {"aten::adaptive_avg_pool2d", adaptive_pool<2, false>},
      {"aten::_adaptive_avg_pool2d", adaptive_pool<2, false>},
      {"aten::adaptive_avg_pool3d", adaptive_pool<3, false>},
      {"aten::adaptive_max_pool1d", adaptive_pool<1, true>},
      {"aten::adaptive_max_pool2d", adaptive_pool<2, true>},
      {"aten::batch_norm", batch_norm},
      {"aten::native_batch_norm", batch_norm},
      {"aten::_native_batch_norm_legit_no_training", batch_norm},
      {"aten::layer_norm", layer_norm},
      {"aten::native_layer_norm", layer_norm},
      {"aten::group_norm", group_norm},
      {"aten::native_group_norm", group_norm},
      {"aten::instance_norm", instance_norm},
      {"aten::rms_norm", rms_norm},
      {"aten::scaled_dot_product_attention", attention},
      {"aten::upsample_nearest1d", nearest},
      {"aten::upsample_nearest2d", nearest},
      {"aten::upsample_nearest3d", nearest},
      {"aten::upsample_linear1d", linear_resize},
      {"aten::upsample_bilinear2d", linear_resize},
      {"aten::upsample_trilinear3d", linear_resize},
      {"aten::upsample_bicubic2d", cubic},
      {"aten::grid_sampler", grid_sample},
      {"aten::grid_sampler_2d", grid_sample},
  };
  return kRows;
}

}  // namespace tensord::jit::onnx
