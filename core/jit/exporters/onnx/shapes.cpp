// Operators that move elements, and factory operators.
#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/jit/exporters/onnx/call.h"
#include "core/jit/importers/onnx/tensors.h"

namespace tensord::jit::onnx {
namespace {

Traced known(int64_t value) { return tracing::wrap(value); }

void view(Call& c) {
  if (c.has("dtype")) c.refuse("another type over the same memory cannot be exported to ONNX");
  const char* sizes = c.has("shape") ? "shape" : "size";
  c.set(c.reshape(c.x(), c.list(sizes)));
}

void view_as(Call& c) { c.set(c.emit("Reshape", {c.x(), c.shape_of(c.x("other"))})); }

void flatten(Call& c) {
  const Tensor& a = c.t();
  if (a.ndim() == 0) return c.set(c.reshape(c.x(), Dims{1}));
  const int64_t begin = c.dim("start_dim", a.ndim()), end = c.dim("end_dim", a.ndim());
  const std::string x = c.x();
  const std::vector<Traced> sizes = c.sizes_of(x, c.first());
  std::vector<Traced> flat(sizes.begin(), sizes.begin() + begin);
  flat.push_back(known(-1));
  flat.insert(flat.end(), sizes.begin() + end + 1, sizes.end());
  c.set(c.reshape(x, flat));
}

void unflatten(Call& c) {
  const std::string x = c.x();
  std::vector<Traced> sizes = c.sizes_of(x, c.first());
  const int64_t dim = c.dim("dim", c.t().ndim());
  const std::vector<Traced> parts = c.list("sizes");
  sizes.erase(sizes.begin() + dim);
  sizes.insert(sizes.begin() + dim, parts.begin(), parts.end());
  c.set(c.reshape(x, sizes));
}

void unsqueeze(Call& c) { c.set(c.emit("Unsqueeze", {c.x(), c.int_vector({c.dim("dim", c.t().ndim() + 1)})})); }

void squeeze(Call& c) {
  Dims dims;
  const int64_t rank = c.t().ndim();
  const bool has_dim = c.has("dim");
  for (int64_t i = 0; i < rank; ++i) {
    bool is_meant = !has_dim;
    if (has_dim) {
      for (const int64_t dim : c.ints("dim")) is_meant = is_meant || wrap_dim(dim, rank) == i;
    }
    if (is_meant && c.t().size(i) == 1 && !c.is_open("self", i)) dims.push_back(i);
  }
  c.set(dims.empty() ? c.x() : c.emit("Squeeze", {c.x(), c.int_vector(dims)}));
}

Dims swapped(int64_t rank, int64_t first, int64_t second) {
  Dims order;
  for (int64_t i = 0; i < rank; ++i) order.push_back(i);
  if (rank > 0) std::swap(order[static_cast<size_t>(first)], order[static_cast<size_t>(second)]);
  return order;
}

void transpose(Call& c) {
  const int64_t rank = c.t().ndim();
  if (rank == 0) return c.set(c.x());
  const char *first = "dim0", *second = "dim1";
  if (c.op().schema.find_argument(first) < 0) first = "axis0", second = "axis1";
  c.set(c.transpose(c.x(), swapped(rank, c.dim(first, rank), c.dim(second, rank))));
}

void transpose_last(Call& c) {
  const int64_t rank = c.t().ndim();
  c.set(rank < 2 ? c.x() : c.transpose(c.x(), swapped(rank, rank - 2, rank - 1)));
}

void permute(Call& c) {
  Dims order;
  for (const int64_t dim : c.ints("dims")) order.push_back(wrap_dim(dim, c.t().ndim()));
  c.set(c.transpose(c.x(), order));
}

void move_dims(Call& c) {
  const int64_t rank = c.t().ndim();
  const Dims from = c.ints("source"), to = c.ints("destination");
  Dims order(static_cast<size_t>(rank), -1);
  std::vector<bool> is_taken(static_cast<size_t>(rank));
  for (size_t i = 0; i < from.size(); ++i) {
    order[static_cast<size_t>(wrap_dim(to[i], rank))] = wrap_dim(from[i], rank);
    is_taken[static_cast<size_t>(wrap_dim(from[i], rank))] = true;
  }
  int64_t next = 0;
  for (int64_t& place : order) {
    if (place >= 0) continue;
    while (is_taken[static_cast<size_t>(next)]) ++next;
    place = next++;
  }
  c.set(c.transpose(c.x(), order));
}

// -1 keeps a size, and so does 1 in ONNX.
void expand(Call& c) {
  std::vector<Traced> sizes = c.list("size");
  for (Traced& size : sizes) {
    if (!size.is_dynamic && size.a.to_int() == -1) size = known(1);
  }
  c.set(c.emit("Expand", {c.x(), c.size_vector(sizes)}));
}

void expand_as(Call& c) { c.set(c.emit("Expand", {c.x(), c.shape_of(c.x("other"))})); }

void repeat(Call& c) {
  const std::vector<Traced> repeats = c.list("repeats");
  std::string x = c.x();
  Dims added;
  for (int64_t i = c.t().ndim(); i < std::ssize(repeats); ++i) added.push_back(i - c.t().ndim());
  if (!added.empty()) x = c.emit("Unsqueeze", {x, c.int_vector(added)});
  c.set(c.emit("Tile", {x, c.size_vector(repeats)}));
}

void repeat_interleave(Call& c) {
  if (!c.has("repeats") || !c.in("repeats").a.is_int() || !c.has("dim"))
    c.refuse("this overload cannot be exported to ONNX");
  const int64_t dim = c.dim("dim", c.t().ndim());
  const std::string x = c.x();
  std::vector<Traced> sizes = c.sizes_of(x, c.first());
  std::vector<Traced> tiles(sizes.size() + 1, known(1));
  tiles[static_cast<size_t>(dim) + 1] = c.in("repeats");
  const std::string wide = c.emit("Unsqueeze", {x, c.int_vector({dim + 1})});
  const std::string tiled = c.emit("Tile", {wide, c.size_vector(tiles)});
  sizes[static_cast<size_t>(dim)] = known(-1);
  c.set(c.reshape(tiled, sizes));
}

void concatenate(Call& c) {
  Strings names;
  const int64_t rank = c.result().ndim();
  for (const Traced& tensor : c.list("tensors")) {
    if (tensor.a.to_tensor().ndim() != rank) continue;  // a legacy empty 1-D tensor, which is skipped
    names.push_back(c.operand(tensor, c.dtype()));
  }
  c.set(c.emit("Concat", names, {{"axis", c.dim("dim", rank)}}));
}

void stack(Call& c) {
  Strings names;
  const int64_t dim = c.dim("dim", c.result().ndim());
  for (const Traced& tensor : c.list("tensors"))
    names.push_back(c.emit("Unsqueeze", {c.operand(tensor, c.dtype()), c.int_vector({dim})}));
  c.set(c.emit("Concat", names, {{"axis", dim}}));
}

// Splits into parts of known sizes, one per result.
Strings split_at(Call& c, int64_t dim) {
  Dims sizes;
  for (const Traced& part : *c.results()[0].items) {
    if (c.tracer().is_open_size(part, dim)) c.refuse("sizes of parts depend on a dynamic size");
    sizes.push_back(part.a.to_tensor().size(dim));
  }
  if (sizes.size() == 1) return {c.x()};
  return c.emit_many("Split", {c.x(), c.int_vector(sizes)}, {{"axis", dim}}, sizes.size());
}

void split(Call& c) { c.set_items(split_at(c, c.dim("dim", c.t().ndim()))); }

void unbind(Call& c) {
  const int64_t dim = c.dim("dim", c.t().ndim());
  Strings names;
  const std::string x = c.x();
  for (int64_t i = 0; i < std::ssize(*c.results()[0].items); ++i)
    names.push_back(c.emit("Gather", {x, c.constant(Tensor::scalar(i, DType::kInt64))}, {{"axis", dim}}));
  c.set_items(names);
}

// Slices a list of values.
void slice_list(Call& c, const std::vector<Traced>& items) {
  const int64_t count = std::ssize(items), step = c.integer("step");
  if (step < 1) c.refuse("a negative step cannot be exported to ONNX");
  const auto bound = [&](const char* name, int64_t otherwise) {
    const int64_t at = c.has(name) ? c.integer(name) : otherwise;
    return std::clamp<int64_t>(at < 0 ? at + count : at, 0, count);
  };
  auto taken = std::make_shared<std::vector<Traced>>();
  const int64_t end = bound("end", count);
  for (int64_t i = bound("start", 0); i < end; i += step) taken->push_back(items[static_cast<size_t>(i)]);
  c.results()[0].items = std::move(taken);
}

void slice(Call& c) {
  const char* self = c.op().schema.arguments[0].name.c_str();
  if (c.in(self).items) return slice_list(c, *c.in(self).items);
  if (!c.in(self).a.is_strided()) c.refuse("cannot be exported to ONNX");
  const Traced start = c.has("start") ? c.in("start") : known(0);
  const Traced end = c.has("end") ? c.in("end") : known(std::numeric_limits<int64_t>::max());
  c.set(c.emit("Slice", {c.x(self), c.size_vector({&start, 1}), c.size_vector({&end, 1}),
                         c.int_vector({c.dim("dim", c.t(self).ndim())}), c.int_vector({c.integer("step")})}));
}

void narrow(Call& c) {
  if (c.in("start").is_dynamic || c.in("length").is_dynamic)
    c.refuse("a dynamic start or length cannot be exported to ONNX");
  const int64_t dim = c.dim("dim", c.t().ndim());
  int64_t start = c.integer("start");
  if (start < 0) {
    if (c.is_open("self", dim)) c.refuse("a start from the end of a dynamic size cannot be exported to ONNX");
    start += c.t().size(dim);
  }
  c.set(c.emit("Slice",
               {c.x(), c.int_vector({start}), c.int_vector({start + c.integer("length")}), c.int_vector({dim})}));
}

void flip(Call& c) {
  Dims dims, begins, ends, steps;
  for (const int64_t dim : c.ints("dims")) {
    dims.push_back(wrap_dim(dim, c.t().ndim()));
    begins.push_back(-1);
    ends.push_back(std::numeric_limits<int64_t>::min());
    steps.push_back(-1);
  }
  c.set(c.emit("Slice", {c.x(), c.int_vector(begins), c.int_vector(ends), c.int_vector(dims), c.int_vector(steps)}));
}

void roll(Call& c) {
  const Dims shifts = c.ints("shifts"), dims = c.ints("dims");
  std::string x = c.x();
  if (dims.empty()) c.refuse("without dims cannot be exported to ONNX");
  const std::string last = c.int_vector({std::numeric_limits<int64_t>::max()}), first = c.int_vector({0});
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t dim = wrap_dim(dims[i], c.t().ndim()), size = c.t().size(dim);
    if (c.is_open("self", dim)) c.refuse("a dynamic size cannot be exported to ONNX");
    if (size == 0) continue;
    const std::string at = c.int_vector({((-shifts[i]) % size + size) % size}), axis = c.int_vector({dim});
    x = c.emit("Concat", {c.emit("Slice", {x, at, last, axis}), c.emit("Slice", {x, first, at, axis})},
               {{"axis", dim}});
  }
  c.set(x);
}

template <int64_t kUpper>
void triangle(Call& c) {
  const std::string k = c.constant(Tensor::scalar(c.integer("diagonal"), DType::kInt64));
  c.set(c.emit("Trilu", {c.x(), k}, {{"upper", kUpper}}));
}

// PyTorch's padding starts at the last dimension, with begin and end of each.
std::string padded(Call& c, const std::string& x, const Tensor& t, const std::string& mode) {
  std::vector<Traced> begins(static_cast<size_t>(t.ndim()), known(0)), ends = begins;
  const std::vector<Traced> given = c.list(c.has("pad") ? "pad" : "padding");
  for (size_t i = 0; i + 1 < given.size(); i += 2) {
    const size_t dim = static_cast<size_t>(t.ndim()) - 1 - i / 2;
    begins[dim] = given[i];
    ends[dim] = given[i + 1];
  }
  begins.insert(begins.end(), ends.begin(), ends.end());
  Strings inputs{x, c.size_vector(begins)};
  if (mode == "constant")
    inputs.push_back(c.has("value") ? c.scalar(c.in("value"), c.dtype()) : c.scalar(0, c.dtype()));
  return c.emit("Pad", inputs, {{"mode", mode}});
}

void pad(Call& c) {
  std::string mode = "constant";
  if (c.has("mode")) mode = c.text("mode");
  if (mode == "replicate") mode = "edge";
  if (mode == "circular") mode = "wrap";
  c.set(padded(c, c.x(), c.t(), mode));
}
void reflection_pad(Call& c) { c.set(padded(c, c.x(), c.t(), "reflect")); }
void replication_pad(Call& c) { c.set(padded(c, c.x(), c.t(), "edge")); }

void pixel_shuffle(Call& c) {
  if (c.t().ndim() != 4) c.refuse("only 4 dimensions can be exported to ONNX");
  c.set(c.emit("DepthToSpace", {c.x()}, {{"blocksize", c.integer("upscale_factor")}, {"mode", std::string("CRD")}}));
}

void channel_gather(Call& c, const std::string& x, const Dims& channels) {
  c.set(c.emit("Gather", {x, c.int_vector(channels)}, {{"axis", int64_t{1}}}));
}

// SpaceToDepth puts the positions of a block before the channels.
void pixel_unshuffle(Call& c) {
  if (c.t().ndim() != 4) c.refuse("only 4 dimensions can be exported to ONNX");
  if (c.is_open("self", 1)) c.refuse("a dynamic number of channels cannot be exported to ONNX");
  const int64_t channels = c.t().size(1), factor = c.integer("downscale_factor"), places = factor * factor;
  Dims order;
  for (int64_t i = 0; i < channels * places; ++i) order.push_back(i % places * channels + i / places);
  channel_gather(c, c.emit("SpaceToDepth", {c.x()}, {{"blocksize", factor}}), order);
}

void channel_shuffle(Call& c) {
  if (c.is_open("self", 1)) c.refuse("a dynamic number of channels cannot be exported to ONNX");
  const int64_t channels = c.t().size(1), groups = c.integer("groups"), of_group = channels / groups;
  Dims order;
  for (int64_t i = 0; i < channels; ++i) order.push_back(i % groups * of_group + i / groups);
  channel_gather(c, c.x(), order);
}

void outer(Call& c) {
  const std::string column = c.emit("Unsqueeze", {c.operand("self", c.dtype()), c.int_vector({1})});
  c.set(c.emit("Mul", {column, c.operand("vec2", c.dtype())}));
}

// Maximum number of indices that are written as constants.
constexpr int64_t kMaxPlaces = int64_t{1} << 20;

// Elements one row and one column apart in the two flattened dimensions.
void diagonal(Call& c) {
  const int64_t rank = c.t().ndim(), dim1 = c.dim("dim1", rank), dim2 = c.dim("dim2", rank);
  if (c.is_open("self", dim1) || c.is_open("self", dim2)) c.refuse("a dynamic size cannot be exported to ONNX");
  const int64_t rows = c.t().size(dim1), columns = c.t().size(dim2), offset = c.integer("offset");
  const std::string x = c.x();
  const std::vector<Traced> all = c.sizes_of(x, c.first());
  Dims order;
  std::vector<Traced> sizes;
  for (int64_t i = 0; i < rank; ++i) {
    if (i == dim1 || i == dim2) continue;
    order.push_back(i);
    sizes.push_back(all[static_cast<size_t>(i)]);
  }
  order.push_back(dim1);
  order.push_back(dim2);
  sizes.push_back(known(rows * columns));
  // A view of few bytes may have any number of elements.
  const int64_t count = c.result().size(rank - 2);
  if (count > kMaxPlaces) c.refuse(concat("more than ", kMaxPlaces, " elements cannot be exported to ONNX"));
  Dims places;
  for (int64_t i = 0; i < count; ++i) {
    places.push_back((i + std::max<int64_t>(-offset, 0)) * columns + i + std::max<int64_t>(offset, 0));
  }
  const std::string flat = c.reshape(c.transpose(x, order), sizes);
  c.set(c.emit("Gather", {flat, c.int_vector(places)}, {{"axis", rank - 2}}));
}

// Fills a shape with one value.
void fill_shape(Call& c, const std::string& value, const std::string& shape) {
  c.set(c.emit("Expand", {value, shape}));
}

template <int64_t kValue>
void made(Call& c) {
  fill_shape(c, c.scalar(double{kValue}, c.dtype()), c.size_vector(c.list("size")));
}
template <int64_t kValue>
void factory_like(Call& c) {
  fill_shape(c, c.scalar(double{kValue}, c.dtype()), c.shape_of(c.x()));
}
void full(Call& c) { fill_shape(c, c.operand("fill_value", c.dtype()), c.size_vector(c.list("size"))); }
void full_like(Call& c) { fill_shape(c, c.operand("fill_value", c.dtype()), c.shape_of(c.x())); }

void arange(Call& c) {
  const bool has_start = c.has("start"), has_step = c.has("step");
  // The count depends on the arguments before conversion, so a float range is computed in floats.
  const DType type = c.dtype();
  const std::string start = has_start ? c.scalar(c.in("start"), type) : c.scalar(0, type);
  const std::string step = has_step ? c.scalar(c.in("step"), type) : c.scalar(1, type);
  c.set(c.emit("Range", {start, c.scalar(c.in("end"), type), step}));
}

void meshgrid(Call& c) {
  const bool is_xy = c.has("indexing") && c.text("indexing") == "xy";
  const std::vector<Traced> tensors = c.list("tensors");
  Strings vectors;
  std::vector<Traced> sizes;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const size_t axis = is_xy && i < 2 && tensors.size() > 1 ? 1 - i : i;
    Dims shape(tensors.size(), 1);
    shape[axis] = -1;
    vectors.push_back(c.reshape(c.operand(tensors[i], tensors[i].a.to_tensor().dtype()), shape));
  }
  // All results have the shape of the grid.
  std::string shape;
  for (size_t i = 0; i < vectors.size(); ++i) {
    const std::string own = c.shape_of(vectors[i]);
    shape = i == 0 ? own : c.emit("Max", {shape, own});
  }
  Strings grids;
  for (const std::string& vector : vectors) grids.push_back(c.emit("Expand", {vector, shape}));
  c.set_items(grids);
}

}  // namespace

