#include <algorithm>
#include <iterator>
#include <numeric>

#include "core/ops/method_call.h"
#include "core/ops/run.h"
#include "ops/script.h"

// list.sort and sorted, in libtorch's order: its comparisons and the standard library's algorithm, which determine
// where equal items and NaN end up.
namespace tensord::kernels {
namespace {

using ops::List;
using ops::Value;

// Positions in a list that is being sorted. An inconsistent comparison (NaN in reverse, a script's __lt__) may lead the
// algorithm out of its range, which is an error here.
struct Positions {
  uint32_t* begin;
  uint32_t* end;
};

class Iterator {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = uint32_t;
  using difference_type = std::ptrdiff_t;
  using pointer = uint32_t*;
  using reference = uint32_t&;

  Iterator() = default;
  Iterator(const Positions& all, uint32_t* at) : all_(&all), at_(at) {}
  reference operator*() const {
    check(at_ >= all_->begin && at_ < all_->end, "sort: the order of the items contradicts itself");
    return *at_;
  }
  reference operator[](difference_type n) const { return *(*this + n); }
  Iterator& operator++() { return *this += 1; }
  Iterator& operator--() { return *this += -1; }
  Iterator operator++(int) { return std::exchange(*this, *this + 1); }
  Iterator operator--(int) { return std::exchange(*this, *this - 1); }
  Iterator& operator+=(difference_type n) {
    at_ += n;
    return *this;
  }
  Iterator& operator-=(difference_type n) { return *this += -n; }
  friend Iterator operator+(Iterator a, difference_type n) { return a += n; }
  friend Iterator operator+(difference_type n, Iterator a) { return a += n; }
  friend Iterator operator-(Iterator a, difference_type n) { return a -= n; }
  friend difference_type operator-(const Iterator& a, const Iterator& b) { return a.at_ - b.at_; }
  friend auto operator<=>(const Iterator& a, const Iterator& b) { return a.at_ <=> b.at_; }
  friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }

 private:
  const Positions* all_ = nullptr;
  uint32_t* at_ = nullptr;
};

bool tensor_holds(const char* op, const Value& a, const Value& b) {
  return ops::is_nonzero(ops::call_by_name(op, a, b));
}

bool same_value(const Value& a, const Value& b) {
  return a.is_tensor() && b.is_tensor() ? tensor_holds("aten::eq.Tensor", a, b) : a.equals(b);
}

void check_sortable(const Value& value) {
  if (value.is_tuple()) {
    for (const Value& item : value.to_tuple()->items) check_sortable(item);
    return;
  }
  check(value.is_number() || value.is_string() || value.is_tensor() || value.is_object(), "sort: values of type ",
        value.tag_name(), " have no order");
}

bool is_less(const Value& a, const Value& b);

bool is_less_in_order(const std::vector<Value>& a, const std::vector<Value>& b) {
  check(a.size() == b.size(), "sort: tuples of different lengths");
  for (size_t i = 0; i < a.size(); ++i) {
    if (is_less(a[i], b[i])) return true;
    if (!same_value(a[i], b[i])) return false;
  }
  return false;
}

bool is_less(const Value& a, const Value& b) {
  switch (a.tag()) {
    case Value::Tag::kBool: return a.to_bool() < b.to_bool();
    case Value::Tag::kInt: return a.to_int() < b.to_int();
    case Value::Tag::kFloat: return a.to_float() < b.to_float();
    case Value::Tag::kString: return a.to_string() < b.to_string();
    case Value::Tag::kTensor: return tensor_holds("aten::lt.Tensor", a, b);
    case Value::Tag::kTuple: return is_less_in_order(a.to_tuple()->items, b.to_tuple()->items);
    case Value::Tag::kObject: return ops::call_method(a.to_object(), "__lt__", {b}).to_bool();
    default: check_sortable(a); return false;
  }
}

// libtorch's list.sort(reverse=True) of plain items negates the comparison's result instead of swapping its operands.
bool is_more_plain(const Value& a, const Value& b) {
  if (a.is_tensor() ? a.is_same(b) : a.equals(b)) return false;
  return !is_less(a, b);
}

template <class Less>
std::vector<Value> sorted_items(const std::vector<Value>& items, const Less& less) {
  check(items.size() < UINT32_MAX, "sort: a list of ", items.size(), " items is too long");
  if (!items.empty()) check_sortable(items[0]);
  std::vector<uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  const Positions all{order.data(), order.data() + order.size()};
  std::sort(Iterator(all, all.begin), Iterator(all, all.end),
            [&](uint32_t a, uint32_t b) { return less(items[a], items[b]); });
  std::vector<Value> out;
  out.reserve(items.size());
  for (const uint32_t i : order) out.push_back(items[i]);
  return out;
}

// Passes the items by value: a script's __lt__ may change the list.
void sort_plain(const List& list, bool reverse) {
  const std::vector<Value> items = list->items;
  list->items = reverse ? sorted_items(items, is_more_plain) : sorted_items(items, is_less);
}

void sort_any(const List& list, bool reverse) {
  const std::vector<Value> items = list->items;
  list->items = reverse ? sorted_items(items, [](const Value& a, const Value& b) { return is_less(b, a); })
                        : sorted_items(items, is_less);
}

List sorted(const List& list) {
  const std::vector<Value> items = list->items;
  return ops::make_list(list->element, sorted_items(items, is_less));
}

#define SORTED(TYPE)                       \
  OP("aten::sort." TYPE).impl(sort_plain); \
  OP("aten::sorted." TYPE).impl(sorted).kind(ops::OpKind::kScript)
SORTED("int");
SORTED("float");
SORTED("bool");
SORTED("str");
SORTED("Tensor");
OP("aten::sort.any").impl(sort_any);
OP("aten::sorted.any").impl(sorted);
CALLS_METHODS("aten::sort.any");
CALLS_METHODS("aten::sorted.any");

}  // namespace
}  // namespace tensord::kernels
