#include "core/jit/ir/result_keys.h"

#include <algorithm>
#include <optional>

#include "core/jit/ir/alias.h"

namespace tensord::jit {
namespace {

using Keys = std::vector<std::string>;

bool add_key(const GraphValue* value, Keys& keys) {
  const ops::Value* key = value->constant();
  if (!key || !key->is_string()) return false;
  if (std::ranges::find(keys, key->to_string()) == keys.end()) keys.push_back(key->to_string());
  return true;
}

// The keys of a dict that each run makes, and that only "d[key] = x" outside branches and loops writes.
std::optional<Keys> keys_of(const GraphValue* dict, const AliasAnalysis& alias) {
  const Node* made = dict->node();
  const int location = alias.location(dict);
  if (!made || made->kind() != NodeKind::kDictConstruct || location == AliasAnalysis::kNoMemory ||
      location == alias.wildcard())
    return std::nullopt;
  Keys keys;
  for (size_t i = 0; i < made->inputs().size(); i += 2) {
    if (!add_key(made->input(i), keys)) return std::nullopt;
  }
  for (const Node* writer : alias.writers(location)) {
    const bool sets_item = writer->is_op("aten::_set_item.str") && writer->input(0) == dict;
    if (!sets_item || writer->block() != made->block() || !add_key(writer->input(1), keys)) return std::nullopt;
  }
  return keys;
}

ops::TypePtr with_keys(const GraphValue* value, const Graph& graph, const AliasAnalysis& alias) {
  const ops::TypePtr& type = value->type();
  const Node* made = value->node();
  if (!made || made->block() != graph.block()) return type;
  if (type->kind() == ops::TypeKind::kDict) {
    const std::optional<Keys> keys = keys_of(value, alias);
    if (!keys || keys->empty()) return type;
    return ops::named_tuple_type("", *keys, std::vector<ops::TypePtr>(keys->size(), type->contained()[1]));
  }
  if (type->kind() != ops::TypeKind::kTuple || made->kind() != NodeKind::kTupleConstruct) return type;
  std::vector<ops::TypePtr> members;
  for (const GraphValue* input : made->inputs()) members.push_back(with_keys(input, graph, alias));
  return type->field_names().empty() ? ops::tuple_type(std::move(members))
                                     : ops::named_tuple_type(type->name(), type->field_names(), std::move(members));
}

}  // namespace

ops::TypePtr result_type_with_keys(const Graph& graph) {
  const auto results = graph.block()->outputs();
  return results.size() == 1 ? with_keys(results[0], graph, AliasAnalysis(graph)) : ops::none_type();
}

}  // namespace tensord::jit
