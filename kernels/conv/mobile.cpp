// What optimize_for_mobile turns layers into: an object with weight and bounds, and a call on it. These calls are
// composed of the plain layer and a clamp.
#include <optional>
#include <utility>

#include "core/ops/custom_class.h"
#include "core/ops/run.h"
#include "ops/pointwise.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::Scalar;
using ops::Value;
using MaybeTensor = std::optional<Tensor>;
using MaybeScalar = std::optional<Scalar>;

#define XNNPACK "__torch__.torch.classes.xnnpack."
constexpr const char *kLinear = XNNPACK "LinearOpContext", *kConv = XNNPACK "Conv2dOpContext",
                     *kTransposed = XNNPACK "TransposeConv2dOpContext";

// The operator's arguments after the input, in its order, and the bounds of its result.
struct ClampedLayer final : ops::OpaqueObject {
  ClampedLayer(const char* class_name, const char* op, std::vector<Value> arguments, MaybeScalar low, MaybeScalar high)
      : name(class_name), op(ops::get_op(op)), arguments(std::move(arguments)), low(low), high(high) {
    const Tensor& weight = this->arguments[0].to_tensor();
    const int64_t rank = name == kLinear ? 2 : 4;
    check(weight.dtype() == DType::kFloat32 && weight.ndim() == rank, "a mobile layer's weight is ", describe(weight),
          ", expected float32 of ", rank, " dimensions");
  }
  std::string class_name() const override { return name; }

  const std::string name;
  const ops::Op& op;
  const std::vector<Value> arguments;
  const MaybeScalar low, high;
};
using LayerPtr = IntrusivePtr<ClampedLayer>;

Value linear_layer(const Tensor& weight, const MaybeTensor& bias, const MaybeScalar& low, const MaybeScalar& high) {
  return Value(IntrusivePtr<ops::OpaqueObject>(make_intrusive<ClampedLayer>(
      kLinear, "aten::linear", std::vector<Value>{Value(weight), Value(bias)}, low, high)));
}

Value conv_layer(const Tensor& weight, const MaybeTensor& bias, const IntList& stride, const IntList& padding,
                 const IntList& dilation, int64_t groups, const MaybeScalar& low, const MaybeScalar& high) {
  std::vector<Value> arguments{
      Value(weight), Value(bias), ops::make_int_list(stride), ops::make_int_list(padding), ops::make_int_list(dilation),
      Value(groups)};
  return Value(IntrusivePtr<ops::OpaqueObject>(
      make_intrusive<ClampedLayer>(kConv, "aten::conv2d", std::move(arguments), low, high)));
}

Value transposed_layer(const Tensor& weight, const MaybeTensor& bias, const IntList& stride, const IntList& padding,
                       const IntList& output_padding, const IntList& dilation, int64_t groups, const MaybeScalar& low,
                       const MaybeScalar& high) {
  std::vector<Value> arguments{Value(weight),
                               Value(bias),
                               ops::make_int_list(stride),
                               ops::make_int_list(padding),
                               ops::make_int_list(output_padding),
                               Value(groups),
                               ops::make_int_list(dilation)};
  return Value(IntrusivePtr<ops::OpaqueObject>(
      make_intrusive<ClampedLayer>(kTransposed, "aten::conv_transpose2d.input", std::move(arguments), low, high)));
}

// The state of such an object is the arguments that it was made from.
const std::vector<Value>& state_items(const Value& state, size_t count) {
  check(state.is_tuple() && state.to_tuple()->items.size() == count, "a mobile layer's state has the wrong form");
  return state.to_tuple()->items;
}
template <class T>
decltype(auto) item(const Value& value) {
  return ops::UnboxOf<T>::get(value);
}
template <class... A, size_t... kIndices>
Value restored(Value (*make)(A...), const std::vector<Value>& items, std::index_sequence<kIndices...>) {
  return make(item<A>(items[kIndices])...);
}
template <class... A>
IntrusivePtr<ops::OpaqueObject> restore(Value (*make)(A...), const Value& state) {
  return restored(make, state_items(state, sizeof...(A)), std::index_sequence_for<A...>()).to_opaque();
}
CUSTOM_CLASS(kLinear, [](const Value& state) { return restore(&linear_layer, state); });
CUSTOM_CLASS(kConv, [](const Value& state) { return restore(&conv_layer, state); });
CUSTOM_CLASS(kTransposed, [](const Value& state) { return restore(&transposed_layer, state); });

OP("prepacked::linear_clamp_prepack").impl(&linear_layer);
OP("prepacked::conv2d_clamp_prepack").impl(&conv_layer);
OP("prepacked::conv2d_transpose_clamp_prepack").impl(&transposed_layer);

Tensor run_layer(const Tensor& x, const LayerPtr& layer) {
  check(x.dtype() == DType::kFloat32, "expected an input of float32, but got ", name_of(x.dtype()));
  std::vector<Value> arguments{Value(x)};
  arguments.insert(arguments.end(), layer->arguments.begin(), layer->arguments.end());
  Tensor y = ops::run(layer->op, arguments).front().to_tensor();
  if (!layer->low && !layer->high) return y;
  return ops::clamp(y, layer->low, layer->high);
}
OP("prepacked::linear_clamp_run").impl(&run_layer).composite();
OP("prepacked::conv2d_clamp_run").impl(&run_layer).composite();
OP("prepacked::conv2d_transpose_clamp_run").impl(&run_layer).composite();

}  // namespace
}  // namespace tensord::kernels
