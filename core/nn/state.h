#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/ops/value.h"

// Reads and writes the dicts of state_dict(). Input may come from a file: every access is checked and throws
// Error{kInvalidArgument} naming the key.
namespace tensord::nn {

// {} with keys of str (or int) and values of any type.
ops::Dict new_state();
ops::Dict new_indexed_state();
void set_item(const ops::Dict& dict, std::string_view key, ops::Value value);
ops::Value numbers_value(const std::vector<double>& numbers);

const ops::DictObject& as_dict(const ops::Value& value, std::string_view what);
// Null if missing.
const ops::Value* find_item(const ops::DictObject& dict, std::string_view key);
const ops::Value& get_item(const ops::DictObject& dict, std::string_view key);
// Numbers may be stored as tensors of one element.
double to_number(const ops::Value& value, std::string_view key);
int64_t to_integer(const ops::Value& value, std::string_view key);
double get_number(const ops::DictObject& dict, std::string_view key);
int64_t get_integer(const ops::DictObject& dict, std::string_view key);
bool get_bool(const ops::DictObject& dict, std::string_view key);
std::vector<double> get_numbers(const ops::DictObject& dict, std::string_view key);
// The items of a list or tuple.
const std::vector<ops::Value>& get_items(const ops::Value& value, std::string_view key);

}  // namespace tensord::nn
