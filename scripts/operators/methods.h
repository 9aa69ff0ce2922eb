#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/device.h"
#include "core/tensor/dims.h"
#include "core/tensor/dtype.h"

// Every operator whose first argument is `self`, as a member of Tensor: a.add(b), a.sum({1}), a.relu_(). The same
// functions as in ops.h, with the same arguments; here each way to call one is an overload, for Tensor is declared
// before the types of the arguments. A method of an undefined tensor throws Error{kInvalidArgument}.
//
// The engine itself is compiled without them, so that a new operator is not a reason to compile all of it again; they add
// no data and no virtual function. Therefore a file that includes <tensord/...> includes it before <core/...>. They are
// `const&` because two of the engine's own members have their names and other symbols.
#ifdef TENSORD_TENSOR_WITHOUT_METHODS
#error "include <tensord/...> before headers of <core/...>"
#endif
#define TENSORD_METHODS "tensord/tensor_members.h"

namespace tensord {

class Tensor;
namespace ops {
class Scalar;
}
using ops::Scalar;
class Int;
class Float;
class Bool;
class TensorIndex;
enum class MemoryFormat : int64_t;
template <class T, bool takes_one, bool is_optional>
class ListArgument;
using IntList = ListArgument<int64_t, false, false>;
using IntOrList = ListArgument<int64_t, true, false>;
using OptionalIntList = ListArgument<int64_t, false, true>;
using OptionalIntOrList = ListArgument<int64_t, true, true>;
using FloatList = ListArgument<double, false, false>;
using OptionalFloatList = ListArgument<double, false, true>;
using BoolList = ListArgument<bool, false, false>;
using ScalarList = ListArgument<ops::Scalar, false, false>;
using TensorList = ListArgument<Tensor, false, false>;
namespace autograd {
class HookHandle;
class Node;
}  // namespace autograd
namespace keyword {
@STRUCTS@
}  // namespace keyword

}  // namespace tensord
