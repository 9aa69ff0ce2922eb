#include "server/executor/model/gathered_argument.h"

#include <algorithm>
#include <charconv>

#include "core/base/error.h"
#include "server/executor/model/argument.h"

namespace tensord::server {
namespace {

using ops::TypeKind;
using ops::Value;

constexpr const char* kMark = "__";

bool is_list(const ops::Type& type) { return without_optional(type).kind() == TypeKind::kList; }

// The part of the input's name behind "xs__"; "" for other names.
std::string behind_mark(const std::string& argument, const std::string& input) {
  const std::string begin = argument + kMark;
  return input.starts_with(begin) ? input.substr(begin.size()) : std::string();
}

// The list index in the input's name; -1 for other names.
int64_t place_of(const std::string& argument, const std::string& input) {
  const std::string text = behind_mark(argument, input);
  int64_t place = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), place);
  const bool is_number = !text.empty() && error == std::errc() && end == text.data() + text.size();
  return is_number && (text == "0" || text[0] != '0') ? place : -1;
}

// Whether an argument other than the dict `index` takes the input, by name or number.
bool is_of_another(const ops::Schema& schema, size_t index, const std::string& input) {
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const ops::Argument& argument = schema.arguments[i];
    if (i == index) continue;
    if (is_feedable(*argument.type) && (input == argument.name || input == concat("INPUT__", i))) return true;
    if (is_gathered(*argument.type) && !behind_mark(argument.name, input).empty()) return true;
  }
  return false;
}

std::vector<std::string> list_names(const std::string& file, const ops::Argument& argument, const ModelConfig& config) {
  std::vector<std::string> names;
  for (const ModelConfig::TensorConfig& input : config.inputs) {
    if (place_of(argument.name, input.name) >= 0) names.push_back(input.name);
  }
  std::ranges::sort(names, {}, [&](const std::string& name) { return place_of(argument.name, name); });
  for (size_t i = 0; i < names.size(); ++i) {
    check(place_of(argument.name, names[i]) == static_cast<int64_t>(i), file, ": config.pbtxt has an input '", names[i],
          "', but none '", argument.name, kMark, i, "': the tensors of a list are numbered from 0 on");
  }
  return names;
}

std::vector<std::string> dict_names(const std::string& file, const ops::Schema& schema, size_t index,
                                    const ModelConfig& config) {
  const ops::Argument& argument = schema.arguments[index];
  const bool is_alone = std::ranges::count_if(schema.arguments, [](const ops::Argument& other) {
                          return is_gathered(*other.type) && !is_list(*other.type);
                        }) == 1;
  std::vector<std::string> names;
  for (const ModelConfig::TensorConfig& input : config.inputs) {
    if (is_of_another(schema, index, input.name)) continue;
    const bool is_marked = !behind_mark(argument.name, input.name).empty();
    check(is_alone || is_marked, file, ": config.pbtxt: input '", input.name,
          "' could be a key of several arguments of ", "type Dict[str, Tensor]; name it ARGUMENT__KEY, as '",
          argument.name, kMark, input.name, "'");
    names.push_back(input.name);
  }
  return names;
}

}  // namespace

bool is_gathered(const ops::Type& declared) {
  const ops::Type& type = without_optional(declared);
  if (type.kind() == TypeKind::kList) return type.element()->kind() == TypeKind::kTensor;
  return type.kind() == TypeKind::kDict && type.contained()[0]->kind() == TypeKind::kString &&
         type.contained()[1]->kind() == TypeKind::kTensor;
}

std::vector<std::string> gathered_names(const std::string& file, const ops::Schema& schema, size_t index,
                                        const ModelConfig& config) {
  const ops::Argument& argument = schema.arguments[index];
  const bool takes_list = is_list(*argument.type);
  std::vector<std::string> names =
      takes_list ? list_names(file, argument, config) : dict_names(file, schema, index, config);
  const bool may_lack = argument.default_value || argument.type->kind() == TypeKind::kOptional;
  if (!names.empty() || may_lack) return names;
  fail(ErrorCode::kInvalidArgument, file, ": argument '", argument.name, "' of ", schema.name, " is a ",
       argument.type->str(), ": config.pbtxt has to list the inputs that make it, ",
       takes_list ? concat("'", argument.name, "__0', '", argument.name, "__1' and so on")
                  : "named by the keys of the dict");
}

std::string part_key(const ops::Argument& argument, const std::string& input) {
  const std::string key = behind_mark(argument.name, input);
  return key.empty() || is_list(*argument.type) ? input : key;
}

Value gather_argument(const ops::Type& declared, std::span<const ArgumentPart> parts, std::span<const Value> tensors) {
  if (std::ranges::all_of(tensors, [](const Value& tensor) { return tensor.is_none(); })) return {};
  const ops::Type& type = without_optional(declared);
  if (type.kind() == TypeKind::kDict) {
    auto dict = make_intrusive<ops::DictObject>(type.contained()[0], type.contained()[1]);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!tensors[i].is_none()) dict->set(Value(parts[i].key), tensors[i]);
    }
    return Value(std::move(dict));
  }
  std::vector<Value> items;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].is_none()) continue;
    check(items.size() == i, "inference input '", parts[items.size()].key, "' is missing before '", parts[i].key,
          "', of the same list");
    items.push_back(tensors[i]);
  }
  return ops::make_list(type.element(), std::move(items));
}

}  // namespace tensord::server
