#include "server/executor/model/training_mode.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/jit/archive/model_archive.h"

namespace tensord::server {
namespace {

using jit::Node;
using jit::NodeKind;

const ops::Value* constant_of(const Node& node, size_t argument) {
  if (argument >= node.inputs().size()) return nullptr;
  const Node* source = node.input(argument)->node();
  return source != nullptr && source->kind() == NodeKind::kConstant ? &source->constant() : nullptr;
}

// Whether the operator runs in training mode with an effect (unlike dropout with p = 0).
bool trains(const Node& node) {
  if (node.kind() != NodeKind::kOp) return false;
  bool is_told = false, is_nothing = false;
  const auto& arguments = node.op()->schema.arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ops::Value* value = constant_of(node, i);
    if (value == nullptr) continue;
    const std::string& name = arguments[i].name;
    if ((name == "train" || name == "training") && value->is_bool()) is_told = value->to_bool();
    if ((name == "p" || name == "dropout") && value->is_number()) is_nothing = value->to_scalar().to_double() == 0;
  }
  return is_told && !is_nothing;
}

// The name of the first such operator, or "".
std::string find_training(const jit::Block* block) {
  for (const Node* node = block->first(); node != nullptr; node = node->next()) {
    if (trains(*node)) return node->op()->schema.name;
    for (const jit::Block* inner : node->blocks()) {
      if (std::string found = find_training(inner); !found.empty()) return found;
    }
  }
  return {};
}

bool asks_for_mode(const std::string& file) {
  const auto sources = jit::ModelArchive::open(file).sources();
  return std::any_of(sources.begin(), sources.end(),
                     [](const jit::SourceFile& source) { return source.text.find(".training") != std::string::npos; });
}

}  // namespace

std::string training_mode_warning(const std::string& file, const jit::Module& module, const jit::Method& method) {
  const std::string found = find_training(method.graph().block());
  if (found.empty() && !(module.is_training() && asks_for_mode(file))) return {};
  return concat("saved in training mode", found.empty() ? std::string() : concat(" (", found, " acts so)"),
                ": results may be random or depend on other rows; call eval() before saving");
}

}  // namespace tensord::server
