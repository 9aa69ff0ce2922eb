#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dispatch_key.h"
#include "core/ops/attributes.h"
#include "core/ops/prepared.h"
#include "core/ops/schema.h"
#include "core/ops/unbox.h"
#include "core/tensor/device_runtime.h"

namespace tensord::ops {

// One output as infer describes it: shape and dtype, and strides if they are not row-major.
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
using FillFn = std::function<void(const KernelContext&, std::span<const Value> arguments, std::span<Tensor> outputs)>;
using ReturnFn = std::function<void(std::span<const Value> arguments, std::vector<Value>& returns)>;

// The dispatch keys of a call, from one look at its arguments (core/ops/dispatch.h).
struct CallKeys {
  DispatchKeySet set;
  Device device;          // of the tensors; without tensors, the device argument
  Device other;           // set if is_mixed
  bool is_mixed = false;  // tensors on two devices, not counting 0-d CPU tensors

  // The keys that remain below `one`.
  CallKeys below(Functionality one) const { return {set & DispatchKeySet::below(one), device, other, is_mixed}; }
};

// A kernel at one place of an operator's table.
struct KernelFunction {
  using Run = void (*)(const KernelFunction& self, const Op& op, const CallKeys& keys, std::span<const Value> arguments,
                       std::vector<Value>& returns);
  Run run = nullptr;
  FillFn fill = nullptr;        // fills outputs that the caller allocated by the operator's infer
  ReturnFn function = nullptr;  // or returns its results itself
  std::source_location origin = std::source_location::current();  // where it was registered, for `tensord ops --table`
};

// A place in the table for IMPL, with c10's names.
struct DispatchKey {
  constexpr DispatchKey(DeviceKind device) : layouts(Functionality::kDense), device(device) {}
  constexpr DispatchKey(DispatchKeySet layouts, DeviceKind device, bool is_composite = false)
      : layouts(layouts), device(device), is_composite(is_composite) {}
  DispatchKeySet layouts;
  DeviceKind device;
  bool is_composite = false;  // calls operators: for any device, and its gradient is theirs
};
inline constexpr DispatchKey kComplexCPU{Functionality::kComplex, kCPU};
inline constexpr DispatchKey kComplexComposite{Functionality::kComplex, kCPU, true};
inline constexpr DispatchKey kQuantizedCPU{Functionality::kQuantized, kCPU};
inline constexpr DispatchKey kSparseCPU{Functionality::kSparse | Functionality::kSparseCompressed, kCPU};

// In place of a function for kComplexCPU: the operator's own kernel is right for complex numbers, on each device.
struct SameAsDense {};
inline constexpr SameAsDense kSameAsDense;

inline constexpr size_t kCells = kLayoutCount * kDeviceKinds + (kFunctionalityCount - kLayoutCount);
constexpr size_t cell_of(Functionality functionality, DeviceKind device) {
  const auto row = static_cast<size_t>(functionality);
  if (row >= kLayoutCount) return kLayoutCount * kDeviceKinds + row - kLayoutCount;
  return row * kDeviceKinds + static_cast<size_t>(device);
}

// The arguments of a gradient function: the forward call and the incoming gradients. Tensors that the operator's
// `saves` does not name are meta tensors: shape, dtype and device.
struct GradArgs {
  std::span<const Value> inputs;         // forward arguments
  std::span<const Value> outputs;        // forward results
  std::span<const Tensor> grad_outputs;  // by tensor of the results, lists flattened; undefined if none flows
  uint64_t needed = ~uint64_t{0};        // bit i: the gradient of argument i is needed
  bool needs(size_t argument) const { return needed >> argument & 1; }
};
// Gradients by forward argument: a tensor, a list of tensors for a list (items may be None), or None. Written with
// operators, so that they are differentiable themselves.
using GradientFn = std::function<std::vector<Value>(const GradArgs&)>;

// Prepares an operator for arguments known at load, with its weights on one device; see packed.h.
class PackedOp;
struct PackArgs;
using PackFn = std::function<IntrusivePtr<PackedOp>(const PackArgs&)>;

// The kind of an operator's code; the registry checks that it is exactly one. In-place and out= variants have the kind
// of their base.
enum class OpKind : uint8_t {
  kStructured,  // infer describes the results, the caller allocates them, the device's kernel fills them
  kAllocating,  // the device's kernel allocates its results, whose shape may depend on data
  kView,        // only strides change; no element is read or written. For any device
  kComposite,   // calls other operators and reads no element itself. For any device
  kScript,      // lists, dicts, strings and numbers of scripts, and properties of tensors. It makes tensors, and reads
                // their elements, through Tensor's own copies
};

// How the gradient for complex tensors follows from the operator's.
// Gradients are PyTorch's: of a real loss L with respect to z = x + iy, dL/dx + i dL/dy, the direction of steepest
// ascent. For a holomorphic function that is grad · conj(f'), so the real formula serves, between two conjugates.
enum class ComplexGradient : uint8_t {
  kNone,         // not supported
  kOfCalls,      // of a composite: that of the operators that it calls
  kLinear,       // a linear map with real coefficients (copies, sums): the real formula
  kHolomorphic,  // conj(real formula(conj(grad)))
  kOwn,          // has a function of its own: complex_gradient
};

// The record of an operator.
struct Op {
  Schema schema;
  // By cell_of(); null if the operator has no kernel there. Filled at the first look-up, then constant.
  std::array<const KernelFunction*, kCells> table{};
  // The keys that a call may stop at: all layouts, and others with a kernel in the table.
  DispatchKeySet handled = kLayoutKeys;
  uint64_t tensor_arguments = 0;  // bit i: argument i holds tensors
  uint64_t number_arguments = 0;  // bit i: argument i holds numbers, which may be complex
  int device_argument = -1;       // the position of the device argument, or -1
  InferFn infer;                  // of kStructured
  OpKind kind = OpKind::kStructured;
  bool is_kind_marked = false;
  GradientFn gradient;
  ComplexGradient complex_rule = ComplexGradient::kNone;
  GradientFn complex_gradient;
  // Bit i: the gradient reads the elements of argument (return) i, so a call keeps them.
  uint64_t saved_inputs = ~uint64_t{0}, saved_outputs = ~uint64_t{0};
  // Of a pointwise op from the tables in kernels/: its expression in operands a, b, c and numbers
  // p0 … p2 of a type T, for the fuser. Static text or null.
  const char* formula = nullptr;
  std::array<PackFn, kDeviceKinds> pack;        // for known weights; null if these arguments cannot be packed
  std::array<PrepareFn, kDeviceKinds> prepare;  // for known shapes; see prepared.h. Optional
  Attributes attributes;                        // see attributes.h
  const Op* base = nullptr;                     // for "add_" and "add.out": the functional form "add"

