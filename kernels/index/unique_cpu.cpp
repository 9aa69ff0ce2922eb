// On the CPU: distinct values, counts of values, and their one-hot form.
#include <algorithm>
#include <map>
#include <numeric>

#include "core/ops/op.h"
#include "kernels/index/index.h"
#include "kernels/index/sort_keys.h"
#include "kernels/index/watched_order.h"
#include "kernels/view/view.h"

namespace tensord::kernels {
namespace {

using Three = std::tuple<Tensor, Tensor, Tensor>;

void need_data(const Tensor& x, const char* op) {
  if (x.is_meta()) fail(ErrorCode::kUnimplemented, op, ": the result's shape depends on the tensor's data");
}

// Groups of equal items in ascending order: for items 0 … count-1 with a strict order.
struct Groups {
  std::vector<int64_t> first;    // one item of each group
  std::vector<int64_t> inverse;  // group of every item
  std::vector<int64_t> counts;
};

template <class Less>
Groups group_sorted(int64_t count, Less&& less) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  int64_t calls = 0;
  std::stable_sort(order.begin(), order.end(), WatchedOrder(less, calls));
  Groups groups;
  groups.inverse.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i % kPieceElements == kPieceElements - 1) check_work_cancelled();
    if (i == 0 || less(order[i - 1], order[i])) {
      groups.first.push_back(order[i]);
      groups.counts.push_back(0);
    }
    groups.inverse[order[i]] = static_cast<int64_t>(groups.first.size()) - 1;
    ++groups.counts.back();
  }
  return groups;
}

// Groups of equal neighbors, in order of occurrence.
template <class Equal>
Groups group_consecutive(int64_t count, Equal&& equal) {
  Groups groups;
  for (int64_t i = 0; i < count; ++i) {
    if (i == 0 || !equal(i - 1, i)) {
      groups.first.push_back(i);
      groups.counts.push_back(0);
    }
    groups.inverse.push_back(static_cast<int64_t>(groups.first.size()) - 1);
    ++groups.counts.back();
  }
  return groups;
}

Tensor as_tensor(const std::vector<int64_t>& values, Dims sizes) {
  const Tensor out = Tensor::empty(sizes, DType::kInt64);
  std::copy(values.begin(), values.end(), out.data<int64_t>());
  return out;
}
Tensor as_tensor(const std::vector<int64_t>& values) {
  return as_tensor(values, Dims{static_cast<int64_t>(values.size())});
}
Tensor no_values() { return Tensor::empty(Dims{0}, DType::kInt64); }

Three results(const Tensor& values, const Groups& groups, const Dims& inverse_sizes, bool inverse, bool counts) {
  return {values, inverse ? as_tensor(groups.inverse, inverse_sizes) : no_values(),
          counts ? as_tensor(groups.counts) : no_values()};
}

// The keys of a contiguous tensor's elements (kernels/index/sort_keys.h).
class Keys {
 public:
  explicit Keys(const Tensor& x)
      : has_nan_(is_floating(x.dtype())), memory_(Tensor::empty(Dims{x.numel()}, DType::kInt64)) {
    keys_ = reinterpret_cast<uint64_t*>(memory_.data<int64_t>());
    dispatch_all(x.dtype(), "unique", [&]<class T>() {
      const T* values = x.data<T>();
      for (int64_t i = 0; i < x.numel(); ++i) keys_[i] = sort_key(values[i]);
      nan_ = ~SortKey<T>{0};
    });
  }
  uint64_t operator[](int64_t i) const { return keys_[i]; }
  bool is_nan(int64_t i) const { return has_nan_ && keys_[i] == nan_; }

 private:
  const bool has_nan_;
  const Tensor memory_;
  uint64_t* keys_;
  uint64_t nan_ = 0;
};

template <bool kConsecutive>
Three unique_values(const Tensor& x, bool inverse, bool counts) {
  need_data(x, "unique");
  const Tensor flat = x.contiguous();
  const Keys v(flat);
  Groups groups;
  if constexpr (kConsecutive) {
    groups = group_consecutive(flat.numel(), [&](int64_t a, int64_t b) { return v[a] == v[b] && !v.is_nan(a); });
  } else {
    // NaNs come last, and each of them is distinct.
    groups = group_sorted(flat.numel(),
                          [&](int64_t a, int64_t b) { return v[a] != v[b] ? v[a] < v[b] : a < b && v.is_nan(a); });
  }
  return results(index(reshape(flat, Dims{-1}), {as_tensor(groups.first)}), groups, x.sizes(), inverse, counts);
}

enum class Place : uint8_t { kBefore, kAfter, kEqual, kHasNan };

// Compares two rows by their first differing element, NaNs last. Rows that are alike and have NaNs are distinct.
Place compare_rows(const Keys& v, int64_t a, int64_t b, int64_t width) {
  bool has_nan = false;
  for (int64_t i = 0; i < width; ++i) {
    const int64_t left = a * width + i, right = b * width + i;
    if (v[left] != v[right]) return v[left] < v[right] ? Place::kBefore : Place::kAfter;
    has_nan |= v.is_nan(left);
  }
  return has_nan ? Place::kHasNan : Place::kEqual;
}

