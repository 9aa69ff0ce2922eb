// Indexing operators.
#include <algorithm>

#include "core/base/error.h"
#include "core/jit/exporters/onnx/call.h"
#include "core/jit/importers/onnx/tensors.h"

namespace tensord::jit::onnx {
namespace {

std::string indices(Call& c, const Traced& index) { return c.operand(index, DType::kInt64); }

void select(Call& c) {
  const Traced& index = c.in("index");
  c.set(c.emit("Gather", {c.x(), c.scalar(index, DType::kInt64)}, {{"axis", c.dim("dim", c.t().ndim())}}));
}

void index_select(Call& c) {
  std::string index = indices(c, c.in("index"));
  if (c.t("index").ndim() == 0) index = c.reshape(index, Dims{1});
  c.set(c.emit("Gather", {c.x(), index}, {{"axis", c.dim("dim", c.t().ndim())}}));
}

void embedding(Call& c) { c.set(c.emit("Gather", {c.x("weight"), indices(c, c.in("indices"))})); }

void gather(Call& c) {
  c.set(c.emit("GatherElements", {c.x(), indices(c, c.in("index"))}, {{"axis", c.dim("dim", c.t().ndim())}}));
}

void scatter(Call& c) {
  const std::string index = indices(c, c.in("index"));
  std::string source;
  if (c.has("src")) {
    if (c.t("src").sizes() != c.t("index").sizes() || c.t2("src").sizes() != c.t2("index").sizes())
      c.refuse("a source larger than the index cannot be exported to ONNX");
    source = c.operand("src", c.dtype());
  } else {
    source = c.emit("Expand", {c.operand("value", c.dtype()), c.shape_of(index)});
  }
  Attributes attributes{{"axis", c.dim("dim", c.t().ndim())}};
  if (c.has("reduce")) c.refuse("with a reduction cannot be exported to ONNX");
  const bool adds = c.op().schema.name.starts_with("aten::scatter_add");
  if (adds) attributes.emplace_back("reduction", std::string("add"));
  c.set(c.emit("ScatterElements", {c.x(), index, source}, attributes));
}

// Indices of the true elements of a mask, in order, with shape [count, rank of the mask].
std::string true_places(Call& c, const Traced& mask) {
  return c.emit("Transpose", {c.emit("NonZero", {c.tracer().name_of(mask)})}, {{"perm", std::vector<int64_t>{1, 0}}});
}

void nonzero(Call& c) { c.set(true_places(c, c.in("self"))); }
void masked_select(Call& c) {
  const std::string mask = c.emit("Expand", {c.x("mask"), c.shape_of(c.x())});
  const std::string x = c.emit("Expand", {c.x(), c.shape_of(mask)});
  const std::string places = c.emit("Transpose", {c.emit("NonZero", {mask})}, {{"perm", std::vector<int64_t>{1, 0}}});
  c.set(c.emit("GatherND", {x, places}));
}

// x[…, i, j, …]: adjacent index tensors, from dimension `first` on.
struct Indices {
  int64_t first = 0;
  std::vector<Traced> tensors;
};

Indices read_indices(Call& c) {
  Indices out;
  bool has_ended = false;
  int64_t dim = 0;
  for (const Traced& index : c.list("indices")) {
    if (index.a.is_none()) {
      has_ended = !out.tensors.empty();
    } else {
      if (has_ended) c.refuse("indices that do not stand side by side cannot be exported to ONNX");
      if (out.tensors.empty()) out.first = dim;
      const DType type = index.a.to_tensor().dtype();
      const bool is_mask = type == DType::kBool || type == DType::kUInt8;
      if (is_mask && (c.list("indices").size() > 1 || dim > 0))
        c.refuse("a mask beside other indices cannot be exported to ONNX");
      out.tensors.push_back(index);
    }
    ++dim;
  }
  if (out.tensors.empty()) c.refuse("without an index cannot be exported to ONNX");
  return out;
}

// Stacks the indices along a last dimension, as GatherND and ScatterND take them.
std::string joined(Call& c, const std::vector<Traced>& tensors, size_t& rank) {
  rank = 0;
  Strings names;
  std::string shape;
  for (const Traced& tensor : tensors) {
    names.push_back(indices(c, tensor));
    rank = std::max(rank, static_cast<size_t>(tensor.a.to_tensor().ndim()));
  }
  // The broadcast shape, computed by adding the indices.
  std::string sum = names[0];
  for (size_t i = 1; i < names.size(); ++i) sum = c.emit("Add", {sum, names[i]});
  shape = c.shape_of(sum);
  Strings parts;
  const std::string last = c.int_vector({static_cast<int64_t>(rank)});
  for (const std::string& name : names) parts.push_back(c.emit("Unsqueeze", {c.emit("Expand", {name, shape}), last}));
  return c.emit("Concat", parts, {{"axis", static_cast<int64_t>(rank)}});
}

bool is_mask(const Indices& found) {
  const DType type = found.tensors[0].a.to_tensor().dtype();
  return type == DType::kBool || type == DType::kUInt8;
}

void index(Call& c) {
  const Indices found = read_indices(c);
  if (is_mask(found)) return c.set(c.emit("GatherND", {c.x(), true_places(c, found.tensors[0])}));
  if (found.tensors.size() == 1)
    return c.set(c.emit("Gather", {c.x(), indices(c, found.tensors[0])}, {{"axis", found.first}}));
  const int64_t count = std::ssize(found.tensors), rank = c.t().ndim();
  std::string x = c.x();
  size_t index_rank = 0;
  const std::string places = joined(c, found.tensors, index_rank);
  if (found.first == 0) return c.set(c.emit("GatherND", {x, places}));
  // Moves the indexed dimensions to the front, and the result's dimensions back.
  Dims order;
  for (int64_t i = 0; i < count; ++i) order.push_back(found.first + i);
  for (int64_t i = 0; i < rank; ++i) {
    if (i < found.first || i >= found.first + count) order.push_back(i);
  }
  x = c.emit("GatherND", {c.transpose(x, order), places});
  const auto taken = static_cast<int64_t>(index_rank);
  Dims back;
  for (int64_t i = 0; i < found.first; ++i) back.push_back(taken + i);
  for (int64_t i = 0; i < taken; ++i) back.push_back(i);
  for (int64_t i = taken + found.first; i < taken + rank - count; ++i) back.push_back(i);
  c.set(c.transpose(x, back));
}

void index_put(Call& c) {
  const Indices found = read_indices(c);
  const std::string x = c.x();
  if (is_mask(found)) {
    if (c.t("values").numel() != 1 || c.flag("accumulate"))
      c.refuse("several values by a mask cannot be exported to ONNX");
    std::string mask = c.tracer().name_of(found.tensors[0]);
    Dims wide;
    for (int64_t i = found.tensors[0].a.to_tensor().ndim(); i < c.t().ndim(); ++i) wide.push_back(i);
    if (!wide.empty()) mask = c.emit("Unsqueeze", {mask, c.int_vector(wide)});
    const std::string value = c.emit("Reshape", {c.operand("values", c.dtype()), c.int_vector({})});
    return c.set(c.emit("Where", {mask, value, x}));
  }
  if (found.first != 0) c.refuse("indices that do not begin at dimension 0 cannot be exported to ONNX");
  size_t rank = 0;
  const std::string places = joined(c, found.tensors, rank);
  // Updates must have the shape of the gathered elements.
  const std::string values =
      c.emit("Expand", {c.operand("values", c.dtype()), c.shape_of(c.emit("GatherND", {x, places}))});
  Attributes attributes;
  if (c.flag("accumulate")) attributes.emplace_back("reduction", std::string("add"));
  c.set(c.emit("ScatterND", {x, places, values}, attributes));
}

void slice_scatter(Call& c) {
  const int64_t dim = c.dim("dim", c.t().ndim());
  if (c.integer("step") != 1) c.refuse("a step cannot be exported to ONNX");
  const std::string x = c.x(), axis = c.int_vector({dim}), source = c.operand("src", c.dtype());
  const auto bound = [](int64_t value) { return tracing::wrap(value, value); };
  const Traced start = c.has("start") ? c.in("start") : bound(0);
  const Traced end = c.has("end") ? c.in("end") : bound(INT64_MAX);
  const std::string first = c.size_vector({&start, 1}), last = c.size_vector({&end, 1});
  c.set(c.emit("Concat",
               {c.emit("Slice", {x, c.int_vector({0}), first, axis}), source,
                c.emit("Slice", {x, last, c.int_vector({INT64_MAX}), axis})},
               {{"axis", dim}}));
}

void one_hot(Call& c) {
  if (c.integer("num_classes") < 0) c.refuse("a number of classes that depends on data cannot be exported to ONNX");
  const std::string depth = c.constant(Tensor::scalar(c.integer("num_classes"), DType::kInt64));
  c.set(c.emit("OneHot", {c.x(), depth, c.int_vector({0, 1})}));
}

}  // namespace

std::span<const HandlerRow> index_rows() {
  static const HandlerRow kRows[] = {
      {"aten::select", select},
      {"aten::index_select", index_select},
      {"aten::embedding", embedding},
      {"aten::gather", gather},
      {"aten::scatter", scatter},
      {"aten::scatter_add", scatter},
      {"aten::nonzero", nonzero},
      {"aten::masked_select", masked_select},
      {"aten::index", index},
      {"aten::index_put", index_put},
      {"aten::_index_put_impl_", index_put},
      {"aten::slice_scatter", slice_scatter},
      {"aten::one_hot", one_hot},
  };
  return kRows;
}

}  // namespace tensord::jit::onnx