  bool is_pure = true;  // no writes, no random numbers, no printing: may be folded, merged, dropped
  // Index of a bool argument: arguments that the schema marks as written are written only if it is true (batch_norm's
  // running statistics in training). -1: always.
  int writes_when = -1;
  bool is_view = false;       // returns share memory with an argument (from the schema's marks)
  bool is_pointwise = false;  // out[i] depends on in[i] only, after broadcasting
  bool is_reduction = false;
  bool is_random = false;
  // For OpKind::kComposite: its gradient is that of the operators that it calls.
  bool is_composite = false;
  // Floating results that are constants to autograd (empty_like, detach). Without this, and without a gradient, an
  // operator that is not composite throws in backward for inputs that require a gradient.
  bool is_constant_result = false;
  bool has_dynamic_shape = false;  // the output shape depends on data
  // Correct for any strides of its tensor inputs, and its outputs keep their order of dimensions (channels_last stays
  // channels_last); the layout pass asks for it.
  bool keeps_layout = false;
  bool reads_only_shape = false;  // reads sizes, dtype and device of its tensors; no element, no stride

  const std::string& name() const { return schema.name; }
  // The kernel for strided tensors of real numbers, or null.
  const KernelFunction* kernel(DeviceKind device) const { return table[cell_of(Functionality::kDense, device)]; }
  // Whether the kernel fills outputs that the caller allocates.
  bool has_fill(DeviceKind device) const { return kernel(device) && kernel(device)->fill; }
};

// Gives operators a kernel for a functionality that does not depend on the device, at the first look-up; null: calls
// fall through. Called before main, once for each functionality.
void set_kernels(Functionality functionality, const KernelFunction* (*choose)(const Op& op));

// A copy of an operator with `function` as its only kernel, for calls in graphs: its calls fall through autograd, which
// sees the operators that the function calls.
std::shared_ptr<const Op> with_function(const Op& op, ReturnFn function);

// Builds one registration; made by OP(), complete at the end of the full expression. Also registers the variants that
// follow the schema: `inplace` (`inplace.OVERLOAD`), "name_" with self written in place, and `out`, the overload "out"
// (or "<overload>_out") with a keyword argument Tensor(a!) out.
class OpBuilder {
 public:
  // `name` is "aten::sum.dim_IntList", which kernels/*/*.ops declare. Operators of other namespaces are registered by a
  // whole line: "my::relu(Tensor self) -> Tensor; inplace, out".
  OpBuilder(std::string_view name, const char* file, int line);
  const Schema& schema() const { return op_->schema; }

