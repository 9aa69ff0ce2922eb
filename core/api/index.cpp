#include "tensord/index.h"

#include "core/ops/run.h"
#include "tensord/ops.h"

namespace tensord {

namespace {

bool is_mask(const Tensor& tensor) { return tensor.dtype() == DType::kBool || tensor.dtype() == DType::kUInt8; }

Tensor without_leading_ones(const Tensor& value, int64_t max_dims) {
  size_t first = 0;
  while (value.ndim() - static_cast<int64_t>(first) > max_dims && value.sizes()[first] == 1) ++first;
  return first == 0 ? value : reshape(value, value.sizes().span().subspan(first));
}

}  // namespace

// Applies the items that make a view first, then indexes the view with the tensor items.
class Indexer {
 public:
  Indexer(const Tensor& x, const std::vector<TensorIndex>& items) : view_(x), is_alone_(items.size() == 1) {
    check(x.defined(), "index: argument 'self' is an undefined tensor");
    const int64_t skipped = count_skipped(items);
    for (const TensorIndex& item : items) apply(item, skipped);
  }
  const Tensor& view() const { return view_; }
  bool is_view() const { return indices_.empty(); }
  ops::Value indices() const {
    static const ops::TypePtr element = ops::optional_type(ops::tensor_type());
    return ops::make_list(element, indices_);
  }

 private:
  using Kind = TensorIndex::Kind;

  int64_t count_skipped(const std::vector<TensorIndex>& items) const {
    int64_t named = 0, ellipses = 0;
    for (const TensorIndex& item : items) {
      if (item.kind_ == Kind::kEllipsis) {
        ++ellipses;
      } else if (item.kind_ == Kind::kTensor) {
        check(item.tensor_.defined(), "index: an index is an undefined tensor");
        named += is_mask(item.tensor_) ? item.tensor_.ndim() : 1;
      } else if (item.kind_ == Kind::kInt || item.kind_ == Kind::kSlice) {
        ++named;
      }
    }
    if (ellipses > 1) fail(ErrorCode::kOutOfRange, "index: an index can only have a single Ellipsis");
    if (named > view_.ndim()) {
      fail(ErrorCode::kOutOfRange, "index: too many indices for tensor of dimension ", view_.ndim());
    }
    return view_.ndim() - named;
  }

  void apply(const TensorIndex& item, int64_t skipped) {
    switch (item.kind_) {
      case Kind::kEllipsis: dim_ += skipped; return;
      case Kind::kNone: view_ = unsqueeze(view_, dim_++); return;
      case Kind::kInt: return add_number(item.number_);
      case Kind::kBool: return add_bool(item.number_ != 0);
      case Kind::kSlice:
        check(item.slice_.step > 0, "index: the step of a slice must be greater than zero");
        view_ = slice(view_, dim_++, item.slice_.start, item.slice_.stop, item.slice_.step);
        return;
      case Kind::kTensor: return add_tensor(item.tensor_);
    }
  }

  void add_number(int64_t number) {
    const int64_t size = view_.size(dim_);
    if (number < -size || number >= size) {
      fail(ErrorCode::kOutOfRange, "index: ", number, " is out of bounds for dimension ", dim_, " with size ", size);
    }
    view_ = select(view_, dim_, number);
  }

  void add_bool(bool value) {
    view_ = unsqueeze(view_, dim_);
    add_index(zeros({value ? 1 : 0}, {.dtype = DType::kInt64, .device = view_.device()}));
  }

  void add_tensor(const Tensor& tensor) {
    if (tensor.ndim() == 0 && tensor.dtype() == DType::kBool) return add_bool(tensor.item_bool());
    if (!is_mask(tensor)) {
      if (tensor.ndim() == 0 && is_integral(tensor.dtype(), false)) return add_number(tensor.item_int());
      return add_index(tensor.dtype() == DType::kInt32 ? tensor.to(DType::kInt64) : tensor);
    }
    check_mask(tensor);
    if (tensor.ndim() <= 1 || is_alone_) return add_index(tensor);
    for (const Tensor& one : nonzero_numpy(tensor)) add_index(one);
  }

  void check_mask(const Tensor& mask) const {
    for (int64_t i = 0; i < mask.ndim(); ++i) {
      const int64_t at = dim_ + i;
      if (at >= view_.ndim() || mask.size(i) != view_.size(at)) {
        fail(ErrorCode::kOutOfRange, "index: the shape of the mask ", to_string(mask.sizes()), " at index ", i,
             " does not match the shape of the indexed tensor ", to_string(view_.sizes()), " at index ", at);
      }
    }
  }

  void add_index(const Tensor& tensor) {
    indices_.resize(static_cast<size_t>(dim_));
    indices_.emplace_back(tensor);
    ++dim_;
  }

  Tensor view_;
  const bool is_alone_;
  std::vector<ops::Value> indices_;  // one per dimension of the view
  int64_t dim_ = 0;
};

Tensor index(const Tensor& self, const std::vector<TensorIndex>& indices) {
  const Indexer found(self, indices);
  if (found.is_view()) return found.view().is_same(self) ? alias(self) : found.view();
  return ops::run(ops::get_op("aten::index.Tensor"), std::vector<ops::Value>{found.view(), found.indices()})
      .front()
      .to_tensor();
}

Tensor index_put_(const Tensor& self, const std::vector<TensorIndex>& indices, const Tensor& values, Bool accumulate) {
  check(values.defined(), "index_put_: argument 'values' is an undefined tensor");
  const Indexer found(self, indices);
  if (found.is_view()) {
    const Tensor fitting = without_leading_ones(values, found.view().ndim());
    accumulate ? add_(found.view(), fitting) : copy_(found.view(), fitting);
    return self;
  }
  Tensor fitting = values;
  if (values.ndim() > 0 && values.size(0) == 1) {
    const NoGradGuard guard;
    fitting = without_leading_ones(values, index(self, indices).ndim());
  }
  ops::run(ops::get_op("aten::index_put_"),
           std::vector<ops::Value>{found.view(), found.indices(), fitting, ops::Value(bool(accumulate))});
  return self;
}

Tensor index_put_(const Tensor& self, const std::vector<TensorIndex>& indices, const Scalar& value, Bool accumulate) {
  check(self.defined(), "index_put_: argument 'self' is an undefined tensor");
  return index_put_(self, indices, full({}, value, {.dtype = self.dtype(), .device = self.device()}), accumulate);
}

}  // namespace tensord
