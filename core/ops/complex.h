#pragma once

#include <array>
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
  kOfCalls,      // of a composite: that of the operators that it calls
  kLinear,       // a map with real coefficients (copies, sums): the real formula as it is
  kHolomorphic,  // conj(real formula(conj(grad)))
  kOwn,          // the entry's own
};

// What runs: `composite`, or the device's own of `dynamic`; where there is neither, the operator's own code, which is
// right for complex tensors too.
struct ComplexForm {
  DirectFn composite;                          // written with other operators, on any device
  std::array<DirectFn, kDeviceKinds> dynamic;  // another device's may come by derive_kernels
  ComplexGradient rule = ComplexGradient::kNone;
  GradientFn gradient;  // of kOwn; sees what the operator's `saves` says

  bool is_own_code() const;
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
  // The processor's: a function of the schema's arguments, as OpBuilder::direct takes it. Its tensors may be meta.
  template <class F>
  ComplexBuilder& direct(F function) {
    form_->dynamic[static_cast<size_t>(kCPU)] = boxed(function);
    return *this;
  }
  // The same, written with other operators, on any device. Its gradient is theirs, where the entry says no other.
  template <class F>
  ComplexBuilder& composite(F function) {
    form_->composite = boxed(function);
    form_->rule = ComplexGradient::kOfCalls;
    return *this;
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
  template <class F>
  static DirectFn boxed(F function) {
    std::optional<std::vector<std::string>> unchecked;  // one entry may serve several schemas
    return detail::box_direct(function, unchecked);
  }
  ComplexForm* form_;
};

#define COMPLEX(NAMES)                                                                             \
  static const ::tensord::ops::ComplexBuilder TENSORD_CONCAT(complex_registration_, __COUNTER__) = \
      ::tensord::ops::ComplexBuilder(NAMES)

}  // namespace tensord::ops
