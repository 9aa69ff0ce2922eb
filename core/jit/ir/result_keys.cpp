#include "core/jit/ir/result_keys.h"

#include <algorithm>
#include <optional>

#include "core/jit/ir/alias.h"

namespace tensord::jit {
namespace {

struct Item {
  std::string key;
  const GraphValue* value;
};
using Items = std::vector<Item>;

// A key that is set again keeps its place.
bool set_item(const GraphValue* key_value, const GraphValue* value, Items& items) {
  const ops::Value* key = key_value->constant();
  if (!key || !key->is_string()) return false;
  const auto found = std::ranges::find(items, key->to_string(), &Item::key);
  if (found == items.end()) {
    items.push_back({key->to_string(), value});
  } else {
    found->value = value;
  }
  return true;
}

// The items of a dict that each run makes, and that only "d[key] = x" outside branches and loops writes.
std::optional<Items> items_of(const GraphValue* dict, const AliasAnalysis& alias) {
  const Node* made = dict->node();
  const int location = alias.location(dict);
  if (!made || made->kind() != NodeKind::kDictConstruct || location == AliasAnalysis::kNoMemory ||
      location == alias.wildcard())
    return std::nullopt;
  Items items;
  for (size_t i = 0; i < made->inputs().size(); i += 2) {
    if (!set_item(made->input(i), made->input(i + 1), items)) return std::nullopt;
  }
  for (const Node* writer : alias.writers(location)) {
    const bool sets_item = writer->is_op("aten::_set_item.str") && writer->input(0) == dict;
    if (!sets_item || writer->block() != made->block() || !set_item(writer->input(1), writer->input(2), items))
      return std::nullopt;
  }
  return items;
}

ops::TypePtr with_keys(const GraphValue* value, const Graph& graph, const AliasAnalysis& alias) {
  const ops::TypePtr& type = value->type();
  const Node* made = value->node();
  if (!made || made->block() != graph.block()) return type;
  if (type->kind() == ops::TypeKind::kDict) {
    const std::optional<Items> items = items_of(value, alias);
    if (!items || items->empty()) return type;
    std::vector<std::string> keys;
    for (const Item& item : *items) keys.push_back(item.key);
    return ops::named_tuple_type("", keys, std::vector<ops::TypePtr>(keys.size(), type->contained()[1]));
  }
  if (type->kind() != ops::TypeKind::kTuple || made->kind() != NodeKind::kTupleConstruct) return type;
  std::vector<ops::TypePtr> members;
  for (const GraphValue* input : made->inputs()) members.push_back(with_keys(input, graph, alias));
  return type->field_names().empty() ? ops::tuple_type(std::move(members))
                                     : ops::named_tuple_type(type->name(), type->field_names(), std::move(members));
}

void add_values(const GraphValue* value, const Graph& graph, const AliasAnalysis& alias,
                std::vector<const GraphValue*>& values) {
  const Node* made = value->node();
  const bool is_made_here = made && made->block() == graph.block();
  if (is_made_here && made->kind() == NodeKind::kTupleConstruct) {
    for (const GraphValue* input : made->inputs()) add_values(input, graph, alias, values);
    return;
  }
  const bool is_dict = is_made_here && value->type()->kind() == ops::TypeKind::kDict;
  const std::optional<Items> items = is_dict ? items_of(value, alias) : std::nullopt;
  if (!items) return values.push_back(value);
  for (const Item& item : *items) values.push_back(item.value);
}

}  // namespace

ops::TypePtr result_type_with_keys(const Graph& graph) {
  const auto results = graph.block()->outputs();
  return results.size() == 1 ? with_keys(results[0], graph, AliasAnalysis(graph)) : ops::none_type();
}

std::vector<const GraphValue*> result_values(const Graph& graph) {
  std::vector<const GraphValue*> values;
  const auto results = graph.block()->outputs();
  if (results.size() == 1) add_values(results[0], graph, AliasAnalysis(graph), values);
  return values;
}

}  // namespace tensord::jit
