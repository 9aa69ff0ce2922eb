#include <algorithm>
#include <limits>

#include "core/base/cancellation.h"
#include "kernels/base/numbers.h"
#include "kernels/expr/expr.h"
#include "kernels/view/view.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

// Splits one tensor into several views.
namespace tensord::kernels {
namespace {

// A view takes some hundred bytes whatever it shows, and an expanded tensor of one element can be split into any number
// of them.
constexpr int64_t kMaxParts = int64_t{1} << 24;

void check_parts(const char* op, int64_t parts) { check(parts < kMaxParts, op, ": too many parts: ", parts); }

// Checks before another part is made.
void look_at_part(size_t part) {
  constexpr size_t kLookParts = 1 << 14;
  if (part % kLookParts == kLookParts - 1) check_work_cancelled();
}

}  // namespace

std::vector<Tensor> split_with_sizes(const Tensor& x, const IntList& sizes, int64_t dim) {
  check(x.ndim() != 0, "split expects at least a 1-dimensional tensor");
  dim = wrap_dim(dim, x.ndim());
  const int64_t length = x.sizes()[dim];
  std::vector<Tensor> out;
  int64_t start = 0;
  for (int64_t size : sizes) {
    check(size >= 0, "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=",
          to_string(sizes));
    check(size <= length - start, "split_with_sizes expects split_sizes to sum exactly to ", length,
          " (input tensor's size at dimension ", dim, "), but got split_sizes=", to_string(sizes));
    look_at_part(out.size());
    out.push_back(narrow(x, dim, start, size));
    start += size;
  }
  check(start == length, "split_with_sizes expects split_sizes to sum exactly to ", length,
        " (input tensor's size at dimension ", dim, "), but got split_sizes=", to_string(sizes));
  return out;
}

std::vector<Tensor> split(const Tensor& x, int64_t size, int64_t dim) {
  check(x.ndim() != 0, "split expects at least a 1-dimensional tensor");
  check(size >= 0, "split expects split_size be non-negative, but got split_size=", size);
  dim = wrap_dim(dim, x.ndim());
  const int64_t length = x.sizes()[dim];
  check(size > 0 || length == 0, "split_size can only be 0 if dimension size is 0, but got dimension size of ", length);
  check_parts("split", length == 0 ? 1 : (length - 1) / size + 1);
  std::vector<Tensor> out;
  int64_t start = 0;
  do {
    look_at_part(out.size());
    const int64_t part = std::min(size, length - start);
    out.push_back(narrow(x, dim, start, part));
    start += part;
  } while (start < length);
  return out;
}

std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim) {
  check(x.ndim() > 0, "chunk expects at least a 1-dimensional tensor");
  check(chunks > 0, "chunk expects `chunks` to be greater than 0, got: ", chunks);
  dim = wrap_dim(dim, x.ndim());
  const int64_t length = x.sizes()[dim];
  if (length == 0) {
    check(chunks < kMaxParts, "chunk: too many chunks: ", chunks);
    return split_with_sizes(x, Dims(static_cast<size_t>(chunks), 0), dim);
  }
  return split(x, length / chunks + (length % chunks != 0), dim);
}

