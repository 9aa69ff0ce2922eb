#include "core/autograd/function.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "core/autograd/differentiable.h"
#include "core/autograd/meta.h"
#include "core/autograd/variable.h"
#include "core/autograd/view.h"
#include "core/ops/run.h"
#include "ops/factory.h"

namespace tensord::autograd {
namespace {

bool contains(const std::vector<Tensor>& tensors, const Tensor& tensor) {
  return std::any_of(tensors.begin(), tensors.end(), [&](const Tensor& item) { return item.is_same(tensor); });
}

// Follows gradients that cannot be differentiated again.
class DelayedError final : public Node {
 public:
  explicit DelayedError(std::string message) : message_(std::move(message)) {}
  std::string name() const override { return "Error"; }
  std::vector<Tensor> apply(std::vector<Tensor>) override { fail(ErrorCode::kFailedPrecondition, message_); }

 private:
  std::string message_;
};

}  // namespace

class FunctionNode final : public Node {
 public:
  FunctionNode(std::string name, FunctionCall::BackwardFn backward, bool is_once)
      : name_(std::move(name)), backward_(backward), is_once_(is_once) {}

  std::string name() const override { return name_ + "Backward"; }
  std::vector<Tensor> apply(std::vector<Tensor> gradients) override;
  void release_saved() override {
    context.is_released_ |= !context.saved_.empty();
    context.saved_.clear();
  }

  void add_output_shape(const Tensor& result) { shapes_.push_back(shape_of(result)); }

  FunctionContext context;

 private:
  std::string name_;
  FunctionCall::BackwardFn backward_;
  bool is_once_;
  std::vector<Tensor> shapes_;  // meta
};

std::vector<Tensor> FunctionContext::saved() const {
  if (is_released_) fail_released();
  std::vector<Tensor> out;
  if (!is_backward_) return to_save_;
  for (const SavedTensor& tensor : saved_) out.push_back(tensor.unpack());
  return out;
}

bool FunctionContext::needs_input_grad(size_t argument) const {
  check(argument < needed_.size(), "needs_input_grad: there is no argument ", argument);
  return needed_[argument] && (!is_backward_ || needs_edge(static_cast<size_t>(edges_[argument])));
}

std::vector<Tensor> FunctionNode::apply(std::vector<Tensor> gradients) {
  if (context.materializes_) {
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) gradients[i] = ops::zeros_like(shapes_[i]);
    }
  }
  std::vector<Tensor> found;
  if (is_once_) {
    const NoGradGuard guard;
    found = backward_(context, std::move(gradients));
  } else {
    found = backward_(context, std::move(gradients));
  }
  const size_t arguments = context.edges_.size();
  while (found.size() > arguments && !found.back().defined()) found.pop_back();
  check(found.size() == arguments, "function ", name_, "Backward returned an incorrect number of gradients (expected ",
        arguments, ", got ", found.size(), ")");
  std::vector<Tensor> out(next_edges_.size());
  for (size_t i = 0; i < arguments; ++i) {
    const int32_t edge = context.edges_[i];
    check(edge >= 0 || !found[i].defined(), "function ", name(),
          " returned a gradient different from None at position ", i + 1,
          ", but the corresponding forward input was not a Variable");
    if (edge < 0 || !found[i].defined()) continue;
    Tensor& gradient = out[static_cast<size_t>(edge)] = std::move(found[i]);
    if (!is_once_ || !is_grad_enabled()) continue;
    gradient = detach(gradient);
    auto refusal = make_intrusive<DelayedError>(
        "trying to differentiate twice a function that was marked with @once_differentiable");
    refusal->add_result(gradient);
    set_history(gradient, refusal, 0);
  }
  return out;
}

FunctionCall::FunctionCall(std::string name, BackwardFn backward, bool is_once_differentiable)
    : node_(make_intrusive<FunctionNode>(std::move(name), backward, is_once_differentiable)) {}

FunctionCall::~FunctionCall() = default;

FunctionContext& FunctionCall::context() { return node_->context; }

void FunctionCall::add_argument(const Tensor& tensor) { add_argument_of(tensor.defined() ? &tensor : nullptr); }