std::span<const HandlerRow> shape_rows() {
  static const HandlerRow kRows[] = {
      {"aten::view", view},
      {"aten::reshape", view},
      {"aten::_unsafe_view", view},
      {"aten::_reshape_alias", view},
      {"aten::view_as", view_as},
      {"aten::reshape_as", view_as},
      {"aten::flatten", flatten},
      {"aten::unflatten", unflatten},
      {"aten::unsqueeze", unsqueeze},
      {"aten::squeeze", squeeze},
      {"aten::transpose", transpose},
      {"aten::swapaxes", transpose},
      {"aten::t", transpose_last},
      {"aten::mT", transpose_last},
      {"aten::numpy_T", transpose_last},
      {"aten::permute", permute},
      {"aten::movedim", move_dims},
      {"aten::expand", expand},
      {"aten::broadcast_to", expand},
      {"aten::expand_as", expand_as},
      {"aten::repeat", repeat},
      {"aten::tile", repeat},
      {"aten::repeat_interleave", repeat_interleave},
      {"aten::cat", concatenate},
      {"aten::concat", concatenate},
      {"aten::stack", stack},
      {"aten::split", split},
      {"aten::split_with_sizes", split},
      {"aten::chunk", split},
      {"aten::tensor_split", split},
      {"aten::unbind", unbind},
      {"aten::slice", slice},
      {"aten::narrow", narrow},
      {"aten::flip", flip},
      {"aten::roll", roll},
      {"aten::tril", triangle<0>},
      {"aten::triu", triangle<1>},
      {"aten::pad", pad},
      {"aten::constant_pad_nd", pad},
      {"aten::reflection_pad1d", reflection_pad},
      {"aten::reflection_pad2d", reflection_pad},
      {"aten::reflection_pad3d", reflection_pad},
      {"aten::replication_pad1d", replication_pad},
      {"aten::replication_pad2d", replication_pad},
      {"aten::replication_pad3d", replication_pad},
      {"aten::pixel_shuffle", pixel_shuffle},
      {"aten::pixel_unshuffle", pixel_unshuffle},
      {"aten::channel_shuffle", channel_shuffle},
      {"aten::outer", outer},
      {"aten::ger", outer},
      {"aten::diagonal", diagonal},
      {"aten::zeros", made<0>},
      {"aten::ones", made<1>},
      {"aten::new_zeros", made<0>},
      {"aten::new_ones", made<1>},
      {"aten::zeros_like", factory_like<0>},
      {"aten::ones_like", factory_like<1>},
      {"aten::full", full},
      {"aten::new_full", full},
      {"aten::full_like", full_like},
      {"aten::arange", arange},
      {"aten::meshgrid", meshgrid},
  };
  return kRows;
}

}  // namespace tensord::jit::onnx