namespace {

using TensorList = std::vector<Tensor>;

// The first length % sections parts are longer by one.
TensorList tensor_split(const Tensor& x, int64_t sections, int64_t dim) {
  check(x.ndim() > 0, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with ", x.ndim(),
        " dims");
  check(sections > 0, "number of sections must be larger than 0, got ", sections);
  check(sections < kMaxParts, "tensor_split: too many sections: ", sections);
  dim = wrap_dim(dim, x.ndim());
  const int64_t length = x.sizes()[dim];
  TensorList out;
  int64_t start = 0;
  for (int64_t i = 0; i < sections; ++i) {
    look_at_part(out.size());
    const int64_t part = length / sections + (i < length % sections);
    out.push_back(narrow(x, dim, start, part));
    start += part;
  }
  return out;
}

TensorList tensor_split_at(const Tensor& x, const IntList& indices, int64_t dim) {
  check(x.ndim() > 0, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with ", x.ndim(),
        " dims");
  TensorList out;
  int64_t start = 0;
  for (int64_t end : indices) {
    look_at_part(out.size());
    out.push_back(slice(x, dim, start, end, 1));
    start = end;
  }
  out.push_back(slice(x, dim, start, std::nullopt, 1));
  return out;
}

TensorList unbind(const Tensor& x, int64_t dim) {
  check(x.ndim() > 0, "unbind: a 0-dim tensor has no dimension to unbind");
  dim = wrap_dim(dim, x.ndim());
  check_parts("unbind", x.sizes()[dim]);
  TensorList out;
  for (int64_t i = 0; i < x.sizes()[dim]; ++i) {
    look_at_part(out.size());
    out.push_back(select(x, dim, i));
  }
  return out;
}

TensorList copies(TensorList views) {
  for (Tensor& x : views) x = x.clone();
  return views;
}

TensorList broadcast_tensors(const TensorList& tensors) {
  Dims sizes;
  for (const Tensor& x : tensors) sizes = broadcast_sizes(sizes, x.sizes());
  TensorList out;
  for (const Tensor& x : tensors) out.push_back(expand(x, sizes));
  return out;
}

TensorList meshgrid(const TensorList& tensors, bool swaps) {
  check(!tensors.empty(), "meshgrid expects a non-empty TensorList");
  swaps = swaps && tensors.size() >= 2;
  TensorList inputs = tensors;
  if (swaps) std::swap(inputs[0], inputs[1]);
  Dims sizes;
  for (const Tensor& x : inputs) {
    check(x.ndim() <= 1, "Expected 0D or 1D tensor in the tensor list but got a tensor with ", x.ndim(), " dims");
    check(x.dtype() == inputs[0].dtype(), "meshgrid expects all tensors to have the same dtype");
    sizes.push_back(x.numel());
  }
  TensorList out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Dims shape(inputs.size(), 1);
    shape[i] = sizes[i];
    out.push_back(expand(reshape(inputs[i], shape), sizes));
  }
  if (swaps) std::swap(out[0], out[1]);
  return out;
}

using gradient::fit_gradient;
using ops::GradArgs;
using ops::Value;

// The gradients of the parts, joined again; zeros for a part without a gradient.
std::vector<Tensor> join(const GradArgs& args, int64_t dim, const char* op) {
  std::vector<Tensor> gradients(args.inputs.size());
  const auto& parts = args.outputs[0].to_list()->items;
  TensorList given(args.grad_outputs.begin(), args.grad_outputs.end());
  if (parts.empty() || std::none_of(given.begin(), given.end(), [](const Tensor& g) { return g.defined(); })) {
    return gradients;
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i]) given[i] = gradient::zeros_like(parts[i]);
  }
  gradients[0] = ops::call_by_name(op, given, wrap_dim(dim, args.inputs[0].to_tensor().ndim()));
  return gradients;
}
std::vector<Tensor> split_gradient(const GradArgs& args) { return join(args, args.inputs[2].to_int(), "aten::cat"); }
std::vector<Tensor> unbind_gradient(const GradArgs& args) { return join(args, args.inputs[1].to_int(), "aten::stack"); }
// Parts that skip or repeat elements are slices, each with its own place.
std::vector<Tensor> split_at_gradient(const GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Tensor& x = args.inputs[0].to_tensor();
  const Dims indices = gradient::ints_of(args, 1);
  int64_t start = 0;
  for (size_t i = 0; i < args.grad_outputs.size(); ++i) {
    const int64_t end = i < indices.size() ? indices[i] : std::numeric_limits<int64_t>::max();
    if (args.grad_outputs[i]) {
      const Tensor part = ops::slice_backward(args.grad_outputs[i], x.sizes(), args.inputs[2].to_int(), start, end, 1);
      gradients[0] = gradients[0] ? ops::add(gradients[0], part) : part;
    }
    start = end;
  }
  return gradients;
}