  // Function of the schema's arguments → TensorMeta or std::vector<TensorMeta>. Tensor
  // arguments may be meta tensors: shape, strides and dtype only.
  template <class F>
  OpBuilder& infer(F function);
  // The operator's only kernel: a function of the schema's arguments → a value, a tuple/vector of returns, or void. For
  // kAllocating: the CPU's.
  template <class F>
  OpBuilder& impl(F function, std::source_location origin = std::source_location::current());
  // Function of const GradArgs& → std::vector<Tensor> or std::vector<Value>, by argument.
  template <class F>
  OpBuilder& gradient(F function);
  // The values that the gradient reads, "self, weight, result": arguments by name, results as "result" or "result0",
  // "result1" … Without it everything; "" for shapes alone. "self: other; other: self" lists them for the gradient of
  // each argument; see saved_for.h.
  OpBuilder& saves(const char* names);
  OpBuilder& composite();
  OpBuilder& constant_result();
  // The arguments marked (a!) are written only when this bool argument is true.
  OpBuilder& writes_when(const char* argument);
  OpBuilder& impure();  // prints, raises, changes state
  OpBuilder& random();  // impure, and uses the generator
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
  // Sets an attribute: `.set<BatchIndependent>(function)`.
  template <class T, class... Parts>
  OpBuilder& set(Parts&&... parts) {
    if (!op_->attributes.set(T{std::forward<Parts>(parts)...})) report_second_attribute();
    return *this;
  }
  // Where the record does not say it: an operator with impl() is of kView when its result is marked as a view,
  // kComposite when composite() says so, kScript when no tensor comes out or none goes in, else kAllocating.
  OpBuilder& kind(OpKind kind);

 private:
  void add_inplace_form(std::string_view mark) const;  // "inplace", or "inplace.Scalar" for another overload name
  void add_out_form() const;
  OpBuilder& set_infer(InferFn infer, CppTypes types);
  // `types`: none for a function of raw values.
  OpBuilder& set_impl(ReturnFn function, std::optional<CppTypes> types, const std::source_location& origin);
  void check_parameters(CppTypes types, const char* what);
  void report_second_attribute() const;
  Op* op_;
  const char* file_;
  int line_;
};

// Registers kernels for a place of the table. Several names, separated by spaces, share one. A function of (const
// KernelContext&, schema arguments…, Tensor& output…) → void fills outputs that the caller allocated; any other is a
// function of the schema's arguments, or of the raw values, as for impl(). Signatures are checked against the schema
// when the registry is frozen, in any order of OP and IMPL. Work of a device goes to its current stream.
class ImplBuilder {
 public:
  template <class F>
  ImplBuilder(std::string_view names, DispatchKey key, F function,
              std::source_location origin = std::source_location::current());
  ImplBuilder(std::string_view names, DispatchKey key, SameAsDense);
  // The gradient for complex tensors; the last one gets const GradArgs& itself.
  ImplBuilder& linear();
  ImplBuilder& holomorphic();
  template <class F>
  ImplBuilder& gradient(F function);

