#include "kernels/conv/primitive.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "core/base/parallel.h"
#include "core/base/shared_cache.h"
#include "kernels/conv/onednn.h"

namespace tensord::kernels {
namespace {

using Key = std::vector<int64_t>;

bool is_last(const Tensor& t) { return t.ndim() >= 4 && t.is_channels_last() && !t.is_contiguous(); }

Key key_of(ConvPass pass, const ConvGeometry& g, const ConvTensors& t) {
  Key key{static_cast<int64_t>(pass), thread_budget(), g.groups, t.bias != nullptr,
          static_cast<int64_t>(t.image.dtype())};
  for (const Dims* list :
       {&g.stride, &g.padding_low, &g.padding_high, &g.dilation, &t.image.sizes(), &t.grid.sizes(), &t.weight.sizes()})
    key.insert(key.end(), list->begin(), list->end());
  for (const Tensor* tensor : {&t.image, &t.grid, &t.weight}) key.push_back(is_last(*tensor));
  return key;
}

constexpr int64_t kMinLast = 3;  // channels

// Whether only some pixels count. oneDNN 2.6 gathers them, and with several threads its code for channels_last is wrong
// for some shapes.
bool skips_pixels(const ConvGeometry& g, const Tensor& weight) {
  const Dims& sizes = weight.sizes();
  return std::all_of(sizes.begin() + 2, sizes.end(), [](int64_t n) { return n == 1; }) &&
         std::any_of(g.stride.begin(), g.stride.end(), [](int64_t n) { return n > 1; });
}

OnednnType type_of(const Tensor& t) { return t.dtype() == DType::kBFloat16 ? OnednnType::bf16 : OnednnType::f32; }

// One of the three large operands: the layout of the tensor, and the layout that the primitive wants.
struct Operand {
  MemoryDesc user, wanted;
  dnnl::reorder reorder;  // from the tensor, or to it for the result; empty if both layouts are the same

  bool is_direct() const { return user == wanted; }
};

// A pass for one shape. Immutable.
class ConvPrimitive {
 public:
  ConvPrimitive(ConvPass pass, const ConvGeometry& g, const ConvTensors& t) : pass_(pass), type_(type_of(t.image)) {
    const MemoryDesc user_weight = conv_weight_desc(t.weight, g, type_);
    // oneDNN chooses the layout where it has no vector code for channels_last.
    const bool keeps_last =
        (is_last(t.image) || is_last(t.grid)) && t.image.sizes()[1] >= kMinLast && !skips_pixels(g, t.weight);
    const auto describe = [&](const Tensor& tensor) {
      const bool has_order = keeps_last && tensor.ndim() >= 4;
      return has_order ? onednn_desc(tensor.sizes(), channels_last_strides(tensor.sizes()), type_)
                       : onednn_any(tensor.sizes(), type_);
    };
    const ConvDescs any{describe(t.image), MemoryDesc(onednn_sizes(user_weight), type_, dnnl::memory::format_tag::any),
                        t.bias ? onednn_desc(t.bias->sizes(), Dims{1}, type_) : MemoryDesc(), describe(t.grid)};
    bias_ = any.bias;
    image_.user = onednn_desc(t.image.sizes(), t.image.strides(), type_);
    grid_.user = onednn_desc(t.grid.sizes(), t.grid.strides(), type_);
    weight_.user = user_weight;
    make(g, any);
    if (is_slow_) return;
    for (Operand* operand : {&image_, &grid_, &weight_}) {
      if (operand->is_direct()) continue;
      const bool is_result = operand == &result();
      const MemoryDesc &from = is_result ? operand->wanted : operand->user,
                       &to = is_result ? operand->user : operand->wanted;
      operand->reorder = dnnl::reorder(dnnl::reorder::primitive_desc(onednn_engine(), from, onednn_engine(), to));
    }
  }

  // Through f32 it is faster.
  bool is_slow() const { return is_slow_; }

  void run(const ConvTensors& t) const {
    Tensor holders[3];
    const dnnl::memory image = enter(image_, t.image, holders[0]), grid = enter(grid_, t.grid, holders[1]),
                       weight = enter(weight_, t.weight, holders[2]);
    const Tensor scratch = Tensor::empty(Dims{static_cast<int64_t>(scratchpad_.get_size())}, DType::kUInt8);
    std::unordered_map<int, dnnl::memory> args{{DNNL_ARG_SCRATCHPAD, onednn_memory(scratchpad_, scratch.raw_data())}};
    const auto add = [&args](int argument, const dnnl::memory& memory) { args.emplace(argument, memory); };
    switch (pass_) {
      case ConvPass::kForward: add(DNNL_ARG_SRC, image), add(DNNL_ARG_WEIGHTS, weight), add(DNNL_ARG_DST, grid); break;
      case ConvPass::kData:
        add(DNNL_ARG_DIFF_SRC, image), add(DNNL_ARG_WEIGHTS, weight), add(DNNL_ARG_DIFF_DST, grid);
        break;
      case ConvPass::kWeights:
        add(DNNL_ARG_SRC, image), add(DNNL_ARG_DIFF_WEIGHTS, weight), add(DNNL_ARG_DIFF_DST, grid);
        break;
      case ConvPass::kTransposed:
        add(DNNL_ARG_DST, image), add(DNNL_ARG_WEIGHTS, weight), add(DNNL_ARG_SRC, grid);
        break;
    }
    if (t.bias) {
      add(pass_ == ConvPass::kWeights ? DNNL_ARG_DIFF_BIAS : DNNL_ARG_BIAS, onednn_memory(bias_, t.bias->raw_data()));
    }
    primitive_.execute(onednn_stream(), args);
    const Operand& last = result();
    if (last.is_direct()) return;
    const Tensor& tensor = pass_ == ConvPass::kForward ? t.grid : pass_ == ConvPass::kWeights ? t.weight : t.image;
    dnnl::memory from = pass_ == ConvPass::kForward   ? grid
                        : pass_ == ConvPass::kWeights ? weight
                                                      : image,
                 to = onednn_memory(last.user, tensor.raw_data());
    last.reorder.execute(onednn_stream(), from, to);
  }

