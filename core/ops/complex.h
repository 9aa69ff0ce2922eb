#pragma once

#include <span>
#include <vector>

#include "core/ops/op.h"

namespace tensord::ops {

// How operators take complex tensors. Their own code is for real numbers, so an operator without an entry
// here refuses complex tensors by name. Views and questions about shapes need none.
//
// Gradients are PyTorch's: of a real loss L by z = x + iy, dL/dx + i dL/dy, the direction of steepest ascent.
// For a function that is complex differentiable that is grad · conj(f'), so the formula of real numbers serves,
// between two conjugates.
enum class ComplexGradient : uint8_t {
  kNone,         // refused
  kLinear,       // a map with real coefficients (copies, sums): the real formula as it is
  kHolomorphic,  // conj(real formula(conj(grad)))
  kOwn,          // the entry's own
};

struct ComplexForm {
  DirectFn function;          // empty: the operator's own code is right for complex tensors too
  bool is_composite = false;  // `function` is written with other operators: its gradient is theirs
  ComplexGradient rule = ComplexGradient::kNone;
  GradientFn gradient;  // of kOwn; sees what the operator's `saves` says
};

// Whether a tensor among the values, lists taken apart, or a number is complex.
bool has_complex(std::span<const Value> values);
// A 0-d tensor of the number's own type: bool, int64, float64 or complex128.
Tensor tensor_of(const Scalar& value);
// Null where the operator refuses.
const ComplexForm* complex_form(const Op& op);
// Throws Error{kUnimplemented} naming the operator where there is none.
const ComplexForm& checked_complex_form(const Op& op);
// The operator's gradient where something of the call, or an incoming gradient, is complex.
std::vector<Value> complex_gradient(const Op& op, const GradArgs& args);

// Collects one entry; made by COMPLEX(). Several names, apart by blanks, share it.
class ComplexBuilder {
 public:
  explicit ComplexBuilder(const char* names);
  ~ComplexBuilder() = default;
  // A function of the schema's arguments, as OpBuilder::direct takes it. Its tensors may be meta.
  template <class F>
  ComplexBuilder& direct(F function) {
    using Arguments = typename Signature<F>::Arguments;
    using Indices = std::make_index_sequence<std::tuple_size_v<Arguments>>;
    form_->function = [function](std::span<const Value> v, std::vector<Value>& returns) {
      if constexpr (std::is_same_v<Arguments, std::tuple<std::span<const Value>>>) {
        detail::push(returns, function(v));
      } else {
        detail::push(returns, detail::call_unboxed<F, Arguments>(function, v, Indices()));
      }
    };
    return *this;
  }
  // The same, written with other operators.
  template <class F>
  ComplexBuilder& composite(F function) {
    form_->is_composite = true;
    return direct(function);
  }
  ComplexBuilder& linear();
  ComplexBuilder& holomorphic();
  // Function of const GradArgs& → std::vector<Tensor> or std::vector<Value>, by argument.
  template <class F>
  ComplexBuilder& gradient(F function) {
    form_->rule = ComplexGradient::kOwn;
    form_->gradient = [function](const GradArgs& args) -> std::vector<Value> {
      auto found = function(args);
      return {found.begin(), found.end()};
    };
    return *this;
  }

 private:
  ComplexForm* form_;
};

#define COMPLEX(NAMES)                                                                             \
  static const ::tensord::ops::ComplexBuilder TENSORD_CONCAT(complex_registration_, __COUNTER__) = \
      ::tensord::ops::ComplexBuilder(NAMES)

}  // namespace tensord::ops
