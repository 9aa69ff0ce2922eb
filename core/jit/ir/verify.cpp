#include "core/jit/ir/verify.h"

#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"
#include "core/jit/ir/text.h"
#include "core/jit/ir/type_match.h"

namespace tensord::jit {

using ops::Type;
using ops::TypeKind;
using ops::TypePtr;

namespace {

bool is_number(TypeKind kind) {
  return kind == TypeKind::kInt || kind == TypeKind::kFloat || kind == TypeKind::kBool || kind == TypeKind::kNumber;
}

bool converts(const Type& formal, const TypePtr& actual, int64_t fixed_list_size) {
  switch (formal.kind()) {
    case TypeKind::kOptional: return converts(*formal.element(), actual, fixed_list_size);
    case TypeKind::kInt:
    case TypeKind::kFloat:
    case TypeKind::kNumber: return actual->kind() == TypeKind::kTensor || is_number(actual->kind());
    case TypeKind::kDevice: return actual->kind() == TypeKind::kString;
    case TypeKind::kGenerator: return actual->kind() == TypeKind::kNone;
    case TypeKind::kList: {
      const Type& element = *formal.element();
      if (fixed_list_size > 0 && (is_number(actual->kind()) || actual->kind() == TypeKind::kNone)) return true;
      if (actual->kind() != TypeKind::kList && actual->kind() != TypeKind::kTuple) return false;
      for (const TypePtr& member : actual->contained()) {
        if (!ops::is_subtype(*member, element) && !converts(element, member, 0)) return false;
      }
      return true;
    }
    default: return false;
  }
}

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  void run() {
    require_block(graph_.block()->owner() == nullptr, "the graph's block has an owner");
    block(*graph_.block());
    require_block(nodes_ == graph_.node_count(), "nodes were made that are in no block");
  }

 private:
  [[noreturn]] static void broken(const Node& node, const std::string& what) {
    fail(ErrorCode::kInternal, "graph is not well formed: ", what, "\n  in ", print_node(node),
         node.location().line ? "  # " + node.location().str() : "");
  }
  static void require(bool condition, const Node& node, const char* what) {
    if (!condition) broken(node, what);
  }
  static void require_block(bool condition, const char* what) {
    if (!condition) fail(ErrorCode::kInternal, "graph is not well formed: ", what);
  }

  void block(const Block& block) {
    std::vector<const GraphValue*> scope;
    const auto define = [&](const GraphValue* value) {
      require_block(value->type() != nullptr, "a value has no type");
      in_scope_.insert(value);
      scope.push_back(value);
      uses(*value);
    };
    require_block(block.graph() == &graph_, "a block belongs to another graph");
    for (size_t i = 0; i < block.inputs().size(); ++i) {
      const GraphValue* input = block.inputs()[i];
      require_block(input->block() == &block && !input->node() && input->index() == i, "a block input is mislinked");
      define(input);
    }
    const Node* previous = nullptr;
    for (const Node* node = block.first(); node; node = node->next()) {
      require(node->block() == &block && node->graph() == &graph_ && node->previous() == previous, *node,
              "the list of nodes is mislinked");
      previous = node;
      ++nodes_;
      this->node(*node);
      for (const GraphValue* output : node->outputs()) define(output);
    }
    require_block(block.last() == previous, "the end of a block is mislinked");
    for (size_t i = 0; i < block.outputs().size(); ++i) {
      require_block(in_scope_.contains(block.outputs()[i]), "a block gives back a value that is not in scope");
      require_block(++seen_uses_[block.outputs()[i]] <= block.outputs()[i]->uses().size(), "a use is not listed");
    }
    for (const GraphValue* value : scope) {
      require_block(seen_uses_[value] == value->uses().size(),
                    "a value is used out of its scope, or its use list is wrong");
      in_scope_.erase(value);
    }
  }

  // Every listed use must refer back to the value. The end of the scope compares the counts.
  void uses(const GraphValue& value) {
    for (const GraphValue::Use& use : value.uses()) {
      const auto list = use.block ? use.block->outputs() : use.node->inputs();
      if (use.index < list.size() && list[use.index] == &value) continue;
      if (value.node()) broken(*value.node(), "a use list is wrong");
      require_block(false, "the use list of a block input is wrong");
    }
  }

  void node(const Node& node) {
    for (const GraphValue* input : node.inputs()) {
      require(in_scope_.contains(input), node, "an input is not defined before it is used");
      require(++seen_uses_[input] <= input->uses().size(), node, "a use is not listed");
    }
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      const GraphValue* output = node.output(i);
      require(output->node() == &node && output->index() == i && output->block() == node.block(), node,
              "an output is mislinked");
    }
    require((node.kind() == NodeKind::kOp) == (node.op() != nullptr), node, "an operator and its kind do not agree");
    signature(node);
    for (const Block* inner : node.blocks()) {
      require(inner->owner() == &node, node, "a block is mislinked");
      block(*inner);
    }
  }

  static void arity(const Node& node, int inputs, int outputs, size_t blocks = 0) {
    require(inputs < 0 || node.inputs().size() == static_cast<size_t>(inputs), node, "wrong number of inputs");
    require(outputs < 0 || node.outputs().size() == static_cast<size_t>(outputs), node, "wrong number of outputs");
    require(node.blocks().size() == blocks, node, "wrong number of blocks");
  }

