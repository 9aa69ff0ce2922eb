#include "kernels/factory/literal.h"

namespace tensord::kernels {
namespace {

using ops::Value;

template <class T>
void read_nested(const Value& value, const Dims& shape, size_t depth, T*& to) {
  if (depth == shape.size()) {
    check(!value.is_list(), "Expected sequence of length 0 at dim ", depth, " (got a list)");
    *to++ = value.to_scalar().to<T>();
    return;
  }
  const auto& items = value.to_list()->items;
  check(static_cast<int64_t>(items.size()) == shape[depth], "Expected sequence of length ", shape[depth], " at dim ",
        depth, " (got ", items.size(), ")");
  for (const Value& item : items) read_nested(item, shape, depth + 1, to);
}

Value list_from(const Tensor& x, int64_t dim, int64_t offset) {
  if (dim == x.ndim()) {
    return dispatch_all(x.dtype(), "tolist", [&]<class T>() -> Value {
      const T value = static_cast<const T*>(x.storage()->data())[offset];
      if constexpr (std::is_same_v<T, bool>)
        return Value(value);
      else if constexpr (std::is_integral_v<T>)
        return Value(static_cast<int64_t>(value));
      else
        return Value(static_cast<double>(value));
    });
  }
  std::vector<Value> items;
  for (int64_t i = 0; i < x.sizes()[dim]; ++i) items.push_back(list_from(x, dim + 1, offset + i * x.strides()[dim]));
  ops::TypePtr element = x.dtype() == DType::kBool ? ops::bool_type()
                         : is_floating(x.dtype())  ? ops::float_type()
                                                   : ops::int_type();
  for (int64_t d = x.ndim() - 1; d > dim; --d) element = ops::list_type(element);
  return ops::make_list(element, std::move(items));
}

}  // namespace

void read_list(const Value& list, const Tensor& out) {
  dispatch_all(out.dtype(), "tensor", [&]<class T>() {
    if (out.numel() == 0) return;
    T* to = out.data<T>();
    read_nested(list, out.sizes(), 0, to);
  });
}

Value nested_list_of(const Tensor& x) { return list_from(x, 0, x.offset()); }

}  // namespace tensord::kernels
