#include "core/jit/ir/missing_operators.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "core/base/error.h"

namespace tensord::jit {
namespace {

// Visits the calls of operators in a graph, and in the functions that it calls by name.
class Walk {
 public:
  Walk(const FunctionLibrary& functions, std::function<void(const Node& call)> visit)
      : functions_(functions), visit_(std::move(visit)) {}

  void walk(const Block* block) {
    for (const Node* node = block->first(); node != nullptr; node = node->next()) {
      switch (node->kind()) {
        case NodeKind::kOp: visit_(*node); break;
        case NodeKind::kCallFunction:
        case NodeKind::kCallMethod: follow(*node); break;
        default: break;
      }
      for (const Block* inner : node->blocks()) walk(inner);
    }
  }

 private:
  void follow(const Node& node) {
    try {
      const Function* function = nullptr;
      if (node.kind() == NodeKind::kCallFunction) {
        function = functions_.find_function(node.name());
      } else if (node.input(0)->type()->kind() == ops::TypeKind::kClass) {
        function = functions_.find_method(node.input(0)->type()->name(), node.name());
      }
      if (function != nullptr && seen_.insert(function->name).second) walk(function->graph->block());
    } catch (const Error&) {
      // The function does not compile; calling it reports the error.
    }
  }

  const FunctionLibrary& functions_;
  const std::function<void(const Node& call)> visit_;
  std::set<std::string> seen_;
};

void note_missing(const Node& node, std::vector<MissingOperator>& found) {
  if (node.op()->schema.name != kMissingOperator) return;
  const Node* message = node.input(0)->node();
  const bool is_known = message != nullptr && message->kind() == NodeKind::kConstant;
  MissingOperator missing{is_known ? message->constant().to_string() : "an operator is not supported", node.location()};
  const bool is_new = std::none_of(found.begin(), found.end(), [&](const MissingOperator& other) {
    return other.message == missing.message && other.location.str() == missing.location.str() &&
           other.location.column == missing.location.column;
  });
  if (is_new) found.push_back(std::move(missing));
}

}  // namespace

std::vector<MissingOperator> missing_operators(const Graph& graph, const FunctionLibrary& functions) {
  std::vector<MissingOperator> found;
  Walk(functions, [&](const Node& node) { note_missing(node, found); }).walk(graph.block());
  return found;
}

std::vector<const ops::Op*> called_operators(const Graph& graph, const FunctionLibrary& functions) {
  std::vector<const ops::Op*> found;
  const auto note = [&](const Node& node) {
    if (std::ranges::find(found, node.op()) == found.end()) found.push_back(node.op());
  };
  Walk(functions, note).walk(graph.block());
  return found;
}

}  // namespace tensord::jit
