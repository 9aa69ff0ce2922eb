#include <algorithm>

#include "core/tensor/device_copy.h"
#include "kernels/expr/expr.h"
#include "kernels/view/view.h"
#include "ops/index.h"
#include "ops/reduce.h"
#include "ops/view.h"

// Copies in another arrangement: repeat, flip, roll, pixel_shuffle and others like them.
namespace tensord::kernels {
namespace {

using ops::KernelContext;
using ops::TensorMeta;

TensorMeta plain(const Tensor& x, Dims sizes) { return {std::move(sizes), x.dtype(), {}, x.device()}; }

// --- repeat

// x with leading dimensions of size 1, up to `ndim` dimensions.
Tensor with_dims(const Tensor& x, int64_t ndim) {
  Dims sizes = x.sizes(), strides = x.strides();
  while (static_cast<int64_t>(sizes.size()) < ndim) {
    sizes.insert(0, 1);
    strides.insert(0, 0);
  }
  return x.as_view(std::move(sizes), std::move(strides), x.offset());
}

TensorMeta repeat_meta(const Tensor& x, const IntList& repeats) {
  check(static_cast<int64_t>(repeats.size()) >= x.ndim(),
        "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  Dims sizes = with_dims(x, static_cast<int64_t>(repeats.size())).sizes();
  for (size_t d = 0; d < sizes.size(); ++d) {
    check(repeats[d] >= 0, "Trying to create tensor with negative dimension ", repeats[d]);
    check(!__builtin_mul_overflow(sizes[d], repeats[d], &sizes[d]), "repeat: the size of dimension ", d, " overflows");
  }
  return plain(x, std::move(sizes));
}

void repeat_kernel(const KernelContext&, const Tensor& x, const IntList& repeats, Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor from = with_dims(x, static_cast<int64_t>(repeats.size()));
  // Views both sides as [repeat, size, repeat, size, …].
  Dims sizes, to_strides, from_strides;
  for (size_t d = 0; d < repeats.size(); ++d) {
    for (const bool is_repeat : {true, false}) {
      const int64_t size = is_repeat ? repeats[d] : from.sizes()[d];
      if (size == 1) continue;
      sizes.push_back(size);
      to_strides.push_back(out.strides()[d] * (is_repeat ? from.sizes()[d] : 1));
      from_strides.push_back(is_repeat ? 0 : from.strides()[d]);
    }
  }
  check(sizes.size() <= kMaxDims, "repeat: too many dimensions");
  copy_elements(out.as_view(sizes, std::move(to_strides), out.offset()),
                from.as_view(sizes, std::move(from_strides), from.offset()));
}

Dims tile_repeats(const Tensor& x, const IntList& dims) {
  Dims repeats = dims;
  while (static_cast<int64_t>(repeats.size()) < x.ndim()) repeats.insert(0, 1);
  return repeats;
}
TensorMeta tile_meta(const Tensor& x, const IntList& dims) { return repeat_meta(x, tile_repeats(x, dims)); }
void tile_kernel(const KernelContext& context, const Tensor& x, const IntList& dims, Tensor& out) {
  repeat_kernel(context, x, tile_repeats(x, dims), out);
}

// --- repeat_interleave

Tensor interleave_by(const Tensor& x, int64_t repeats, std::optional<int64_t> dim) {
  check(repeats >= 0, "repeats can not be negative");
  const Tensor in = dim ? x : reshape(x, Dims{-1});
  const int64_t at = wrap_dim(dim.value_or(0), std::max<int64_t>(in.ndim(), 1));
  const Tensor from = in.ndim() == 0 ? unsqueeze(in, 0) : in;
  Dims sizes = from.sizes();
  sizes.insert(at + 1, repeats);
  const Tensor wide = expand(unsqueeze(from, at + 1), sizes);
  sizes.erase(at + 1);
  check(!__builtin_mul_overflow(sizes[at], repeats, &sizes[at]), "repeat_interleave: the size overflows");
  return reshape(wide.clone(), sizes);
}

// --- flip and roll

TensorMeta flip_meta(const Tensor& x, const IntList& dims) {
  std::vector<bool> seen(static_cast<size_t>(std::max<int64_t>(x.ndim(), 1)));
  for (int64_t dim : dims) {
    const auto at = static_cast<size_t>(wrap_dim(dim, x.ndim()));
    check(!seen[at], "dim ", at, " appears multiple times in the list of dims");
    seen[at] = true;
  }
  const bool dense = is_non_overlapping_and_dense(x.sizes(), x.strides());
  return {x.sizes(), x.dtype(), dense ? x.strides() : Dims(), x.device()};
}

TensorMeta roll_meta(const Tensor& x, const IntList& shifts, const IntList& dims) {
  check(!shifts.empty(), "`shifts` required");
  check(dims.empty() ? shifts.size() == 1 : shifts.size() == dims.size(),
        "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:", dims.size());
  for (int64_t dim : dims) wrap_dim(dim, x.ndim());
  return plain(x, x.sizes());
}

// Copies the two halves of each dimension to their new places.
void roll_dims(const Tensor& from, const Tensor& to, const Dims& shifts, int64_t dim) {
  if (dim == from.ndim()) {
    copy_elements(to, from);
    return;
  }
  const int64_t size = from.sizes()[dim], shift = shifts[dim];
  if (shift == 0) return roll_dims(from, to, shifts, dim + 1);
  roll_dims(narrow(from, dim, 0, size - shift), narrow(to, dim, shift, size - shift), shifts, dim + 1);
  roll_dims(narrow(from, dim, size - shift, shift), narrow(to, dim, 0, shift), shifts, dim + 1);
}

int64_t wrap_shift(int64_t shift, int64_t size) { return ((shift % size) + size) % size; }

void roll_kernel(const KernelContext&, const Tensor& x, const IntList& shifts, const IntList& dims, Tensor& out) {
  if (x.numel() == 0) return;
  if (dims.empty()) {
    const Tensor flat = reshape(x, Dims{-1});
    return roll_dims(flat, view(out, Dims{-1}), Dims{wrap_shift(shifts[0], x.numel())}, 0);
  }
  Dims total(static_cast<size_t>(std::max<int64_t>(x.ndim(), 1)), 0);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (x.ndim() == 0) break;
    const int64_t dim = wrap_dim(dims[i], x.ndim());
    total[dim] = wrap_shift(total[dim] + wrap_shift(shifts[i], x.sizes()[dim]), x.sizes()[dim]);
  }
  roll_dims(x, out, total, 0);
}

Tensor rot90(const Tensor& x, int64_t k, const IntList& dims) {
  check(dims.size() == 2, "expected total rotation dims == 2, but got dims = ", dims.size());
  check(x.ndim() >= 2, "expected total dims >= 2, but got total dims = ", x.ndim());
  const int64_t d0 = wrap_dim(dims[0], x.ndim()), d1 = wrap_dim(dims[1], x.ndim());
  check(d0 != d1, "expected rotation dims to be different, but got dim0 = ", dims[0], " and dim1 = ", dims[1]);
  const auto flipped = [](const Tensor& from, const Dims& which) { return ops::flip(from, which); };
  switch (((k % 4) + 4) % 4) {
    case 1: return transpose(flipped(x, Dims{d1}), d0, d1);
    case 2: return flipped(x, Dims{d0, d1});
    case 3: return transpose(flipped(x, Dims{d0}), d0, d1);
    default: return x.clone();
  }
}

// --- channels and pixels

Tensor pixel_shuffle(const Tensor& x, int64_t factor) {
  check(x.ndim() >= 3, "pixel_shuffle expects input to have at least 3 dimensions, but got input with ", x.ndim(),
        " dimension(s)");
  check(factor > 0 && factor < (1 << 15), "pixel_shuffle expects a positive upscale_factor, but got ", factor);
  const int64_t channels = x.size(-3), height = x.size(-2), width = x.size(-1);
  check(channels % (factor * factor) == 0,
        "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
        "upscale_factor, but input.size(-3)=",
        channels, " is not divisible by ", factor * factor);
  Dims batch(x.sizes().span().first(static_cast<size_t>(x.ndim() - 3)));
  const auto leading = static_cast<int64_t>(batch.size());
  Dims split = batch, order, result = batch;
  for (int64_t size : {channels / (factor * factor), factor, factor, height, width}) split.push_back(size);
  for (int64_t d = 0; d < leading; ++d) order.push_back(d);
  for (int64_t d : {0, 3, 1, 4, 2}) order.push_back(leading + d);
  for (int64_t size : {channels / (factor * factor), height * factor, width * factor}) result.push_back(size);
  return reshape(permute(reshape(x, split), order).clone(), result);
}

Tensor pixel_unshuffle(const Tensor& x, int64_t factor) {
  check(x.ndim() >= 3, "pixel_unshuffle expects input to have at least 3 dimensions, but got input with ", x.ndim(),
        " dimension(s)");
  check(factor > 0 && factor < (1 << 15), "pixel_unshuffle expects a positive downscale_factor, but got ", factor);
  const int64_t channels = x.size(-3), height = x.size(-2), width = x.size(-1);
  check(height % factor == 0,
        "pixel_unshuffle expects height to be divisible by downscale_factor, but input.size(-2)=", height,
        " is not divisible by ", factor);
  check(width % factor == 0,
        "pixel_unshuffle expects width to be divisible by downscale_factor, but input.size(-1)=", width,
        " is not divisible by ", factor);
  Dims batch(x.sizes().span().first(static_cast<size_t>(x.ndim() - 3)));
  const auto leading = static_cast<int64_t>(batch.size());
  Dims split = batch, order, result = batch;
  for (int64_t size : {channels, height / factor, factor, width / factor, factor}) split.push_back(size);
  for (int64_t d = 0; d < leading; ++d) order.push_back(d);
  for (int64_t d : {0, 2, 4, 1, 3}) order.push_back(leading + d);
  for (int64_t size : {channels * factor * factor, height / factor, width / factor}) result.push_back(size);
  return reshape(permute(reshape(x, split), order).clone(), result);
}

Tensor channel_shuffle(const Tensor& x, int64_t groups) {
  check(x.ndim() > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes ", x.sizes());
  check(groups > 0, "Number of groups to divide channels in must be positive. Value of groups:", groups);
  const int64_t channels = x.sizes()[1];
  check(channels % groups == 0, "Number of channels must be divisible by groups. Got ", channels, " channels and ",
        groups, " groups.");
  Dims split = x.sizes();
  split[1] = channels / groups;
  split.insert(1, groups);
  return reshape(transpose(reshape(x, split), 1, 2).clone(), x.sizes());
}

using gradient::of_first;
using ops::GradArgs;

// Sums g over the copies of x in it, of which there are `repeats` along each dimension.
Tensor sum_copies(const Tensor& g, const Dims& repeats, const Tensor& x) {
  const auto added = static_cast<int64_t>(repeats.size()) - x.ndim();
  Dims split, copies;
  for (size_t d = 0; d < repeats.size(); ++d) {
    copies.push_back(static_cast<int64_t>(split.size()));
    split.push_back(repeats[d]);
    if (static_cast<int64_t>(d) >= added) split.push_back(x.sizes()[d - static_cast<size_t>(added)]);
  }
  if (copies.empty()) return g;
  if (g.numel() == 0) return gradient::zeros_like(x);
  return ops::sum(ops::reshape(g, split), copies);
}
Tensor repeat_gradient(const GradArgs& args, const Tensor& g) {
  return sum_copies(g, gradient::ints_of(args, 1), args.inputs[0].to_tensor());
}
Tensor tile_gradient(const GradArgs& args, const Tensor& g) {
  const Tensor& x = args.inputs[0].to_tensor();
  return sum_copies(g, tile_repeats(x, gradient::ints_of(args, 1)), x);
}
Tensor interleave_by_gradient(const GradArgs& args, const Tensor& g) {
  const Tensor& x = args.inputs[0].to_tensor();
  if (g.numel() == 0) return gradient::zeros_like(x);
  Dims sizes = args.inputs[2].is_none() ? Dims{x.numel()} : x.ndim() == 0 ? Dims{1} : x.sizes();
  const int64_t dim =
      args.inputs[2].is_none() ? 0 : wrap_dim(args.inputs[2].to_int(), static_cast<int64_t>(sizes.size()));
  sizes.insert(static_cast<size_t>(dim) + 1, args.inputs[1].to_int());
  const Tensor sum = ops::sum(ops::reshape(g, sizes), Dims{dim + 1});
  return ops::reshape(sum, x.sizes());
}
Tensor interleave_tensor_gradient(const GradArgs& args, const Tensor& g) {
  const Tensor& x = args.inputs[0].to_tensor();
  const Dims sizes = args.inputs[2].is_none() ? Dims{x.numel()} : x.ndim() == 0 ? Dims{1} : x.sizes();
  const int64_t dim =
      args.inputs[2].is_none() ? 0 : wrap_dim(args.inputs[2].to_int(), static_cast<int64_t>(sizes.size()));
  const Tensor repeats = ops::to(ops::reshape(args.inputs[1].to_tensor(), Dims{-1}), DType::kInt64);
  const Tensor each = repeats.numel() == 1 ? ops::expand(repeats, Dims{sizes[dim]}) : repeats;
  const Tensor positions = ops::repeat_interleave(each);
  const Tensor zeros = ops::reshape(gradient::zeros_like(x), sizes);
  return ops::reshape(ops::index_add(zeros, dim, positions, g), x.sizes());
}
Tensor roll_gradient(const GradArgs& args, const Tensor& g) {
  Dims shifts = gradient::ints_of(args, 1);
  for (size_t i = 0; i < shifts.size(); ++i) {
    const bool is_flat = args.inputs[2].to_list()->items.empty();
    const Dims dims = is_flat ? Dims() : gradient::ints_of(args, 2);
    const int64_t size = is_flat || g.ndim() == 0 ? g.numel() : g.size(dims[i]);
    shifts[i] = size == 0 ? 0 : -(shifts[i] % size);
  }
  return ops::roll(g, shifts, ops::unbox<Dims>(args.inputs[2]));
}
gradient::GradientFn same_way(const char* op) {
  return of_first([op](const GradArgs&, const Tensor& g) { return ops::call_by_name(op, g); });
}
gradient::GradientFn other_way(const char* op) {
  return of_first([op](const GradArgs& args, const Tensor& g) { return ops::call_by_name(op, g, args.inputs[1]); });
}

OP("aten::repeat").infer(repeat_meta).gradient(of_first(repeat_gradient)).saves("");
IMPL("aten::repeat", kCPU, repeat_kernel);
OP("aten::tile").infer(tile_meta).gradient(of_first(tile_gradient)).saves("");
IMPL("aten::tile", kCPU, tile_kernel);
OP("aten::repeat_interleave.self_int")
    .impl([](const Tensor& x, int64_t repeats, std::optional<int64_t> dim, std::optional<int64_t>) {
      return interleave_by(x, repeats, dim);
    })
    .gradient(of_first(interleave_by_gradient))
    .saves("")
    .kind(ops::OpKind::kComposite);
OP("aten::repeat_interleave.self_Tensor")
    .gradient(of_first(interleave_tensor_gradient))
    .saves("repeats")
    .dynamic_shape();
OP("aten::repeat_interleave.Tensor").dynamic_shape();
OP("aten::flip").infer(flip_meta).gradient(other_way("aten::flip")).saves("");
OP("aten::fliplr")
    .infer([](const Tensor& x) {
      check(x.ndim() >= 2, "Input must be >= 2-d.");
      return flip_meta(x, Dims{1});
    })
    .gradient(same_way("aten::fliplr"))
    .saves("");
OP("aten::flipud")
    .infer([](const Tensor& x) {
      check(x.ndim() >= 1, "Input must be >= 1-d.");
      return flip_meta(x, Dims{0});
    })
    .gradient(same_way("aten::flipud"))
    .saves("");
OP("aten::roll").infer(roll_meta).gradient(of_first(roll_gradient)).saves("");
IMPL("aten::roll", kCPU, roll_kernel);
OP("aten::rot90")
    .impl(rot90)
    .gradient(of_first([](const GradArgs& args, const Tensor& g) {
      return ops::rot90(g, -(args.inputs[1].to_int() % 4), ops::unbox<Dims>(args.inputs[2]));
    }))
    .saves("")
    .kind(ops::OpKind::kComposite);
OP("aten::pixel_shuffle")
    .impl(pixel_shuffle)
    .gradient(other_way("aten::pixel_unshuffle"))
    .saves("")
    .kind(ops::OpKind::kComposite);
OP("aten::pixel_unshuffle")
    .impl(pixel_unshuffle)
    .gradient(other_way("aten::pixel_shuffle"))
    .saves("")
    .kind(ops::OpKind::kComposite);
OP("aten::channel_shuffle")
    .impl(channel_shuffle)
    .gradient(of_first([](const GradArgs& args, const Tensor& g) {
      return ops::channel_shuffle(g, std::max<int64_t>(1, gradient::sizes_of(args, 0)[1] / args.inputs[1].to_int()));
    }))
    .saves("")
    .kind(ops::OpKind::kComposite);

}  // namespace
}  // namespace tensord::kernels
