#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/attributes.h"
#include "core/ops/prepared.h"
#include "core/ops/schema.h"
#include "core/ops/unbox.h"
#include "core/tensor/device_runtime.h"

namespace tensord::ops {

// What infer says of one output: its shape and dtype, and its strides when they are not
// row-major.
struct TensorMeta {
  Dims sizes;
  DType dtype = DType::kFloat32;
  Dims strides;  // empty = row-major
  Device device = {};
};

// Where a kernel runs: the view of the calling thread's ExecutionContext that a kernel on this device has. Passed by
// reference to every kernel; cheap to make.
struct KernelContext {
  explicit KernelContext(Device where = {})
      : device(where), stream(where.is_host() ? nullptr : &current_stream(where)) {}
  Device device;
  DeviceStream* stream;  // null on the CPU
};

struct Op;
using InferFn = std::function<std::vector<TensorMeta>(std::span<const Value> arguments)>;
using KernelFn = std::function<void(const KernelContext&, std::span<const Value> arguments, std::span<Tensor> outputs)>;
using DirectFn = std::function<void(std::span<const Value> arguments, std::vector<Value>& returns)>;

// What a gradient function sees: the forward call and the incoming gradients. Tensors that the
// operator's `saves` does not name come as meta tensors: shape, dtype and device.
struct GradArgs {
  std::span<const Value> inputs;         // forward arguments
  std::span<const Value> outputs;        // forward results
  std::span<const Tensor> grad_outputs;  // by tensor of the results, lists taken apart; undefined where none flows
  uint64_t needed = ~uint64_t{0};        // bit i: a gradient for argument i is asked for
  bool needs(size_t argument) const { return needed >> argument & 1; }
};
// Gradients by forward argument: a tensor, a list of tensors for a list (None items allowed), or
// None where there is none. Written with operators, so that they have gradients themselves.
using GradientFn = std::function<std::vector<Value>(const GradArgs&)>;

// Prepares an operator for arguments known at load, with its weights on one device; see packed.h.
class PackedOp;
struct PackArgs;
using PackFn = std::function<IntrusivePtr<PackedOp>(const PackArgs&)>;

// How an operator runs; the registry sees to it that it is exactly one.
//   kKernel     infer says what comes out, the caller allocates it, the device's kernel fills it
//   kDynamic    the device's entry allocates its results (their shape may depend on data)
//   kView       strides alone; no element is read or written. On any device
//   kComposite  calls other operators and reads no element itself. On any device
//   kHost       lists, dicts, strings and numbers of scripts, and questions about tensors. What it makes of tensors, or
//               reads of them, goes through Tensor's own copies
// In-place and out= forms run as what they are derived from.
enum class Way : uint8_t { kKernel, kDynamic, kView, kComposite, kHost };

// The one record of an operator. One of these describes how it runs:
//   infer + kernels   Way::kKernel
//   dynamic           Way::kDynamic
//   direct            the other ways: a function of values, the same on every device. (Of kDynamic: the processor's.)
//   base              in-place and out= forms derived from another record
struct Op {
  Schema schema;
  InferFn infer;
  std::array<KernelFn, kDeviceKinds> kernels;
  DirectFn direct;
  std::array<DirectFn, kDeviceKinds> dynamic;
  Way way = Way::kKernel;  // from the first look-up on: as marked, else as the record says (registry.cpp)
  bool is_way_marked = false;
  GradientFn gradient;
  // Bit i: the gradient reads the elements of argument (return) i, so they are kept for it.
  uint64_t saved_inputs = ~uint64_t{0}, saved_outputs = ~uint64_t{0};
  // Of a pointwise op from the tables in kernels/: its expression in operands a, b, c and numbers
  // p0 … p2 of a type T, for the fuser. Static text or null.
  const char* formula = nullptr;
  std::array<PackFn, kDeviceKinds> pack;        // for known weights; null when these arguments cannot be prepared
  std::array<PrepareFn, kDeviceKinds> prepare;  // for known shapes; see prepared.h. Optional
  Attributes attributes;                        // what only some ask about
  const Op* base = nullptr;                     // for "add_" and "add.out": the functional form "add"