 private:
  void add_fill(FillFn fill, CppTypes types, const std::source_location& origin);
  void add_function(ReturnFn function, std::optional<CppTypes> types, const std::source_location& origin);
  void add(const KernelFunction& kernel, std::optional<CppTypes> types);
  void set_rule(ComplexGradient rule, GradientFn gradient);
  std::string_view names_;
  DispatchKey key_;
};

// Applies `change` to the record of `op`, which another file registers, at the first look-up. `what` is for errors: "a
// prepared form". With `types`, checks that the operator takes these.
void join_to_record(std::string op, const char* what, std::function<void(Op&)> change,
                    std::optional<CppTypes> types = std::nullopt);

// Gives an op a packed form for weights on a device.
class PackBuilder {
 public:
  PackBuilder(const char* op, DeviceKind device, PackFn function);
};

// Gives an op a prepared form on a device.
class PrepareBuilder {
 public:
  PrepareBuilder(const char* op, DeviceKind device, PrepareFn function);
};

// Sets an op's attribute outside of its block.
template <class T>
void set_attribute(const char* op, T value) {
  join_to_record(op, "an attribute", [value = std::move(value)](Op& record) {
    check_internal(record.attributes.set(value), record.name(), " has two attributes of one kind");
  });
}

#define TENSORD_CONCAT2(A, B) A##B
#define TENSORD_CONCAT(A, B) TENSORD_CONCAT2(A, B)
#define OP(NAME)                                                                         \
  static const ::tensord::ops::OpBuilder TENSORD_CONCAT(op_registration_, __COUNTER__) = \
      ::tensord::ops::OpBuilder(NAME, __FILE__, __LINE__)
#define IMPL(NAMES, KEY, ...)                                                                \
  static const ::tensord::ops::ImplBuilder TENSORD_CONCAT(impl_registration_, __COUNTER__) = \
      ::tensord::ops::ImplBuilder(NAMES, KEY, __VA_ARGS__)
#define PREPARE(OP_NAME, DEVICE, ...)                                                                             \
  static const ::tensord::ops::PrepareBuilder TENSORD_CONCAT(prepare_registration_, __COUNTER__)(OP_NAME, DEVICE, \
                                                                                                 __VA_ARGS__)
#define PACK(OP_NAME, DEVICE, ...) \
  static const ::tensord::ops::PackBuilder TENSORD_CONCAT(pack_registration_, __COUNTER__)(OP_NAME, DEVICE, __VA_ARGS__)

// Implementation details follow; users of the API can stop here.

namespace detail {

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

std::vector<TensorMeta> single(TensorMeta meta);

}  // namespace detail

// For functions with several returns.
using Returns = detail::Returns;

template <class F>
OpBuilder& OpBuilder::infer(F function) {
  using Arguments = typename Signature<F>::Arguments;
  using Indices = std::make_index_sequence<std::tuple_size_v<Arguments>>;
  return set_infer(
      [function](std::span<const Value> v) -> std::vector<TensorMeta> {
        using R = typename Signature<F>::Return;
        if constexpr (std::is_same_v<R, TensorMeta>) {
          return detail::single(detail::call_unboxed<F, Arguments>(function, v, Indices()));
        } else {
          return detail::call_unboxed<F, Arguments>(function, v, Indices());
        }
      },
      cpp_types_of<Arguments, 0>(Indices()));
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

// Whether it is a function of raw values, which serves vararg schemas.
template <class F>
constexpr bool takes_values() {
  using Arguments = typename Signature<F>::Arguments;
  return std::is_same_v<Arguments, std::tuple<std::span<const Value>, std::vector<Value>&>> ||
         std::is_same_v<Arguments, std::tuple<std::span<const Value>>>;
}

template <class F>
std::optional<CppTypes> types_of_parameters() {
  using Arguments = typename Signature<F>::Arguments;
  if constexpr (takes_values<F>()) {
    return std::nullopt;
  } else {
    return cpp_types_of<Arguments, 0>(std::make_index_sequence<std::tuple_size_v<Arguments>>());
  }
}

template <class F>
ReturnFn box_function(F function) {
  using Arguments = typename Signature<F>::Arguments;
  constexpr bool kIsVoid = std::is_void_v<typename Signature<F>::Return>;
  if constexpr (std::is_same_v<Arguments, std::tuple<std::span<const Value>, std::vector<Value>&>>) {
    return function;
  } else if constexpr (std::is_same_v<Arguments, std::tuple<std::span<const Value>>>) {
    return [function](std::span<const Value> v, std::vector<Value>& returns) {
      if constexpr (kIsVoid)
        function(v);
      else
        push(returns, function(v));
    };
  } else {
    using Indices = std::make_index_sequence<std::tuple_size_v<Arguments>>;
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
OpBuilder& OpBuilder::impl(F function, std::source_location origin) {
  return set_impl(detail::box_function(function), detail::types_of_parameters<F>(), origin);
}

namespace detail {

template <class F, class Arguments, size_t... I, size_t... O>
FillFn box_fill(F function, std::index_sequence<I...>, std::index_sequence<O...>) {
  return [function](const KernelContext& context, std::span<const Value> v, std::span<Tensor> outputs) {
    function(context, UnboxOf<std::tuple_element_t<I + 1, Arguments>>::get(v[I])..., outputs[O]...);
  };
}

// Whether a function fills outputs, by its first parameter.
template <class F>
constexpr bool is_fill() {
  using Arguments = typename Signature<F>::Arguments;
  if constexpr (std::tuple_size_v<Arguments> == 0) {
    return false;
  } else {
    return std::is_same_v<std::tuple_element_t<0, Arguments>, const KernelContext&>;
  }
}

template <class Arguments, size_t... I>
constexpr size_t count_outputs(std::index_sequence<I...>) {
  return (size_t{0} + ... + (std::is_same_v<std::tuple_element_t<I, Arguments>, Tensor&> ? 1 : 0));
}

}  // namespace detail

template <class F>
ImplBuilder::ImplBuilder(std::string_view names, DispatchKey key, F function, std::source_location origin)
    : names_(names), key_(key) {
  if constexpr (detail::is_fill<F>()) {
    using Arguments = typename Signature<F>::Arguments;
    constexpr size_t kParameters = std::tuple_size_v<Arguments>;
    constexpr size_t kOutputs = detail::count_outputs<Arguments>(std::make_index_sequence<kParameters>());
    constexpr size_t kInputs = kParameters - 1 - kOutputs;
    using Inputs = std::make_index_sequence<kInputs>;
    add_fill(detail::box_fill<F, Arguments>(function, Inputs(), std::make_index_sequence<kOutputs>()),
             cpp_types_of<Arguments, 1>(Inputs()), origin);
  } else {
    add_function(detail::box_function(function), detail::types_of_parameters<F>(), origin);
  }
}

template <class F>
ImplBuilder& ImplBuilder::gradient(F function) {
  set_rule(ComplexGradient::kOwn, [function](const GradArgs& args) -> std::vector<Value> {
    auto found = function(args);
    return {found.begin(), found.end()};
  });
  return *this;
}

}  // namespace tensord::ops