 private:
  void make(const ConvGeometry& g, const ConvDescs& any) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const auto algorithm = dnnl::algorithm::convolution_direct;
    const auto forward = [&](const ConvDescs& descs) {
      return conv_primitive_desc<dnnl::convolution_forward>(g, descs, algorithm, attributes);
    };
    const auto strides = onednn_dims(g.stride), low = onednn_dims(g.padding_low), high = onednn_dims(g.padding_high);
    dnnl::memory::dims dilates;
    for (const int64_t d : g.dilation) dilates.push_back(d - 1);
    switch (pass_) {
      case ConvPass::kForward: {
        const auto pd = forward(any);
        keep(pd, pd.src_desc(), pd.dst_desc(), pd.weights_desc(), dnnl::convolution_forward(pd));
        break;
      }
      case ConvPass::kData: {
        using Primitive = dnnl::convolution_backward_data;
        const auto pd = onednn_describe_backward<Primitive>(attributes, forward(any), algorithm, any.src, any.weights,
                                                            any.dst, strides, dilates, low, high);
        keep(pd, pd.diff_src_desc(), pd.diff_dst_desc(), pd.weights_desc(), Primitive(pd));
        break;
      }
      case ConvPass::kWeights: {
        using Primitive = dnnl::convolution_backward_weights;
        const auto describe = [&](const auto&... bias) {
          return onednn_describe_backward<Primitive>(attributes, forward(any), algorithm, any.src, any.weights, bias...,
                                                     any.dst, strides, dilates, low, high);
        };
        const auto pd = any.has_bias() ? describe(any.bias) : describe();
        keep(pd, pd.src_desc(), pd.diff_dst_desc(), pd.diff_weights_desc(), Primitive(pd));
        break;
      }
      case ConvPass::kTransposed: {
        // oneDNN describes the weights of a deconvolution with inputs and outputs swapped.
        ConvDescs descs{any.dst, swapped(any.weights, g.groups > 1), any.bias, any.src};
        weight_.user = swapped(weight_.user, g.groups > 1);
        const auto pd = conv_primitive_desc<dnnl::deconvolution_forward>(
            g, descs, dnnl::algorithm::deconvolution_direct, attributes);
        keep(pd, pd.dst_desc(), pd.src_desc(), pd.weights_desc(), dnnl::deconvolution_forward(pd));
        break;
      }
    }
  }

  template <class Desc>
  void keep(const Desc& pd, const MemoryDesc& image, const MemoryDesc& grid, const MemoryDesc& weight,
            dnnl::primitive primitive) {
    image_.wanted = image;
    grid_.wanted = grid;
    weight_.wanted = weight;
    scratchpad_ = pd.scratchpad_desc();
    is_slow_ = type_ == OnednnType::bf16 && std::string_view(pd.impl_info_str()).starts_with("ref");
    primitive_ = std::move(primitive);
  }

  MemoryDesc swapped(const MemoryDesc& desc, bool has_groups) const {
    dnnl::memory::dims sizes = onednn_sizes(desc);
    std::vector<int> order(sizes.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::swap(order[has_groups ? 1 : 0], order[has_groups ? 2 : 1]);
    if (onednn_is_any(desc)) {
      std::swap(sizes[has_groups ? 1 : 0], sizes[has_groups ? 2 : 1]);
      return MemoryDesc(sizes, type_, dnnl::memory::format_tag::any);
    }
    return desc.permute_axes(order);
  }

  const Operand& result() const {
    return pass_ == ConvPass::kForward ? grid_ : pass_ == ConvPass::kWeights ? weight_ : image_;
  }

  // The operand's memory in the layout that the primitive wants. A result is not reordered here.
  dnnl::memory enter(const Operand& operand, const Tensor& tensor, Tensor& holder) const {
    if (operand.is_direct()) return onednn_memory(operand.user, tensor.raw_data());
    dnnl::memory wanted = onednn_allocate(operand.wanted, holder);
    if (&operand == &result()) return wanted;
    dnnl::memory user = onednn_memory(operand.user, tensor.raw_data());
    operand.reorder.execute(onednn_stream(), user, wanted);
    return wanted;
  }

  const ConvPass pass_;
  const OnednnType type_;
  bool is_slow_ = false;
  Operand image_, grid_, weight_;
  MemoryDesc bias_, scratchpad_;
  dnnl::primitive primitive_;
};

using Cache = SharedCache<Key, ConvPrimitive>;

Cache& cache() {
  static Cache* const instance = new Cache(kMaxConvPrimitives);
  return *instance;
}

}  // namespace

bool run_conv_primitive(ConvPass pass, const ConvGeometry& geometry, const ConvTensors& tensors) {
  const auto primitive = cache().get(key_of(pass, geometry, tensors),
                                     [&] { return std::make_shared<const ConvPrimitive>(pass, geometry, tensors); });
  if (primitive->is_slow()) return false;
  primitive->run(tensors);
  return true;
}

// oneDNN's padding at the far end may be negative, by less than a stride.
bool fits_conv_primitive(const ConvGeometry& g, const ConvTensors& t) {
  if (t.image.numel() == 0 || t.grid.numel() == 0 || t.weight.numel() == 0) return false;
  for (size_t i = 0; i < g.spatial(); ++i) {
    if (g.padding_high[i] + g.stride[i] <= 0) return false;
  }
  return true;
}

}  // namespace tensord::kernels
