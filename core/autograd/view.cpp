#include "core/autograd/view.h"

#include "core/autograd/saved.h"
#include "core/autograd/variable.h"
#include "core/base/mutex.h"
#include "core/ops/run.h"
#include "core/tensor/complex.h"
#include "ops/complex.h"
#include "ops/view.h"

namespace tensord::autograd {
namespace {

using ops::Value;

// The place of a view in its base, in elements of the view. The view of a real base may be complex, and the other way
// around.
struct Place {
  Place(const Tensor& base, const Tensor& view)
      : sizes(view.sizes()),
        strides(view.strides()),
        offset(view.offset()),
        base_offset(base.offset()),
        is_pairs(is_complex(base.dtype()) && !is_complex(view.dtype())),
        is_complex_of_pairs(!is_complex(base.dtype()) && is_complex(view.dtype())) {
    if (is_pairs) base_offset *= 2;
    if (!is_complex_of_pairs) return;
    for (int64_t& stride : strides) stride *= 2;
    sizes.push_back(2);
    strides.push_back(1);
    offset *= 2;
  }
  // This part of `whole`, which has the layout of the base but starts at 0.
  Tensor of(const Tensor& whole) const {
    const Tensor from = is_pairs ? ops::view_as_real(whole) : whole;
    const Tensor part = ops::as_strided(from, sizes, strides, offset - base_offset);
    return is_complex_of_pairs ? ops::view_as_complex(part) : part;
  }

  Dims sizes, strides;  // of the view's memory in units of the base, or of pairs if the base is complex
  int64_t offset, base_offset;
  bool is_pairs, is_complex_of_pairs;
};

// The history of a view whose memory was written after it was made: a part of its base.
class AsStrided final : public Node {
 public:
  AsStrided(Edge base_edge, const Tensor& base, const Tensor& view) : base_(base), view_(view) {
    add_edge(std::move(base_edge));
    add_result(view);
  }
  std::string name() const override { return "AsStridedBackward0"; }
  std::vector<Tensor> apply(std::vector<Tensor> gradients) override {
    static const ops::Op& op = ops::get_op("aten::as_strided");
    std::vector<Tensor> out(1);
    if (!gradients[0].defined()) return out;
    const Place place(base_, view_);
    const Tensor g = place.is_complex_of_pairs ? ops::view_as_real(gradients[0]) : gradients[0];
    const Tensor base = place.is_pairs ? as_real_pairs(base_) : base_;
    const Value arguments[] = {base, ops::make_int_list(place.sizes), ops::make_int_list(place.strides), place.offset};
    const Value result(Tensor::meta(g.sizes(), g.dtype(), g.device()));
    const std::vector<Value> found = op.gradient({arguments, std::span(&result, 1), std::span(&g, 1), 1});
    out[0] = place.is_pairs ? ops::view_as_complex(ops::contiguous(found[0].to_tensor())) : found[0].to_tensor();
    return out;
  }

 private:
  Tensor base_, view_;  // meta
};

// The history of a base after a part of it was written through a view: the gradient of the part flows through the node
// of the write, the rest passes unchanged.
class CopySlices final : public Node {
 public:
  CopySlices(const Tensor& base, const Tensor& view, NodePtr write, size_t edge)
      : base_(shape_of(base)), view_(shape_of(view)), write_(std::move(write)), edge_(edge) {
    for (const Edge& other : write_->next_edges()) add_edge(other);
    next_edges_[edge] = gradient_edge(base);
    add_result(base);
    write_->set_whole(this);
  }
  ~CopySlices() override { drop(std::move(write_)); }
  std::string name() const override { return "CopySlices"; }
  std::vector<Tensor> apply(std::vector<Tensor> gradients) override;
  void release_saved() override { write_->release_saved(); }

 private:
  NodePtr make_part() const override {
    return make_intrusive<AsStrided>(Edge{NodePtr(const_cast<CopySlices*>(this)), 0}, base_, view_);
  }

