#include "core/jit/ir/missing_operators.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"

namespace tensord::jit {
namespace {

class Search {
 public:
  explicit Search(const FunctionLibrary& functions) : functions_(functions) {}

  void walk(const Block* block) {
    for (const Node* node = block->first(); node != nullptr; node = node->next()) {
      switch (node->kind()) {
        case NodeKind::kOp: note(*node); break;
        case NodeKind::kCallFunction:
        case NodeKind::kCallMethod: follow(*node); break;
        default: break;
      }
      for (const Block* inner : node->blocks()) walk(inner);
    }
  }

  std::vector<MissingOperator> found() && { return std::move(found_); }

 private:
  void note(const Node& node) {
    if (node.op()->schema.name != kMissingOperator) return;
    const Node* message = node.input(0)->node();
    const bool is_known = message != nullptr && message->kind() == NodeKind::kConstant;
    MissingOperator missing{is_known ? message->constant().to_string() : "an operator is not supported",
                            node.location()};
    const bool is_new = std::none_of(found_.begin(), found_.end(), [&](const MissingOperator& other) {
      return other.message == missing.message && other.location.str() == missing.location.str() &&
             other.location.column == missing.location.column;
    });
    if (is_new) found_.push_back(std::move(missing));
  }

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
  std::set<std::string> seen_;
  std::vector<MissingOperator> found_;
};

}  // namespace

std::vector<MissingOperator> missing_operators(const Graph& graph, const FunctionLibrary& functions) {
  Search search(functions);
  search.walk(graph.block());
  return std::move(search).found();
}

}  // namespace tensord::jit
