#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "core/jit/importers/pt2/graph_reader.h"

namespace tensord::jit::pt2 {

// A node that is written as a composition: its arguments by name, and functions that add nodes.
class NodeCall {
 public:
  NodeCall(GraphReader& reader, const Json& node, const GraphReader::Scope& scope)
      : reader_(reader), node_(node), scope_(scope) {}

  GraphBuilder& builder() const { return reader_.builder(); }
  bool has(std::string_view name) const;  // given and not None
  // Returns null if it is not given.
  GraphValue* find(std::string_view name) const;
  GraphValue* at(std::string_view name) const;  // throws Error{kDataLoss}
  GraphValue* or_constant(std::string_view name, ops::Value otherwise) const;
  // The value of an argument that must be a constant.
  ops::Value constant(std::string_view name, ops::Value otherwise) const;
  // The kind of the node's first output, such as "as_sym_float".
  std::string output_kind() const;
  const Json* json(std::string_view name) const;  // the JSON union; null if it is not given

 private:
  GraphReader& reader_;
  const Json& node_;
  const GraphReader::Scope& scope_;
};

}  // namespace tensord::jit::pt2