  Tensor base_, view_;  // meta
  NodePtr write_;
  size_t edge_;  // the edge of the overwritten tensor, here the base
};

std::vector<Tensor> CopySlices::apply(std::vector<Tensor> gradients) {
  std::vector<Tensor> out(next_edges_.size());
  const Tensor& gradient = gradients[0];
  if (!gradient.defined()) return out;
  const Tensor whole =
      ops::copy_(Tensor::empty_strided(base_.sizes(), base_.strides(), gradient.dtype(), gradient.device()), gradient);
  const Tensor part = Place(base_, view_).of(whole);
  std::vector<Tensor> found = write_->apply({ops::clone(part)});
  for (size_t i = 0; i < out.size(); ++i) {
    if (!needs_edge(i)) continue;
    if (i != edge_) {
      out[i] = std::move(found[i]);
      continue;
    }
    if (found[i].defined()) {
      ops::copy_(part, found[i]);
    } else {
      ops::zero_(part);
    }
    out[i] = whole;
  }
  return out;
}

const char* clarify(Creation creation) {
  switch (creation) {
    case Creation::kMultiOutput:
      return " This view is the output of a function that returns multiple views. Such functions do not allow the "
             "output views to be modified inplace. You should replace the inplace operation by an out-of-place one.";
    case Creation::kNoGrad:
      return " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
             "moving both the view and the inplace either both inside the no_grad block (if you don't want the inplace "
             "to be tracked) or both outside (if you want the inplace to be tracked).";
    case Creation::kCustomFunction:
      return " This view was created inside a custom Function (or because an input was returned as-is) and the "
             "autograd logic to handle view+inplace would override the custom backward associated with the custom "
             "Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the "
             "output of the custom Function.";
    case Creation::kDefault: break;
  }
  return "";
}

// Throws if a view of this kind is written, or its base is (`is_indirect`).
void check_creation(const ViewState& view, bool is_indirect) {
  if (view.creation == Creation::kDefault) return;
  const char* what = is_indirect ? "its base or another view of its base has been" : "is being";
  std::string text;
  if (view.creation == Creation::kNoGrad || !view.grad_fn) {
    text = view.grad_fn ? concat("Output ", view.output_nr, " of ", view.grad_fn->name(),
                                 " is a view of a view which was created in")
                        : std::string("A view was created in");
    text += concat(" no_grad mode and ", what, " modified inplace with grad mode enabled.");
  } else {
    text =
        concat("Output ", view.output_nr, " of ", view.grad_fn->name(), " is a view and ", what, " modified inplace.");
  }
  fail(ErrorCode::kFailedPrecondition, text, clarify(view.creation));
}

}  // namespace

void track_view(const Tensor& source, const Tensor& result, Creation creation) {
  const ViewState* outer = view_of(source);
  auto state = make_intrusive<ViewState>();
  state->base = outer ? outer->base : source;
  state->creation = creation == Creation::kDefault && outer ? outer->creation : creation;
  state->version = result.version();
  result.impl()->autograd = state;
}

NodePtr refresh(const Tensor& tensor, ViewState& view) {
  const MutexLock lock(view.mutex);
  const uint32_t version = tensor.version();
  if (view.version == version || (!view.grad_fn && !requires_grad(view.base))) return view.grad_fn;
  check_creation(view, true);
  auto node = make_intrusive<AsStrided>(gradient_edge(view.base), shape_of(view.base), shape_of(tensor));
  view.output_nr = 0;
  view.version = version;
  if (view.retains_grad) {
    if (view.grad_fn) release_retained(*view.grad_fn, *view.slot);
    retain_in(*node, 0, view.slot);
  }
  drop(std::exchange(view.grad_fn, NodePtr(node)));
  return view.grad_fn;
}

void check_write(const Tensor& tensor) {
  if (const ViewState* view = view_of(tensor)) {
    check_creation(*view, false);
    if (requires_grad(tensor) && is_leaf(view->base)) {
      fail(ErrorCode::kFailedPrecondition,
           "a view of a leaf Variable that requires grad is being used in an in-place operation.");
    }
  }
  if (requires_grad(tensor) && is_leaf(tensor)) {
    fail(ErrorCode::kFailedPrecondition, "a leaf Variable that requires grad is being used in an in-place operation.");
  }
}

void rebase_history(const Tensor& tensor, NodePtr node, uint32_t output_nr, size_t edge) {
  ViewState* view = view_of(tensor);
  if (!view) return set_history(tensor, std::move(node), output_nr);
  check_internal(node->results().size() == 1, "functions which modify views in-place must return a single tensor");
  set_history(view->base, make_intrusive<CopySlices>(view->base, tensor, std::move(node), edge), 0);
  refresh(tensor, *view);
}

}  // namespace tensord::autograd