template <bool kConsecutive>
Three unique_slices(const Tensor& x, int64_t dim, bool inverse, bool counts) {
  need_data(x, "unique_dim");
  dim = wrap_dim(dim, x.ndim());
  if (x.ndim() == 0) return unique_values<kConsecutive>(x, inverse, counts);
  const Tensor rows = transpose(x, 0, dim).contiguous();
  const int64_t count = rows.sizes()[0], width = count == 0 ? 0 : rows.numel() / count;
  const Keys v(rows);
  Groups groups;
  if constexpr (kConsecutive) {
    groups =
        group_consecutive(count, [&](int64_t a, int64_t b) { return compare_rows(v, a, b, width) == Place::kEqual; });
  } else {
    groups = group_sorted(count, [&](int64_t a, int64_t b) {
      const Place place = compare_rows(v, a, b, width);
      return place == Place::kBefore || (place == Place::kHasNan && a < b);
    });
  }
  const Tensor kept = transpose(index(rows, {as_tensor(groups.first)}), 0, dim).contiguous();
  return results(kept, groups, Dims{count}, inverse, counts);
}

int64_t largest(const Tensor& x) {
  const int64_t* v = x.data<int64_t>();
  return x.numel() == 0 ? -1 : *std::max_element(v, v + x.numel());
}
int64_t smallest(const Tensor& x) {
  const int64_t* v = x.data<int64_t>();
  return x.numel() == 0 ? 0 : *std::min_element(v, v + x.numel());
}

Tensor bincount(const Tensor& x, const std::optional<Tensor>& weights, int64_t minimum) {
  need_data(x, "bincount");
  check(is_integral(x.dtype(), true) && x.ndim() == 1, "bincount only supports 1-d non-negative integral inputs.");
  check(minimum >= 0, "minlength should be >= 0");
  const Tensor bins = x.to(DType::kInt64).contiguous();
  check(smallest(bins) >= 0, "bincount only supports 1-d non-negative integral inputs.");
  check(!weights || weights->numel() == x.numel(), "weights should be 1-d and have the same length as input");
  const int64_t top = largest(bins);
  check(top < INT64_MAX, "bincount: the value ", top, " is too large");
  const Dims sizes{std::max(minimum, top + 1)};
  const int64_t* v = bins.data<int64_t>();
  const auto count = [&]<class T>(const T* weight) {
    Tensor out = Tensor::empty(sizes, dtype_of<T>);
    T* to = out.data<T>();
    std::fill(to, to + out.numel(), T(0));
    for (int64_t i = 0; i < bins.numel(); ++i) to[v[i]] += weight ? weight[i] : T(1);
    return out;
  };
  if (!weights || x.numel() == 0) return count(static_cast<const int64_t*>(nullptr));
  const Tensor w = weights->to(weights->dtype() == DType::kFloat32 ? DType::kFloat32 : DType::kFloat64).contiguous();
  return w.dtype() == DType::kFloat32 ? count(static_cast<const float*>(w.data<float>()))
                                      : count(static_cast<const double*>(w.data<double>()));
}

Tensor one_hot(const Tensor& x, int64_t classes) {
  check(x.dtype() == DType::kInt64, "one_hot is only applicable to index tensor.");
  Dims sizes = x.sizes();
  if (x.is_meta()) {
    if (classes < 0) need_data(x, "one_hot");
    sizes.push_back(classes);
    return Tensor::meta(sizes, DType::kInt64);
  }
  const Tensor bins = x.contiguous();
  check(x.numel() > 0 || classes > 0, "Can not infer total number of classes from empty tensor.");
  check(smallest(bins) >= 0, "Class values must be non-negative.");
  if (classes == -1) classes = largest(bins) + 1;
  check(classes >= 1, "num_classes should be positive");
  check(largest(bins) < classes, "Class values must be smaller than num_classes.");
  sizes.push_back(classes);
  const Tensor out = Tensor::empty(sizes, DType::kInt64);
  int64_t* to = out.data<int64_t>();
  std::fill(to, to + out.numel(), 0);
  for (int64_t i = 0; i < bins.numel(); ++i) to[i * classes + bins.data<int64_t>()[i]] = 1;
  return out;
}

Three run_unique2(const Tensor& x, bool, bool inverse, bool counts) { return unique_values<false>(x, inverse, counts); }

std::tuple<Tensor, Tensor> run_unique(const Tensor& x, bool, bool inverse) {
  const auto [values, positions, counts] = unique_values<false>(x, inverse, false);
  return std::tuple(values, positions);
}

Three run_unique_dim(const Tensor& x, int64_t dim, bool, bool inverse, bool counts) {
  return unique_slices<false>(x, dim, inverse, counts);
}

Three run_unique_consecutive(const Tensor& x, bool inverse, bool counts, std::optional<int64_t> dim) {
  return dim ? unique_slices<true>(x, *dim, inverse, counts) : unique_values<true>(x, inverse, counts);
}

Three run_unique_dim_consecutive(const Tensor& x, int64_t dim, bool inverse, bool counts) {
  return unique_slices<true>(x, dim, inverse, counts);
}

IMPL("aten::_unique2", kCPU, run_unique2);
IMPL("aten::_unique", kCPU, run_unique);
IMPL("aten::unique_dim", kCPU, run_unique_dim);
IMPL("aten::unique_consecutive", kCPU, run_unique_consecutive);
IMPL("aten::unique_dim_consecutive", kCPU, run_unique_dim_consecutive);
IMPL("aten::bincount", kCPU, bincount);
IMPL("aten::one_hot", kCPU, one_hot);

}  // namespace
}  // namespace tensord::kernels