void FunctionCall::add_argument_of(const Tensor* tensor) {
  FunctionContext& context = node_->context;
  const bool is_needed = tensor && is_grad_enabled() && requires_grad(*tensor);
  context.needed_.push_back(is_needed);
  context.edges_.push_back(tensor ? static_cast<int32_t>(inputs_.size()) : -1);
  if (!tensor) return;
  inputs_.push_back(*tensor);
  node_->add_edge(is_needed ? gradient_edge(*tensor) : Edge());
  is_recorded_ |= is_needed;
}

std::optional<size_t> FunctionCall::input_of(const Tensor& tensor) const {
  const auto at =
      std::find_if(inputs_.begin(), inputs_.end(), [&](const Tensor& input) { return input.is_same(tensor); });
  if (at == inputs_.end()) return std::nullopt;
  return static_cast<size_t>(at - inputs_.begin());
}

bool FunctionCall::has_gradient(const Tensor& result) const {
  return is_differentiable(result.dtype()) && !contains(node_->context.non_differentiable_, result);
}

bool FunctionCall::is_over_dirty(const Tensor& tensor) const {
  const auto& dirty = node_->context.dirty_;
  return std::any_of(dirty.begin(), dirty.end(),
                     [&](const Tensor& item) { return item.storage() == tensor.storage(); });
}

void FunctionCall::check_dirty(const std::vector<Tensor>& results) const {
  for (const Tensor& tensor : node_->context.dirty_) {
    check(contains(results, tensor),
          "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
          "modified inplace must all be outputs of the Function.");
    if (!is_recorded_) continue;
    if (view_of(tensor)) {
      check(results.size() == 1,
            "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return "
            "more than one Tensor. This is not supported by the current autograd engine.");
    }
    check_write(tensor);
  }
}

void FunctionCall::give_history(Tensor& result, uint32_t number, size_t count) {
  const FunctionContext& context = node_->context;
  const bool is_dirty = contains(context.dirty_, result);
  const std::optional<size_t> input = input_of(result);
  const bool has_gradient = this->has_gradient(result);
  node_->add_result(has_gradient ? result : Tensor());
  if (!has_gradient) {
    if (input) result = detach(result);
    return;
  }
  if (is_dirty) return rebase_history(result, node_, number, input.value_or(0));
  if (input) {
    const Tensor source = result;
    result = detach(source);
    track_view(source, result, Creation::kCustomFunction);
  } else if (ViewState* view = view_of(result)) {
    view->creation = count > 1 ? Creation::kMultiOutput : Creation::kCustomFunction;
  }
  set_history(result, node_, number);
}

void FunctionCall::finish(std::vector<Tensor>& results) {
  FunctionContext& context = node_->context;
  for (const Tensor& tensor : context.dirty_) {
    if (!tensor.is_meta()) tensor.storage()->bump_version();
  }
  check_dirty(results);
  if (is_recorded_) {
    for (const Tensor& result : results) {
      check(result.defined(), "a Function's forward must return defined tensors");
      node_->add_output_shape(result);
    }
    for (size_t i = 0; i < results.size(); ++i) give_history(results[i], static_cast<uint32_t>(i), results.size());
    for (const Tensor& tensor : context.to_save_) {
      const TensorState* state = tensor.defined() ? state_of(tensor) : nullptr;
      const bool is_own =
          state && has_gradient(tensor) && (state->grad_fn == NodePtr(node_) || contains(context.dirty_, tensor));
      // A view of a written tensor would own this node through the history of its base.
      const bool is_over = tensor.defined() && is_over_dirty(tensor);
      context.saved_.emplace_back(is_over ? detach(tensor) : tensor, is_own ? node_.get() : nullptr,
                                  is_own ? state->output_nr : 0);
    }
  }
  context.is_backward_ = true;
  context.to_save_.clear();
  context.dirty_.clear();
  context.non_differentiable_.clear();
}

std::string function_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> full(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                         &std::free);
  std::string name = full ? full.get() : type.name();
  const size_t colons = name.rfind("::");
  return colons == std::string::npos ? name : name.substr(colons + 2);
}

}  // namespace tensord::autograd