  bool is_pure = true;  // no writes, no random numbers, no printing: may be folded, merged, dropped
  // Index of a bool argument: what the schema marks as written is written only when it is true
  // (batch_norm's running statistics in training). -1: always.
  int writes_when = -1;
  bool is_view = false;       // returns share memory with an argument (from the schema's marks)
  bool is_pointwise = false;  // out[i] depends on in[i] only, after broadcasting
  bool is_reduction = false;
  bool is_random = false;
  // Of Way::kComposite: its gradient is that of the operators that it calls.
  bool is_composite = false;
  // Floating results that are constants to autograd (empty_like, detach). An operator that is not
  // this, not composite and has no gradient refuses inputs that require one, in backward.
  bool is_constant_result = false;
  bool has_dynamic_shape = false;  // the output shape depends on data
  // Gives the right answer for any strides of its tensor inputs and the outputs keep their
  // order of dimensions (channels_last stays so); asked by the layout pass.
  bool keeps_layout = false;
  bool reads_only_shape = false;  // sizes, dtype and device of its tensors; no element, no stride

  const std::string& name() const { return schema.name; }
};

// Collects one registration; made by OP(), finished at the end of the full expression.
class OpBuilder {
 public:
  OpBuilder(const char* schema, const char* file, int line);
  const Schema& schema() const { return op_->schema; }

  // Function of the schema's arguments → TensorMeta or std::vector<TensorMeta>. Tensor
  // arguments may be meta tensors: shape, strides and dtype only.
  template <class F>
  OpBuilder& infer(F function);
  // Function of the schema's arguments → a value, a tuple/vector of returns, or void.
  template <class F>
  OpBuilder& direct(F function);
  // Function of const GradArgs& → std::vector<Tensor> or std::vector<Value>, by argument.
  template <class F>
  OpBuilder& gradient(F function);
  // What the gradient reads, "self, weight, result": arguments by name, results as "result" or
  // "result0", "result1" … Everything when not said; "" for shapes alone. "self: other; other: self" says
  // it for the gradient of each argument; see saved_for.h.
  OpBuilder& saves(const char* names);
  OpBuilder& composite();
  OpBuilder& constant_result();
  // Also registers "name_" with self written in place (self must be the first argument).
  OpBuilder& with_inplace();
  // Also registers overload "out" (or "<overload>_out") with a keyword argument Tensor(a!) out.
  OpBuilder& with_out();
  // The arguments marked (a!) are written only when this bool argument is true.
  OpBuilder& writes_when(const char* argument);
  OpBuilder& impure();  // prints, raises, changes state
  OpBuilder& random();  // impure, and draws from the generator
  OpBuilder& pointwise();
  // `text` must live as long as the program.
  OpBuilder& formula(const char* text) {
    op_->formula = text;
    return *this;
  }
  OpBuilder& reduction();
  OpBuilder& dynamic_shape();
  OpBuilder& keeps_layout();
  OpBuilder& shape_only();
  // An attribute: `.set<BatchIndependent>(function)`.
  template <class T, class... Parts>
  OpBuilder& set(Parts&&... parts) {
    if (!op_->attributes.set(T{std::forward<Parts>(parts)...})) report_second_attribute();
    return *this;
  }
  // Where the record does not say it: a direct function is of Way::kView when its result is marked as a view,
  // kComposite when composite() says so, kHost when no tensor comes out or none goes in, else kDynamic, of the
  // processor alone.
  OpBuilder& runs(Way way);

 private:
  void check_parameters(const std::vector<std::string>& cpp_types, const char* what);
  void report_second_attribute() const;
  Op* op_;
  const char* file_;
  int line_;
};

// Adds a device's kernel to an op: function of (const KernelContext&, schema arguments…,
// Tensor& output…) → void. The signature is checked against the schema when the registry
// is frozen, whichever of OP and KERNEL came first.
class KernelBuilder {
 public:
  template <class F>
  KernelBuilder(const char* op, DeviceKind device, F function);

 private:
  void add(const char* op, DeviceKind device, KernelFn kernel, std::vector<std::string> cpp_types);
};

// Gives an op of Way::kDynamic its entry for a device: function of the schema's arguments → as direct. Work of a device
// goes to its current stream, as a kernel's.
class DynamicBuilder {
 public:
  template <class F>
  DynamicBuilder(const char* op, DeviceKind device, F function);

