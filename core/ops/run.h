#pragma once

#include <span>
#include <type_traits>
#include <vector>

#include "core/ops/op.h"
#include "core/ops/registry.h"

namespace tensord::ops {

// Calls an operator: finds its kernel by the arguments and the thread's state (dispatch.h). `arguments` has one value
// for each schema argument (with defaults, see bind). In-place variants write self (after a check of shape and dtype)
// and bump its version; they refuse storage that is not writable. Throws Error starting with the operator's name.
std::vector<Value> run(const Op& op, std::span<const Value> arguments);
// The same, appending the returns to `returns`.
void run(const Op& op, std::span<const Value> arguments, std::vector<Value>& returns);

// Continues below `one`: below autograd, the call itself is not recorded.
void run_below(Functionality one, const Op& op, std::span<const Value> arguments, std::vector<Value>& returns);

// Output shapes and dtypes without computing: the arguments' tensors may be meta. Views and other operators with one
// function run on meta tensors. Throws Error{kUnimplemented} if shapes depend on data.
std::vector<Value> infer(const Op& op, std::span<const Value> arguments);

// Fills in defaults and checks the number of arguments.
std::vector<Value> bind(const Op& op, std::vector<Value> positional);

// Whether a value may be passed for this argument, by the rules of TorchScript's implicit
// conversions (int to float, int to int[N], None to optional, 0-d tensor to number).
bool accepts(const Argument& argument, const Value& value);
// Converts a value that `accepts` allows to what the kernel expects.
Value convert(const Argument& argument, const Value& value);

// First overload of `name` that accepts the values; throws Error listing the candidates.
const Op& resolve(std::string_view name, std::span<const Value> arguments);

namespace detail {

inline Value boxed(const Dims& dims) { return make_int_list(dims); }
inline Value boxed(const std::vector<Tensor>& tensors) { return make_tensor_list(tensors); }
template <class T>
Value boxed(const T& value) {
  return Value(value);
}

}  // namespace detail

// An operator whose name is data, such as a table's: call_by_name(name, a, b). Defaults are filled in; what the values
// are is checked at run time. Code that knows the operator calls its function: ops::add(a, b), of "ops/pointwise.h".
template <class R = Tensor, class... A>
R call_by_name(const char* full_name, const A&... arguments) {
  const Op& op = get_op(full_name);
  std::vector<Value> returns = run(op, bind(op, {detail::boxed(arguments)...}));
  if constexpr (!std::is_void_v<R>) return Unbox<R>::get(returns.front());
}

}  // namespace tensord::ops
