#include "core/nn/state.h"

#include <cmath>
#include <string>

#include "core/base/error.h"

namespace tensord::nn {

using ops::DictObject;
using ops::Value;

ops::Dict new_state() { return make_intrusive<DictObject>(ops::string_type(), ops::any_type()); }
ops::Dict new_indexed_state() { return make_intrusive<DictObject>(ops::int_type(), ops::any_type()); }

void set_item(const ops::Dict& dict, std::string_view key, Value value) {
  dict->set(Value(std::string(key)), std::move(value));
}

Value numbers_value(const std::vector<double>& numbers) {
  std::vector<Value> items(numbers.begin(), numbers.end());
  return ops::make_list(ops::float_type(), std::move(items));
}

const DictObject& as_dict(const Value& value, std::string_view what) {
  check(value.is_dict(), what, ": expected a dict but got ", value.tag_name());
  return *value.to_dict();
}

const Value* find_item(const DictObject& dict, std::string_view key) {
  const std::ptrdiff_t at = dict.find(Value(std::string(key)));
  return at < 0 ? nullptr : &dict.items()[static_cast<size_t>(at)].second;
}

const Value& get_item(const DictObject& dict, std::string_view key) {
  const Value* value = find_item(dict, key);
  check(value != nullptr, "state has no \"", key, "\"");
  return *value;
}

double to_number(const Value& value, std::string_view key) {
  if (value.is_strided() && value.to_tensor().numel() == 1) return value.to_tensor().item_double();
  check(value.is_number(), "\"", key, "\": expected a number but got ", value.tag_name());
  return value.to_scalar().to_double();
}

int64_t to_integer(const Value& value, std::string_view key) {
  const double number = to_number(value, key);
  check(number == std::floor(number) && std::abs(number) < 9e15, "\"", key, "\": expected an integer but got ", number);
  return static_cast<int64_t>(number);
}

double get_number(const DictObject& dict, std::string_view key) { return to_number(get_item(dict, key), key); }
int64_t get_integer(const DictObject& dict, std::string_view key) { return to_integer(get_item(dict, key), key); }

bool get_bool(const DictObject& dict, std::string_view key) {
  const Value& value = get_item(dict, key);
  check(value.is_bool(), "\"", key, "\": expected a bool but got ", value.tag_name());
  return value.to_bool();
}

const std::vector<Value>& get_items(const Value& value, std::string_view key) {
  check(value.is_list() || value.is_tuple(), "\"", key, "\": expected a list but got ", value.tag_name());
  return value.is_list() ? value.to_list()->items : value.to_tuple()->items;
}

std::vector<double> get_numbers(const DictObject& dict, std::string_view key) {
  std::vector<double> numbers;
  for (const Value& item : get_items(get_item(dict, key), key)) numbers.push_back(to_number(item, key));
  return numbers;
}

}  // namespace tensord::nn
