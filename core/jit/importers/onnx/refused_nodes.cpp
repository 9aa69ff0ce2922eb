// Nodes that read what refused ones would have made, where all refusals are collected: what is wrong with them whatever
// their inputs are, as unknown operators and values of attributes.
#include <algorithm>
#include <utility>

#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/jit/importers/onnx/importer.h"

namespace tensord::jit::onnx {

bool Importer::reads_refused(const NodeProto& node) const {
  if (refused_.empty()) return false;
  const auto is_refused = [&](const std::string& name) { return !name.empty() && refused_.contains(name); };
  // The graphs of a loop or branch may read any value.
  const auto has_graph = [](const AttributeProto& attribute) { return attribute.g != nullptr; };
  return std::ranges::any_of(node.inputs, is_refused) || std::ranges::any_of(node.attributes, has_graph);
}

void Importer::check_without_inputs(const std::vector<NodeProto>& nodes) {
  for (const NodeProto& node : nodes) attempt(node, [&] { check_without_inputs(node); });
}

void Importer::check_without_inputs(const NodeProto& node) {
  check_work_cancelled();
  for (const AttributeProto& attribute : node.attributes) {
    if (attribute.g) check_without_inputs(attribute.g->nodes);
  }
  if (const FunctionProto* local = local_function(node)) {
    if (!checked_without_inputs_.insert(local).second) return;
    const OpsetImports* const outer = std::exchange(opsets_, &local->opset_imports);
    check_without_inputs(local->nodes);
    opsets_ = outer;
    return;
  }
  check_opset(node);
  if (find_special(node)) return;
  const Function& function = library_function(node);
  for (const AttributeProto& attribute : node.attributes) {
    if (!attribute.ref_attr_name.empty()) continue;  // of the function around, whose calls say it
    const int index = function.schema.find_argument(attribute.name);
    const auto* parameter = index < 0 ? nullptr : &function.schema.arguments[static_cast<size_t>(index)];
    if (!parameter || !parameter->is_keyword_only) {
      fail(ErrorCode::kUnimplemented, "attribute '", attribute.name, "' is not known");
    }
    attribute_value(operator_of(function), attribute.name, attribute, *parameter->type);
  }
}

}  // namespace tensord::jit::onnx