  void signature(const Node& node) {
    switch (node.kind()) {
      case NodeKind::kOp: return op_signature(node);
      case NodeKind::kIf: return if_signature(node);
      case NodeKind::kLoop: return loop_signature(node);
      case NodeKind::kConstant: return arity(node, 0, 1);
      case NodeKind::kUninitialized:
      case NodeKind::kCreateObject: return arity(node, 0, 1);
      case NodeKind::kGetAttr:
      case NodeKind::kUncheckedCast:
      case NodeKind::kIsInstance:
      case NodeKind::kWait: return arity(node, 1, 1);
      case NodeKind::kSetAttr: return arity(node, 2, 0);
      case NodeKind::kCallMethod:
      case NodeKind::kCallValue:
        require(!node.inputs().empty(), node, "a call has no callee");
        return arity(node, -1, 1);
      case NodeKind::kCallFunction: return arity(node, -1, 1);
      case NodeKind::kListConstruct:
        require(node.outputs().size() == 1 && node.output()->type()->kind() == TypeKind::kList, node, "makes no list");
        return arity(node, -1, 1);
      case NodeKind::kTupleConstruct:
        arity(node, -1, 1);
        require(node.output()->type()->kind() == TypeKind::kTuple &&
                    node.output()->type()->contained().size() == node.inputs().size(),
                node, "makes no tuple of its inputs");
        return;
      case NodeKind::kDictConstruct:
        require(node.inputs().size() % 2 == 0, node, "keys and values do not pair");
        return arity(node, -1, 1);
      case NodeKind::kListUnpack:
      case NodeKind::kTupleUnpack: return arity(node, 1, -1);
      case NodeKind::kTupleIndex: return arity(node, 1, 1);
      case NodeKind::kFork:
        arity(node, -1, 1, 1);
        require(node.blocks()[0]->inputs().size() == node.inputs().size(), node, "captures and block inputs differ");
        return;
      case NodeKind::kPlan:
        arity(node, -1, -1, 1);
        require(node.blocks()[0]->inputs().size() == node.inputs().size(), node, "captures and block inputs differ");
        require(node.blocks()[0]->outputs().size() == node.outputs().size(), node, "results and block outputs differ");
        return;
    }
  }

  void op_signature(const Node& node) {
    const ops::Schema& schema = node.op()->schema;
    require(node.blocks().empty(), node, "an operator has no blocks");
    const size_t given = node.inputs().size(), named = schema.arguments.size();
    require(schema.is_vararg ? given >= named : given == named, node, "the number of arguments is not the schema's");
    require(schema.is_vararg_return || node.outputs().size() == schema.returns.size(), node,
            "the number of outputs is not the schema's");
    TypeBindings bindings;
    for (size_t i = 0; i < named; ++i) {
      const ops::Argument& argument = schema.arguments[i];
      const TypePtr& actual = node.input(i)->type();
      if (match_type(*argument.type, actual, bindings) || converts_implicitly(argument, actual)) continue;
      broken(node, concat("argument '", argument.name, "' takes ", argument.type->str(), ", not ", actual->str()));
    }
  }

  static bool fits(const GraphValue* value, const GraphValue* into) {
    return ops::is_subtype(value->type(), into->type());
  }

  static void block_outputs(const Node& node, std::span<GraphValue* const> given) {
    require(given.size() == node.outputs().size(), node, "a block gives back another number of values");
    for (size_t i = 0; i < given.size(); ++i) {
      if (fits(given[i], node.output(i))) continue;
      broken(node, concat("output ", i, " is ", node.output(i)->type()->str(), " but a block gives ",
                          given[i]->type()->str()));
    }
  }

  static void if_signature(const Node& node) {
    arity(node, 1, -1, 2);
    require(node.input()->type()->kind() == TypeKind::kBool, node, "the condition is not a bool");
    for (const Block* block : node.blocks()) {
      require(block->inputs().empty(), node, "a branch has inputs");
      block_outputs(node, block->outputs());
    }
  }

  static void loop_signature(const Node& node) {
    arity(node, -1, -1, 1);
    require(node.inputs().size() == node.outputs().size() + 2, node, "wrong number of inputs");
    require(node.input(0)->type()->kind() == TypeKind::kInt, node, "the trip count is not an int");
    require(node.input(1)->type()->kind() == TypeKind::kBool, node, "the condition is not a bool");
    const Block& body = *node.blocks()[0];
    require(body.inputs().size() == node.outputs().size() + 1, node, "the body has the wrong number of inputs");
    require(!body.outputs().empty() && body.outputs()[0]->type()->kind() == TypeKind::kBool, node,
            "the body gives no bool to go on");
    block_outputs(node, body.outputs().subspan(1));
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      require(fits(node.input(i + 2), body.inputs()[i + 1]) && fits(body.outputs()[i + 1], body.inputs()[i + 1]), node,
              "a carried value does not fit the body's input");
    }
  }

  const Graph& graph_;
  std::unordered_set<const GraphValue*> in_scope_;
  std::unordered_map<const GraphValue*, size_t> seen_uses_;
  size_t nodes_ = 0;
};

}  // namespace

bool converts_implicitly(const ops::Argument& formal, const TypePtr& actual) {
  return converts(*formal.type, actual, formal.fixed_list_size);
}

void verify(const Graph& graph) { Verifier(graph).run(); }

}  // namespace tensord::jit
