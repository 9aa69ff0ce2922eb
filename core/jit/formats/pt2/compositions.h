#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "core/jit/formats/pt2/graph_reader.h"

namespace tensord::jit::pt2 {

// A node whose operator is written with others: its arguments by name, and what adds nodes.
class NodeCall {
 public:
  NodeCall(GraphReader& reader, const Json& node, const GraphReader::Scope& scope)
      : reader_(reader), node_(node), scope_(scope) {}

  GraphBuilder& builder() const { return reader_.builder(); }
  bool has(std::string_view name) const;  // and it is not None
  // Null where it is not given.
  GraphValue* find(std::string_view name) const;
  GraphValue* at(std::string_view name) const;  // throws Error{kDataLoss}
  GraphValue* or_constant(std::string_view name, ops::Value otherwise) const;
  // The value of an argument that has to be a constant.
  ops::Value constant(std::string_view name, ops::Value otherwise) const;
  // "as_sym_float" … of the node's first output.
  std::string output_kind() const;
  const Json* json(std::string_view name) const;  // the union; null where it is not given

 private:
  GraphReader& reader_;
  const Json& node_;
  const GraphReader::Scope& scope_;
};

}  // namespace tensord::jit::pt2