std::vector<Value> broadcast_gradient(const GradArgs& args) {
  TensorList gradients;
  const auto& inputs = args.inputs[0].to_list()->items;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& g = args.grad_outputs[i];
    gradients.push_back(g ? fit_gradient(g, inputs[i].to_tensor()) : Tensor());
  }
  return {ops::make_tensor_list(gradients)};
}
std::vector<Value> grid_gradient(const GradArgs& args) {
  const auto& inputs = args.inputs[0].to_list()->items;
  const bool swaps = args.inputs.size() > 1 && args.inputs[1].to_string() == "xy" && inputs.size() >= 2;
  TensorList gradients;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const size_t dim = swaps && i < 2 ? 1 - i : i;
    Tensor g = args.grad_outputs[i];
    if (g) {
      Dims others;
      for (size_t d = 0; d < inputs.size(); ++d) {
        if (d != dim) others.push_back(static_cast<int64_t>(d));
      }
      if (!others.empty()) g = ops::sum(g, others);
      g = ops::reshape(g, inputs[i].to_tensor().sizes());
    }
    gradients.push_back(g);
  }
  std::vector<Value> all(args.inputs.size());
  all[0] = ops::make_tensor_list(gradients);
  return all;
}

#define SPLIT(NAME, ...) OP(NAME).impl(__VA_ARGS__).gradient(split_gradient).saves("")
SPLIT("aten::split.Tensor", split);
SPLIT("aten::split.sizes", split_with_sizes);
SPLIT("aten::split", split_with_sizes);
SPLIT("aten::split_with_sizes", split_with_sizes);
SPLIT("aten::unsafe_split.Tensor",
      [](const Tensor& x, int64_t size, int64_t dim) { return copies(split(x, size, dim)); });
SPLIT("aten::unsafe_split_with_sizes",
      [](const Tensor& x, const IntList& sizes, int64_t dim) { return copies(split_with_sizes(x, sizes, dim)); });
SPLIT("aten::chunk", chunk);
SPLIT("aten::unsafe_chunk", [](const Tensor& x, int64_t chunks, int64_t dim) { return copies(chunk(x, chunks, dim)); });
SPLIT("aten::tensor_split.sections", tensor_split);
OP("aten::tensor_split.indices").impl(tensor_split_at).gradient(split_at_gradient).saves("");
// The sections or indices as a tensor, whose elements determine the shapes.
OP("aten::tensor_split.tensor_indices_or_sections")
    .impl([](const Tensor& x, const Tensor& given, int64_t dim) {
      check(x.ndim() > 0, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with ", x.ndim(),
            " dims");
      check(given.dtype() == DType::kInt64,
            "tensor_split expected tensor_indices_or_sections to have dtype of long, but got ", name_of(given.dtype()));
      check(given.ndim() <= 1,
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional "
            "tensor, but got a tensor with ",
            given.ndim(), " dims");
      if (given.ndim() == 0) return ops::tensor_split(x, given.item_int(), dim);
      return ops::tensor_split(x, IntList(integers_of(given)), dim);
    })
    .composite()
    .dynamic_shape();
OP("aten::unbind.int").impl(unbind).gradient(unbind_gradient).saves("");
OP("aten::broadcast_tensors").impl(broadcast_tensors).gradient(broadcast_gradient).saves("");
OP("aten::meshgrid")
    .impl([](const TensorList& tensors) { return meshgrid(tensors, false); })
    .gradient(grid_gradient)
    .saves("");
OP("aten::meshgrid.indexing")
    .impl([](const TensorList& tensors, const std::string& indexing) {
      check(indexing == "ij" || indexing == "xy",
            "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: ", indexing);
      return meshgrid(tensors, indexing == "xy");
    })
    .gradient(grid_gradient)
    .saves("");

}  // namespace
}  // namespace tensord::kernels
