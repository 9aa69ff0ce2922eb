#pragma once

#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include "core/autograd/node.h"
#include "core/autograd/saved.h"
#include "core/ops/value.h"

// Functions with a backward of their own:
//
//   struct Cube : Function<Cube> {
//     static Tensor forward(FunctionContext& context, const Tensor& x) {
//       context.save_for_backward({x});
//       return …;
//     }
//     static std::vector<Tensor> backward(FunctionContext& context, std::vector<Tensor> grads) {
//       const Tensor x = context.saved().at(0);
//       return {…};
//     }
//   };
//   Tensor y = Cube::apply(x);
//
// forward takes tensors, optional and lists of tensors, and anything else, and returns a Tensor or a
// std::vector<Tensor>; nothing it does is recorded. backward gives one gradient for each argument of
// forward, undefined for what is not a tensor, lists of tensors taken apart.
// `static constexpr bool kOnceDifferentiable = true` says that backward has no gradient itself: asking
// for one is an Error.
namespace tensord::autograd {

class FunctionNode;

// Passes data from forward to backward. Used by one thread at a time.
class FunctionContext {
 public:
  // Saves inputs, results or other tensors that backward reads. The pass throws Error if they were written in the
  // meantime.
  void save_for_backward(std::vector<Tensor> tensors) { to_save_ = std::move(tensors); }
  // For backward. Throws Error after a pass that did not retain the graph.
  std::vector<Tensor> saved() const;
  // Declares inputs that forward writes. forward must return them.
  void mark_dirty(std::vector<Tensor> tensors) { dirty_ = std::move(tensors); }
  // Declares results without a gradient. Results that are not floating never have one.
  void mark_non_differentiable(std::vector<Tensor> tensors) { non_differentiable_ = std::move(tensors); }
  // Whether backward gets zeros (the default) or undefined tensors for gradients that do not flow.
  void set_materialize_grads(bool value) { materializes_ = value; }
  // Whether the gradient of an argument is needed (lists count by item).
  bool needs_input_grad(size_t argument) const;
  // Any other data that backward needs.
  std::map<std::string, ops::Value> data;

 private:
  friend class FunctionNode;
  friend class FunctionCall;
  std::vector<Tensor> to_save_, dirty_, non_differentiable_;
  std::vector<SavedTensor> saved_;
  std::vector<int32_t> edges_;  // by argument: its edge, -1 for an argument that is not a tensor
  std::vector<bool> needed_;    // by argument
  bool materializes_ = true, is_released_ = false, is_backward_ = false;
};

// One call of a Function: the part that does not depend on its types.
class FunctionCall {
 public:
  using BackwardFn = std::vector<Tensor> (*)(FunctionContext&, std::vector<Tensor>);
  FunctionCall(std::string name, BackwardFn backward, bool is_once_differentiable);
  ~FunctionCall();
  FunctionCall(const FunctionCall&) = delete;
  FunctionCall& operator=(const FunctionCall&) = delete;

  void add_argument(const Tensor& tensor);
  void add_other() { add_argument_of(nullptr); }
  FunctionContext& context();
  // Sets this call as the history of the results.
  void finish(std::vector<Tensor>& results);

 private:
  void add_argument_of(const Tensor* tensor);
  void check_dirty(const std::vector<Tensor>& results) const;
  void give_history(Tensor& result, uint32_t number, size_t count);
  std::optional<size_t> input_of(const Tensor& tensor) const;  // its position among the input tensors
  bool has_gradient(const Tensor& result) const;
  bool is_over_dirty(const Tensor& tensor) const;

  IntrusivePtr<FunctionNode> node_;
  std::vector<Tensor> inputs_;
  bool is_recorded_ = false;
};

// "Cube" for struct Cube.
std::string function_name(const std::type_info& type);

template <class Derived>
class Function {
 public:
  template <class... A>
  static auto apply(A&&... arguments) {
    bool is_once = false;
    if constexpr (requires { Derived::kOnceDifferentiable; }) is_once = Derived::kOnceDifferentiable;
    FunctionCall call(function_name(typeid(Derived)), &Derived::backward, is_once);
    (record_argument(call, arguments), ...);
    auto result = [&] {
      const NoGradGuard guard;
      return Derived::forward(call.context(), std::forward<A>(arguments)...);
    }();
    if constexpr (std::is_same_v<decltype(result), Tensor>) {
      std::vector<Tensor> results{std::move(result)};
      call.finish(results);
      return std::move(results.front());
    } else {
      static_assert(std::is_same_v<decltype(result), std::vector<Tensor>>, "forward returns tensors");
      call.finish(result);
      return result;
    }
  }

 private:
  static void record_argument(FunctionCall& call, const Tensor& tensor) { call.add_argument(tensor); }
  static void record_argument(FunctionCall& call, const std::optional<Tensor>& tensor) {
    tensor ? call.add_argument(*tensor) : call.add_other();
  }
  static void record_argument(FunctionCall& call, const std::vector<Tensor>& tensors) {
    for (const Tensor& tensor : tensors) call.add_argument(tensor);
  }
  template <class T>
  requires(!std::is_convertible_v<const T&, Tensor>) static void record_argument(FunctionCall& call, const T&) {
    call.add_other();
  }
};

}  // namespace tensord::autograd
