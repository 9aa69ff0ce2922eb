#include <algorithm>

#include "core/ops/attributes/exported.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/pointwise/scalar_math.h"
#include "kernels/script/value_text.h"
#include "ops/pointwise.h"

// Lists: Python's list methods on shared, mutable lists.
namespace tensord::kernels {
namespace {

using ops::List;
using ops::Value;

// The largest list that a script may request by repetition.
constexpr int64_t kMaxListItems = int64_t{1} << 28;

size_t wrap_index(int64_t index, size_t size) {
  const auto count = static_cast<int64_t>(size);
  const int64_t wrapped = index < 0 ? index + count : index;
  if (wrapped < 0 || wrapped >= count) fail(ErrorCode::kOutOfRange, "list index out of range");
  return static_cast<size_t>(wrapped);
}

std::vector<Value>& items_of(const List& list) { return list->items; }

List copy_of(const List& list) { return ops::make_list(list->element, list->items); }

// Tensors compare by their single element.
bool values_equal(const Value& a, const Value& b) {
  if (a.is_tensor() && b.is_tensor()) return ops::eq(a.to_tensor(), b.to_tensor()).item_bool();
  return a.equals(b);
}

bool lists_equal(const List& a, const List& b) {
  return std::equal(a->items.begin(), a->items.end(), b->items.begin(), b->items.end(), values_equal);
}

std::ptrdiff_t find_item(const List& list, const Value& item) {
  const auto found =
      std::find_if(list->items.begin(), list->items.end(), [&](const Value& v) { return values_equal(v, item); });
  return found == list->items.end() ? -1 : found - list->items.begin();
}

Value list_append(const List& list, const Value& item) {
  items_of(list).push_back(item);
  return list;
}

void list_extend(const List& list, const List& other) {
  // Copies the handles first, since a list may be extended by itself.
  const std::vector<Value> more = other->items;
  items_of(list).insert(items_of(list).end(), more.begin(), more.end());
}

void list_insert(const List& list, int64_t index, const Value& item) {
  auto& items = items_of(list);
  const auto count = static_cast<int64_t>(items.size());
  if (index < 0) index += count;
  items.insert(items.begin() + std::clamp<int64_t>(index, 0, count), item);
}

Value list_pop(const List& list, int64_t index) {
  auto& items = items_of(list);
  if (items.empty()) fail(ErrorCode::kOutOfRange, "pop from empty list");
  const size_t at = wrap_index(index, items.size());
  Value item = items[at];
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
  return item;
}

void list_delete(const List& list, int64_t index) {
  auto& items = items_of(list);
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(wrap_index(index, items.size())));
}

void list_remove(const List& list, const Value& item) {
  const std::ptrdiff_t at = find_item(list, item);
  check(at >= 0, "list.remove(x): x not in list");
  items_of(list).erase(items_of(list).begin() + at);
}

int64_t list_index(const List& list, const Value& item) {
  const std::ptrdiff_t at = find_item(list, item);
  check(at >= 0, "'", item.is_tensor() ? std::string("Tensor") : value_text(item), "' is not in list");
  return at;
}

int64_t list_count(const List& list, const Value& item) {
  return std::count_if(list->items.begin(), list->items.end(), [&](const Value& v) { return values_equal(v, item); });
}

Value list_set_item(const List& list, int64_t index, const Value& item) {
  items_of(list)[wrap_index(index, list->items.size())] = item;
  return list;
}

List list_slice(const List& list, std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  check(step != 0, "List slice should have non-zero step");
  const auto count = static_cast<int64_t>(list->items.size());
  const int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? count : count - 1;
  const auto bound = [&](std::optional<int64_t> given, int64_t missing) {
    // libtorch writes "no bound" as INT64_MAX.
    if (!given || *given == INT64_MAX) return missing;
    return std::clamp<int64_t>(*given < 0 ? *given + count : *given, lowest, highest);
  };
  const int64_t first = bound(start, step > 0 ? 0 : count - 1), last = bound(end, step > 0 ? count : -1);
  std::vector<Value> out;
  if (step > 0) {
    for (int64_t i = first; i<last; i = step> last - i ? last : i + step) out.push_back(list->items[i]);
  } else {
    for (int64_t i = first; i > last; i += step) out.push_back(list->items[i]);
  }
  return ops::make_list(list->element, std::move(out));
}

List list_repeat(const List& list, int64_t times) {
  const auto count = static_cast<int64_t>(list->items.size());
  // libtorch reserves count * times items, a product of 64 bits that wraps.
  check(wrap_multiply(count, times) >= 0, "a list of ", count, " items cannot be repeated ", times, " times");
  times = std::max<int64_t>(times, 0);
  check(count == 0 || times <= kMaxListItems / count, "a list of ", count, " items cannot be repeated ", times,
        " times");
  std::vector<Value> out;
  out.reserve(static_cast<size_t>(count * times));
  for (int64_t i = 0; i < times && count > 0; ++i) out.insert(out.end(), list->items.begin(), list->items.end());
  return ops::make_list(list->element, std::move(out));
}

List list_concat(const List& a, const List& b) {
  List out = copy_of(a);
  out->items.insert(out->items.end(), b->items.begin(), b->items.end());
  return out;
}

bool list_contains(const List& list, const Value& item) { return find_item(list, item) >= 0; }

List int_range(int64_t n) {
  check(n <= kMaxListItems, "range: a list of ", n, " items is too long");
  std::vector<Value> out;
  for (int64_t i = 0; i < n; ++i) out.emplace_back(i);
  return ops::make_list(ops::int_type(), std::move(out));
}

OP("aten::len.t").impl([](const List& list) { return static_cast<int64_t>(list->items.size()); });
OP("aten::__getitem__.t").impl([](const List& list, int64_t index) {
  return list->items[wrap_index(index, list->items.size())];
});
OP("aten::select.t").impl([](const List& list, int64_t index) {
  return list->items[wrap_index(index, list->items.size())];
});
OP("aten::_set_item.t").impl(list_set_item);
OP("aten::append.t").impl(list_append);
OP("aten::extend.t").impl(list_extend);
OP("aten::insert.t").impl(list_insert);
OP("aten::pop.t").impl(list_pop);
OP("aten::Delete.t").impl(list_delete);
OP("aten::clear.t").impl([](const List& list) { list->items.clear(); });
OP("aten::reverse.t").impl([](const List& list) { std::reverse(list->items.begin(), list->items.end()); });
OP("aten::copy.t").impl(copy_of);
OP("aten::list.t").impl(copy_of);
OP("aten::add.t").impl(list_concat);
OP("aten::add_.t").impl([](const List& list, const List& other) {
  list_extend(list, other);
  return list;
});
OP("aten::mul.left_t").impl(list_repeat);
OP("aten::mul.right_").impl([](int64_t n, const List& list) { return list_repeat(list, n); });
OP("aten::mul_.t").impl([](const List& list, int64_t n) {
  list->items = list_repeat(list, std::max<int64_t>(n, 0))->items;
  return list;
});
OP("aten::slice.t").impl(list_slice);
OP("prim::rangelist").impl(int_range);

#define TYPED_LIST(OVERLOAD)                                                                  \
  OP("aten::remove." OVERLOAD).impl(list_remove);                                             \
  OP("aten::index.list_" OVERLOAD).impl(list_index);                                          \
  OP("aten::count." OVERLOAD).impl(list_count);                                               \
  OP("aten::__contains__." OVERLOAD "_list").impl(list_contains).set<ops::ComparesNumbers>(); \
  OP("aten::eq." OVERLOAD "_list").impl(lists_equal).set<ops::ComparesNumbers>();             \
  OP("aten::ne." OVERLOAD "_list")                                                            \
      .impl([](const List& a, const List& b) { return !lists_equal(a, b); })                  \
      .set<ops::ComparesNumbers>()
TYPED_LIST("int");
TYPED_LIST("float");
TYPED_LIST("bool");
TYPED_LIST("str");
TYPED_LIST("Tensor");

}  // namespace
}  // namespace tensord::kernels
