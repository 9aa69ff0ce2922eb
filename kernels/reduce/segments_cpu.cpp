// The loops of segment_reduce.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "ops/factory.h"

namespace tensord::kernels {
namespace {

using ops::Scalar;
using MaybeScalar = std::optional<Scalar>;
using MaybeTensor = std::optional<Tensor>;

enum class Kind { kSum, kMean, kMax, kMin, kProd };

Kind kind_of(const std::string& name) {
  if (name == "sum") return Kind::kSum;
  if (name == "mean") return Kind::kMean;
  if (name == "max") return Kind::kMax;
  if (name == "min") return Kind::kMin;
  check(name == "prod", "segment_reduce: unsupported reduction ", name);
  return Kind::kProd;
}

// The begins and ends of segments: for each of `outer` rows, `segments` + 1 offsets into the dimension.
struct Segments {
  Tensor offsets;  // int64
  int64_t outer = 1, segments = 0, length = 0, inner = 1;
  Dims sizes;  // of the result
};

Segments segments_of(const Tensor& x, const MaybeTensor& lengths, const MaybeTensor& offsets, int64_t given_axis,
                     bool is_trusted) {
  check(x.ndim() > 0 && x.numel() > 0, "segment_reduce(): expected a tensor with elements");
  check(lengths || offsets, "segment_reduce(): Either lengths or offsets must be defined.");
  const Tensor& given = lengths ? *lengths : *offsets;
  const int64_t axis = wrap_dim(given_axis, x.ndim());
  check(given.dtype() == DType::kInt64 || given.dtype() == DType::kInt32,
        "segment_reduce(): expected lengths or offsets of ints, but got ", name_of(given.dtype()));
  check(given.ndim() == axis + 1, "segment_reduce(): Expected axis to be the last dimension of ",
        lengths ? "lengths" : "offsets", " but got ", axis, ".");
  Segments out;
  for (int64_t d = 0; d < axis; ++d) {
    check(given.size(d) == x.size(d),
          "segment_reduce(): the sizes of data and lengths or offsets before the axis differ");
    out.outer *= x.size(d);
    out.sizes.push_back(x.size(d));
  }
  for (int64_t d = axis + 1; d < x.ndim(); ++d) out.inner *= x.size(d);
  out.length = x.size(axis);
  out.segments = given.size(axis) - (lengths ? 0 : 1);
  check(out.segments >= 0, "segment_reduce(): offsets must not be empty");
  out.sizes.push_back(out.segments);
  for (int64_t d = axis + 1; d < x.ndim(); ++d) out.sizes.push_back(x.size(d));
  const Tensor dense = given.to(DType::kInt64).contiguous();
  out.offsets = Tensor::empty(Dims{out.outer, out.segments + 1}, DType::kInt64);
  const int64_t* from = dense.data<int64_t>();
  int64_t* to = out.offsets.data<int64_t>();
  for (int64_t row = 0; row < out.outer; ++row, to += out.segments + 1) {
    to[0] = lengths ? 0 : *from++;
    for (int64_t s = 0; s < out.segments; ++s, ++from) {
      check(!lengths || *from >= 0, "segment_reduce(): lengths contains negative value!");
      to[s + 1] = lengths ? to[s] + *from : *from;
      check(to[s] >= 0 && to[s + 1] >= to[s] && to[s + 1] <= out.length,
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
            "!unsafe.");
    }
    check(
        is_trusted || !lengths || to[out.segments] == out.length,
        "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe.");
  }
  return out;
}

// Calls fn(first element, first place in the result, begin, end) for each segment and each inner position.
template <class Fn>
void for_each_piece(const Segments& s, Fn&& fn) {
  const int64_t* offsets = s.offsets.data<int64_t>();
  parallel_for(s.outer * s.segments, 64, [&](int64_t first, int64_t last) {
    for (int64_t piece = first; piece < last; ++piece) {
      const int64_t row = piece / s.segments, index = piece % s.segments;
      const int64_t* own = offsets + row * (s.segments + 1) + index;
      for (int64_t i = 0; i < s.inner; ++i) fn(row * s.length * s.inner + i, piece * s.inner + i, own[0], own[1]);
    }
  });
}

template <class T>
T start_of(Kind kind, const MaybeScalar& initial) {
  if (initial) return static_cast<T>(initial->to_double());
  switch (kind) {
    case Kind::kMax: return T(-std::numeric_limits<float>::infinity());
    case Kind::kMin: return T(std::numeric_limits<float>::infinity());
    case Kind::kProd: return T(1);
    default: return T(0);
  }
}

template <class T>
void reduce(Kind kind, const Segments& s, const MaybeScalar& initial, const Tensor& x, const Tensor& out) {
  const T* from = x.data<T>();
  T* to = out.data<T>();
  for_each_piece(s, [&](int64_t first, int64_t place, int64_t begin, int64_t end) {
    T value = start_of<T>(kind, initial);
    for (int64_t j = begin; j < end; ++j) {
      const T own = from[first + j * s.inner];
      switch (kind) {
        case Kind::kMax: value = std::isnan(own) ? own : std::max(value, own); break;
        case Kind::kMin: value = std::isnan(own) ? own : std::min(value, own); break;
        case Kind::kProd: value *= own; break;
        default: value += own;
      }
    }
    if (kind == Kind::kMean && begin == end && !initial) value = std::numeric_limits<T>::quiet_NaN();
    if (kind == Kind::kMean && end > begin && !std::isnan(value)) value /= static_cast<T>(end - begin);
    to[place] = value;
  });
}

// For max and min: shared by the elements that equal the result. For a product: the product of the others.
template <class T>
void reduce_back(Kind kind, const Segments& s, const MaybeScalar& initial, const Tensor& gradient, const Tensor& result,
                 const Tensor& x, const Tensor& out) {
  const T *g = gradient.data<T>(), *y = result.data<T>(), *from = x.data<T>();
  T* to = out.data<T>();
  for_each_piece(s, [&](int64_t first, int64_t place, int64_t begin, int64_t end) {
    if (begin == end) return;
    const auto at = [&](int64_t j) { return first + j * s.inner; };
    const auto is_result = [&](T own) { return std::isnan(own) || own == y[place]; };
    int64_t ties = 0;
    for (int64_t j = begin; j < end && (kind == Kind::kMax || kind == Kind::kMin); ++j) ties += is_result(from[at(j)]);
    for (int64_t j = begin; j < end; ++j) {
      const T own = from[at(j)];
      T slope = 1;
      if (kind == Kind::kMean) slope = T(1) / static_cast<T>(end - begin);
      if (kind == Kind::kMax || kind == Kind::kMin) slope = is_result(own) ? T(1) / static_cast<T>(ties) : T(0);
      if (kind == Kind::kProd) {
        slope = y[place] / own;
        if (own == 0 || std::isnan(own)) {
          slope = start_of<T>(kind, initial);
          for (int64_t k = begin; k < end; ++k) slope *= k == j ? T(1) : from[at(k)];
        }
      }
      to[at(j)] = g[place] * slope;
    }
  });
}

template <class Fn>
void dispatch(DType dtype, Fn&& fn) {
  if (dtype == DType::kFloat32) return fn.template operator()<float>();
  if (dtype == DType::kFloat64) return fn.template operator()<double>();
  fail_dtype("segment_reduce", dtype);
}

Tensor run_segment_reduce_backward(const Tensor& g, const Tensor& result, const Tensor& x, const std::string& name,
                                   const MaybeTensor& lengths, const MaybeTensor& offsets, int64_t axis,
                                   const MaybeScalar& initial) {
  const Segments s = segments_of(x, lengths, offsets, axis, true);
  check(g.sizes() == s.sizes && result.sizes() == s.sizes, "_segment_reduce_backward: expected gradients of shape ",
        to_string(s.sizes), ", but got ", g.sizes());
  check(g.dtype() == x.dtype() && result.dtype() == x.dtype(),
        "_segment_reduce_backward: expected gradient, output and data of one dtype, but got ", name_of(g.dtype()), ", ",
        name_of(result.dtype()), " and ", name_of(x.dtype()));
  const Tensor out = ops::zeros(x.sizes(), {.dtype = x.dtype()});
  dispatch(x.dtype(), [&]<class T>() {
    reduce_back<T>(kind_of(name), s, initial, g.contiguous(), result.contiguous(), x.contiguous(), out);
  });
  return out;
}

Tensor run_segment_reduce(const Tensor& x, const std::string& name, const MaybeTensor& lengths,
                          const MaybeTensor& indices, const MaybeTensor& offsets, int64_t axis, bool is_trusted,
                          const MaybeScalar& initial) {
  check(!indices, "segment_reduce(): indices based reduction is not supported yet.");
  const Segments s = segments_of(x, lengths, offsets, axis, is_trusted);
  const Tensor out = Tensor::empty(s.sizes, x.dtype());
  dispatch(x.dtype(), [&]<class T>() { reduce<T>(kind_of(name), s, initial, x.contiguous(), out); });
  return out;
}

IMPL("aten::_segment_reduce_backward", kCPU, run_segment_reduce_backward);
IMPL("aten::segment_reduce", kCPU, run_segment_reduce);

}  // namespace
}  // namespace tensord::kernels
