#include "core/ops/attributes/exported.h"
#include "core/ops/op.h"
#include "kernels/script/value_text.h"

// Dicts: Python's dict methods on shared, mutable dicts, for each type of key.
namespace tensord::kernels {
namespace {

using ops::Dict;
using ops::DictObject;
using ops::List;
using ops::Value;

const Value& at(const Dict& dict, const Value& key) {
  const std::ptrdiff_t index = dict->find(key);
  if (index < 0) fail(ErrorCode::kNotFound, "KeyError: ", value_text(key));
  return dict->items()[index].second;
}

Value dict_get(const Dict& dict, const Value& key) { return at(dict, key); }
Value dict_get_or_none(const Dict& dict, const Value& key) {
  const std::ptrdiff_t index = dict->find(key);
  return index < 0 ? Value() : dict->items()[index].second;
}
Value dict_get_or(const Dict& dict, const Value& key, const Value& missing) {
  const std::ptrdiff_t index = dict->find(key);
  return index < 0 ? missing : dict->items()[index].second;
}
void dict_set(const Dict& dict, const Value& key, const Value& value) { dict->set(key, value); }
bool dict_contains(const Dict& dict, const Value& key) { return dict->find(key) >= 0; }

Value dict_pop(const Dict& dict, const Value& key) {
  Value value = at(dict, key);
  dict->erase(key);
  return value;
}
Value dict_pop_or(const Dict& dict, const Value& key, const Value& missing) {
  return dict->find(key) < 0 ? missing : dict_pop(dict, key);
}
void dict_delete(const Dict& dict, const Value& key) { dict_pop(dict, key); }

Value dict_set_default(const Dict& dict, const Value& key, const Value& value) {
  const std::ptrdiff_t index = dict->find(key);
  if (index >= 0) return dict->items()[index].second;
  dict->set(key, value);
  return value;
}

Value dict_pop_item(const Dict& dict) {
  if (dict->items().empty()) fail(ErrorCode::kNotFound, "popitem(): dictionary is empty");
  // With equal keys libtorch takes the first item, Python the last.
  const auto [key, value] = dict->items().front();
  check(dict->erase(key), "popitem(): the key ", value_text(key), " is not found");
  return ops::make_tuple({key, value});
}

List dict_keys(const Dict& dict) {
  std::vector<Value> out;
  for (const auto& item : dict->items()) out.push_back(item.first);
  return ops::make_list(dict->key, std::move(out));
}
List dict_values(const Dict& dict) {
  std::vector<Value> out;
  for (const auto& item : dict->items()) out.push_back(item.second);
  return ops::make_list(dict->value, std::move(out));
}
List dict_items(const Dict& dict) {
  std::vector<Value> out;
  for (const auto& [key, value] : dict->items()) out.push_back(ops::make_tuple({key, value}));
  return ops::make_list(ops::tuple_type({dict->key, dict->value}), std::move(out));
}

void dict_update(const Dict& dict, const Dict& other) {
  const auto items = other->items();
  for (const auto& [key, value] : items) dict->set(key, value);
}

Dict dict_copy(const Dict& dict) {
  auto out = make_intrusive<DictObject>(dict->key, dict->value);
  for (const auto& [key, value] : dict->items()) out->set(key, value);
  return out;
}

// From a list of (key, value) tuples.
Dict dict_from_items(const List& list) {
  const ops::TypePtr& element = list->element;
  const bool is_typed = element && element->kind() == ops::TypeKind::kTuple && element->contained().size() == 2;
  ops::TypePtr key = is_typed ? element->contained()[0] : ops::any_type();
  ops::TypePtr value = is_typed ? element->contained()[1] : ops::any_type();
  if (!is_typed && !list->items.empty() && list->items[0].is_tuple() && list->items[0].to_tuple()->items.size() == 2) {
    key = ops::type_of(list->items[0].to_tuple()->items[0]);
    value = ops::type_of(list->items[0].to_tuple()->items[1]);
  }
  auto out = make_intrusive<DictObject>(std::move(key), std::move(value));
  for (const Value& item : list->items) {
    check(item.is_tuple() && item.to_tuple()->items.size() == 2, "dict: expected a list of pairs");
    out->set(item.to_tuple()->items[0], item.to_tuple()->items[1]);
  }
  return out;
}

#define DICT_OPS(KEY)                                                                                          \
  OP("aten::len.Dict_" KEY).impl([](const Dict& dict) { return static_cast<int64_t>(dict->items().size()); }); \
  OP("aten::__getitem__.Dict_" KEY).impl(dict_get);                                                            \
  OP("aten::_set_item." KEY).impl(dict_set);                                                                   \
  OP("aten::__contains__." KEY).impl(dict_contains).set<ops::ComparesNumbers>();                               \
  OP("aten::get." KEY).impl(dict_get_or_none);                                                                 \
  OP("aten::get.default_" KEY).impl(dict_get_or);                                                              \
  OP("aten::pop.Dict_" KEY).impl(dict_pop);                                                                    \
  OP("aten::pop.Dict_default_" KEY).impl(dict_pop_or);                                                         \
  OP("aten::Delete.Dict_" KEY).impl(dict_delete);                                                              \
  OP("aten::setdefault." KEY).impl(dict_set_default);                                                          \
  OP("aten::popitem." KEY).impl(dict_pop_item);                                                                \
  OP("aten::clear." KEY).impl([](const Dict& dict) { dict->clear(); });                                        \
  OP("aten::keys." KEY).impl(dict_keys);                                                                       \
  OP("aten::values." KEY).impl(dict_values);                                                                   \
  OP("aten::items." KEY).impl(dict_items);                                                                     \
  OP("aten::update." KEY).impl(dict_update);                                                                   \
  OP("aten::copy.Dict_" KEY).impl(dict_copy);                                                                  \
  OP("aten::dict.Dict_" KEY).impl(dict_copy);                                                                  \
  OP("aten::dict." KEY).impl(dict_from_items)
DICT_OPS("str");
DICT_OPS("int");
DICT_OPS("bool");
DICT_OPS("float");
DICT_OPS("complex");
DICT_OPS("Tensor");

OP("aten::dict").impl([]() { return make_intrusive<DictObject>(ops::string_type(), ops::tensor_type()); });

}  // namespace
}  // namespace tensord::kernels