 private:
  void add(const char* op, DeviceKind device, DirectFn function, std::vector<std::string> cpp_types);
};

// Has `change` done to the record of `op`, which another file registers, at the first look-up. `what` is for errors: "a
// prepared form". With `cpp_types` the operator must take these.
void join_to_record(std::string op, std::string what, std::function<void(Op&)> change,
                    std::optional<std::vector<std::string>> cpp_types = std::nullopt);

// Gives an op a packed form for weights on a device.
class PackBuilder {
 public:
  PackBuilder(const char* op, DeviceKind device, PackFn function);
};

// Gives an op a prepared form on a device. For infer + kernel ops and direct ones alike.
class PrepareBuilder {
 public:
  PrepareBuilder(const char* op, DeviceKind device, PrepareFn function);
};

// Gives an op an attribute from another place than its block.
template <class T>
void set_attribute(const char* op, T value) {
  join_to_record(op, "an attribute", [value = std::move(value)](Op& record) {
    check_internal(record.attributes.set(value), record.name(), " has two attributes of one kind");
  });
}

#define TENSORD_CONCAT2(A, B) A##B
#define TENSORD_CONCAT(A, B) TENSORD_CONCAT2(A, B)
#define OP(SCHEMA)                                                                       \
  static const ::tensord::ops::OpBuilder TENSORD_CONCAT(op_registration_, __COUNTER__) = \
      ::tensord::ops::OpBuilder(SCHEMA, __FILE__, __LINE__)
#define KERNEL(OP_NAME, DEVICE, FUNCTION)                                                                       \
  static const ::tensord::ops::KernelBuilder TENSORD_CONCAT(kernel_registration_, __COUNTER__)(OP_NAME, DEVICE, \
                                                                                               FUNCTION)
#define DYNAMIC(OP_NAME, DEVICE, FUNCTION)                                                                        \
  static const ::tensord::ops::DynamicBuilder TENSORD_CONCAT(dynamic_registration_, __COUNTER__)(OP_NAME, DEVICE, \
                                                                                                 FUNCTION)
#define PREPARE(OP_NAME, DEVICE, ...)                                                                             \
  static const ::tensord::ops::PrepareBuilder TENSORD_CONCAT(prepare_registration_, __COUNTER__)(OP_NAME, DEVICE, \
                                                                                                 __VA_ARGS__)
#define PACK(OP_NAME, DEVICE, ...) \
  static const ::tensord::ops::PackBuilder TENSORD_CONCAT(pack_registration_, __COUNTER__)(OP_NAME, DEVICE, __VA_ARGS__)

// Implementation details follow; users of the API need not read on.

namespace detail {

template <class Tuple, size_t... I>
std::vector<std::string> schema_names(std::index_sequence<I...>) {
  return {UnboxOf<std::tuple_element_t<I, Tuple>>::schema()...};
}

template <class F, class Tuple, size_t... I>
decltype(auto) call_unboxed(const F& function, [[maybe_unused]] std::span<const Value> v, std::index_sequence<I...>) {
  return function(UnboxOf<std::tuple_element_t<I, Tuple>>::get(v[I])...);
}

inline void push(std::vector<Value>& out, Value value) { out.push_back(std::move(value)); }
inline void push(std::vector<Value>& out, const std::vector<Tensor>& tensors) {
  out.push_back(make_tensor_list(tensors));
}
inline void push(std::vector<Value>& out, const Dims& ints) { out.push_back(make_int_list(ints)); }
template <class... T>
void push(std::vector<Value>& out, const std::tuple<T...>& values) {
  std::apply([&](const T&... value) { (out.push_back(Value(value)), ...); }, values);
}
// Several returns, already boxed.
struct Returns {
  std::vector<Value> values;
};
inline void push(std::vector<Value>& out, Returns returns) { out = std::move(returns.values); }

template <class Tuple, size_t... I>
using KernelArguments = std::tuple<std::tuple_element_t<I + 1, Tuple>...>;

}  // namespace detail

// For direct functions with several returns.
using Returns = detail::Returns;

template <class F>
OpBuilder& OpBuilder::infer(F function) {
  using Arguments = typename Signature<F>::Arguments;
  using Indices = std::make_index_sequence<std::tuple_size_v<Arguments>>;
  check_parameters(detail::schema_names<Arguments>(Indices()), "infer");
  op_->infer = [function](std::span<const Value> v) -> std::vector<TensorMeta> {
    using R = typename Signature<F>::Return;
    if constexpr (std::is_same_v<R, TensorMeta>) {
      std::vector<TensorMeta> out;
      out.push_back(detail::call_unboxed<F, Arguments>(function, v, Indices()));
      return out;
    } else {
      return detail::call_unboxed<F, Arguments>(function, v, Indices());
    }
  };
  return *this;
}

template <class F>
OpBuilder& OpBuilder::gradient(F function) {
  op_->gradient = [function = std::move(function)](const GradArgs& args) -> std::vector<Value> {
    if constexpr (std::is_same_v<decltype(function(args)), std::vector<Value>>) {
      return function(args);
    } else {
      const std::vector<Tensor> tensors = function(args);
      return {tensors.begin(), tensors.end()};
    }
  };
  return *this;
}

namespace detail {

// With the types that its parameters stand for; none for a function of the raw values, which serves vararg schemas.
template <class F>
DirectFn box_direct(F function, std::optional<std::vector<std::string>>& cpp_types) {
  using Arguments = typename Signature<F>::Arguments;
  constexpr bool kIsVoid = std::is_void_v<typename Signature<F>::Return>;
  if constexpr (std::is_same_v<Arguments, std::tuple<std::span<const Value>>>) {
    return [function](std::span<const Value> v, std::vector<Value>& returns) {
      if constexpr (kIsVoid)
        function(v);
      else
        push(returns, function(v));
    };
  } else {
    using Indices = std::make_index_sequence<std::tuple_size_v<Arguments>>;
    cpp_types = schema_names<Arguments>(Indices());
    return [function](std::span<const Value> v, std::vector<Value>& returns) {
      if constexpr (kIsVoid)
        call_unboxed<F, Arguments>(function, v, Indices());
      else
        push(returns, call_unboxed<F, Arguments>(function, v, Indices()));
    };
  }
}

}  // namespace detail

template <class F>
OpBuilder& OpBuilder::direct(F function) {
  std::optional<std::vector<std::string>> types;
  op_->direct = detail::box_direct(function, types);
  if (types) check_parameters(*types, "direct");
  return *this;
}

template <class F>
DynamicBuilder::DynamicBuilder(const char* op, DeviceKind device, F function) {
  std::optional<std::vector<std::string>> types;
  DirectFn boxed = detail::box_direct(function, types);
  add(op, device, std::move(boxed), types ? *std::move(types) : std::vector<std::string>{"..."});
}

namespace detail {

template <class F, class Arguments, size_t... I, size_t... O>
KernelFn box_kernel(F function, std::index_sequence<I...>, std::index_sequence<O...>) {
  return [function](const KernelContext& context, std::span<const Value> v, std::span<Tensor> outputs) {
    function(context, UnboxOf<std::tuple_element_t<I + 1, Arguments>>::get(v[I])..., outputs[O]...);
  };
}

template <class Arguments, size_t... I>
constexpr size_t count_outputs(std::index_sequence<I...>) {
  return (size_t{0} + ... + (std::is_same_v<std::tuple_element_t<I, Arguments>, Tensor&> ? 1 : 0));
}

}  // namespace detail

template <class F>
KernelBuilder::KernelBuilder(const char* op, DeviceKind device, F function) {
  using Arguments = typename Signature<F>::Arguments;
  constexpr size_t kParameters = std::tuple_size_v<Arguments>;
  constexpr size_t kOutputs = detail::count_outputs<Arguments>(std::make_index_sequence<kParameters>());
  constexpr size_t kInputs = kParameters - 1 - kOutputs;
  static_assert(std::is_same_v<std::tuple_element_t<0, Arguments>, const KernelContext&>);
  std::vector<std::string> types = [&]<size_t... I>(std::index_sequence<I...>) {
    return std::vector<std::string>{UnboxOf<std::tuple_element_t<I + 1, Arguments>>::schema()...};
  }
  (std::make_index_sequence<kInputs>());
  add(op, device,
      detail::box_kernel<F, Arguments>(function, std::make_index_sequence<kInputs>(),
                                       std::make_index_sequence<kOutputs>()),
      std::move(types));
}

}  // namespace tensord::ops
