#include "server/commands/arguments_file.h"

#include <algorithm>
#include <charconv>

#include "core/base/error.h"
#include "core/jit/archive/torch_file.h"

namespace tensord::server {
namespace {

using ops::Value;

// Looks up a list or tuple element by index, a dict value by key.
const Value* part_of(const Value& whole, const std::string& name) {
  if (whole.is_dict()) {
    for (const auto& [key, value] : whole.to_dict()->items()) {
      const std::string text = key.is_string() ? key.to_string() : key.is_int() ? std::to_string(key.to_int()) : "";
      if (text == name) return &value;
    }
    return nullptr;
  }
  if (!whole.is_list() && !whole.is_tuple()) return nullptr;
  const std::vector<Value>& items = whole.is_list() ? whole.to_list()->items : whole.to_tuple()->items;
  size_t place = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), place);
  return error == std::errc() && end == name.data() + name.size() && place < items.size() ? &items[place] : nullptr;
}

std::vector<std::string> split(const std::string& name) {
  std::vector<std::string> parts{""};
  for (const char c : name) {
    if (c == '.') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

}  // namespace

std::vector<Value> read_arguments(const std::string& path, const ops::Schema& schema) {
  const Value file = jit::load_torch_file(path);
  if (!file.is_tuple() && !file.is_list()) {
    fail(ErrorCode::kInvalidArgument, path, ": expected a tuple of arguments but got ", file.tag_name());
  }
  const std::vector<Value>& given = file.is_tuple() ? file.to_tuple()->items : file.to_list()->items;
  const auto is_nested = [](const ops::Argument& argument) { return argument.name.find('.') != std::string::npos; };
  const bool has_parts =
      std::ranges::any_of(given, [](const Value& one) { return one.is_list() || one.is_tuple() || one.is_dict(); });
  if (!has_parts || std::ranges::none_of(schema.arguments, is_nested)) return given;
  std::vector<std::string> roots;  // argument names before nested values were flattened
  std::vector<Value> out;
  for (const ops::Argument& argument : schema.arguments) {
    const std::vector<std::string> parts = split(argument.name);
    if (roots.empty() || roots.back() != parts.front()) roots.push_back(parts.front());
    const Value* value = roots.size() <= given.size() ? &given[roots.size() - 1] : nullptr;
    for (size_t i = 1; value && i < parts.size(); ++i) value = part_of(*value, parts[i]);
    check(value != nullptr, path, ": has nothing for the argument '", argument.name, "'");
    out.push_back(*value);
  }
  check(roots.size() == given.size(), path, ": has ", given.size(), " arguments, the program takes ", roots.size());
  return out;
}

}  // namespace tensord::server
