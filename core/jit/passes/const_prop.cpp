// const_prop: runs pure nodes with constant inputs through ops::run, replaces an If with a known condition by its
// branch, and removes a Loop that never runs. Memory that may be written or returned is never folded, because every run
// must get its own. Large results and long computations are left to the runs, so that no file can make loading slow.
// Conversions of weights to float32 are a separate pass after prepack, which packs what it can without a copy. Other
// rewrites of the structure belong to simplify.
#include <algorithm>
#include <new>

#include "core/base/cancellation.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/jit/ir/alias.h"
#include "core/jit/ir/graph_builder.h"
#include "core/jit/ir/type_match.h"
#include "core/jit/ir/walk.h"
#include "core/jit/passes/packing.h"
#include "core/jit/passes/passes.h"
#include "core/jit/passes/same_constant.h"
#include "core/ops/complex.h"
#include "core/ops/run.h"
#include "core/tensor/memory/owner_limit.h"

namespace tensord::jit {

using ops::TypeKind;
using ops::Value;

namespace {

// A folded tensor lives as long as the model, so only small tensors and views are folded.
constexpr size_t kMaxFoldedBytes = 1 << 20;
constexpr size_t kMaxFoldedItems = 4096;
// The limit for one graph in one run of the pass; views of constants do not count.
constexpr size_t kMaxFoldedTotal = 64 << 20;
constexpr int64_t kMaxFoldNs = 2'000'000'000;
// The limit on the number of input reads of an operator, estimated as if each input element met each element of the
// others. A product of 512 by 512 passes, a convolution over a padding of millions does not.
constexpr double kMaxFoldWork = 3e11;

// The memory that an operator may use if its result size is unknown before the run.
constexpr uint64_t kMaxFoldMemory = 256 << 20;

// Limits the memory of constant folding. It has its own owner, because the model's limit does not apply to it. All
// scopes share the limit, which exists only while a scope does, because each allocation checks it.
class FoldMemory {
 public:
  FoldMemory() : owner_(memory_owner("constant folding")), scope_(owner_) {
    const MutexLock lock(mutex());
    if (count()++ == 0) set_owner_limit(owner_, kMaxFoldMemory);
  }
  ~FoldMemory() {
    const MutexLock lock(mutex());
    if (--count() == 0) set_owner_limit(owner_, 0);
  }
  FoldMemory(const FoldMemory&) = delete;
  FoldMemory& operator=(const FoldMemory&) = delete;

 private:
  static Mutex& mutex() {
    static Mutex mutex;
    return mutex;
  }
  static int& count() {
    static int count = 0;
    return count;
  }

  const OwnerId owner_;
  const MemoryOwnerScope scope_;
};

size_t bytes_of(const Value& value, int depth = 0) {
  if (depth > 8) return kMaxFoldedBytes;
  if (value.is_strided()) return value.to_tensor().size_bytes();
  if (value.is_string()) return value.to_string().size();
  size_t total = sizeof(Value);
  const auto add = [&](const std::vector<Value>& items) {
    total += items.size() * sizeof(Value);
    if (items.size() > kMaxFoldedItems) return;
    for (const Value& item : items) total += bytes_of(item, depth + 1);
  };
  if (value.is_list()) add(value.to_list()->items);
  if (value.is_tuple()) add(value.to_tuple()->items);
  return total;
}

class Folder {
 public:
  Folder(Graph& graph, PassContext& context) : graph_(graph), context_(context), alias_(graph) {}

  bool run() {
    block(graph_.block());
    return changed_;
  }

  // Folds half-precision weights of any size that the graph converts to float32 and does not use otherwise. The result
  // is kept with the packed weights, once for all graphs of the module.
  bool run_conversions() {
    for_each_node(graph_.block(), [&](Node* node) {
      if (node->outputs().size() != 1 || !node->output()->has_uses()) return;
      const Tensor halves = halves_of(node->output());
      if (!halves.defined() || !is_converted_only(*node->input(0)) || !may_be_shared(node->output()) ||
          alias_.has_writers(node->input(0)) || !context_.take_change())
        return;
      const Tensor of[] = {halves};
      const auto wide = context_.packs->get<Tensor>(
          "float32", of, [&] { return std::make_shared<const Tensor>(halves.to(DType::kFloat32)); });
      replace(node, {*wide});
    });
    return changed_;
  }

 private:
  void block(Block* block) {
    for (Node* node = block->first(); node;) {
      Node* next = node->next();
      if (node->kind() == NodeKind::kIf && node->input()->constant()) {
        // The nodes of the taken branch must be visited too.
        if (Node* first = take_branch(node)) next = first;
      } else if (node->kind() == NodeKind::kLoop && skip_loop(node)) {
        // gone
      } else {
        for (Block* inner : node->blocks()) this->block(inner);
        fold(node);
      }
      node = next;
    }
  }

  // Returns the first node of the branch that replaces the If; null if the branch has none or the If stays.
  Node* take_branch(Node* node) {
    const Value& condition = constant_of(node->input());
    if (!condition.is_bool() || !context_.take_change()) return nullptr;
    changed_ = true;
    Block* taken = node->blocks()[condition.to_bool() ? 0 : 1];
    std::vector<GraphValue*> results(taken->outputs().begin(), taken->outputs().end());
    Node* first = taken->first();
    while (taken->first()) taken->first()->move_before(node);
    for (size_t i = 0; i < results.size(); ++i) node->output(i)->replace_all_uses_with(results[i]);
    Node* next = node->next();
    node->destroy();
    return first ? first : next;
  }

  bool skip_loop(Node* node) {
    const Value* trips = node->input(0)->constant();
    const Value* condition = node->input(1)->constant();
    bool never = (trips && trips->is_int() && trips->to_int() <= 0) ||
                 (condition && condition->is_bool() && !condition->to_bool());
    if (!never || !context_.take_change()) return false;
    changed_ = true;
    for (size_t i = 0; i < node->outputs().size(); ++i) node->output(i)->replace_all_uses_with(node->input(i + 2));
    node->destroy();
    return true;
  }

  static bool is_converted_only(const GraphValue& value) {
    return std::ranges::all_of(value.uses(), [](const GraphValue::Use& use) {
      if (use.block) return false;
      const bool converts = use.node->outputs().size() == 1 && halves_of(use.node->output()).defined();
      return converts || reads_only_shape(*use.node);
    });
  }

  bool inputs_are_constant(const Node& node) const {
    for (const GraphValue* input : node.inputs()) {
      if (!input->constant()) return false;
    }
    return true;
  }

  // Whether all runs may share one result.
  bool may_be_shared(const GraphValue* value) const {
    if (!AliasAnalysis::is_mutable_type(*value->type())) return true;
    for (int location : alias_.reachable(value)) {
      if (location == alias_.wildcard() || alias_.is_given_back(location)) return false;
      if (!alias_.writers(location).empty()) return false;
    }
    return true;
  }

  void fold(Node* node) {
    if (folded_bytes_ > kMaxFoldedTotal || spent_ns_ > kMaxFoldNs || !is_foldable(*node) || !inputs_are_constant(*node))
      return;
    for (const GraphValue* input : node->inputs()) {
      if (AliasAnalysis::is_mutable_type(*input->type()) && !made_.contains(input) && alias_.has_writers(input)) return;
    }
    for (const GraphValue* output : node->outputs()) {
      if (!may_be_shared(output)) return;
      // A tensor may become a leaf later, and gradients accumulate in it.
      if (context_.is_for_training && may_hold_tensor(*output->type())) return;
    }
    check_work_cancelled();
    std::vector<Value> results;
    const int64_t start_ns = Clock::system().now_ns();
    const bool is_evaluated = evaluate(*node, start_ns + kMaxFoldNs - spent_ns_, results);
    spent_ns_ += Clock::system().now_ns() - start_ns;
    if (!is_evaluated || results.size() != node->outputs().size()) return;
    size_t bytes = 0;
    for (const Value& result : results) {
      if (!is_representable(result)) return;
      const size_t own = is_view_of_input(*node, result) ? 0 : bytes_of(result);
      if (own > kMaxFoldedBytes) return;
      bytes += own;
    }
    if (!context_.take_change()) return;
    folded_bytes_ += bytes;
    replace(node, std::move(results));
  }

  static bool is_foldable(const Node& node) {
    if (node.outputs().empty()) return false;
    switch (node.kind()) {
      case NodeKind::kOp: return node.is_pure_op();
      case NodeKind::kListConstruct:
      case NodeKind::kTupleConstruct:
      case NodeKind::kListUnpack:
      case NodeKind::kTupleUnpack:
      case NodeKind::kTupleIndex:
      case NodeKind::kIsInstance: return true;
      default: return false;
    }
  }

  bool evaluate(const Node& node, int64_t deadline_ns, std::vector<Value>& results) const {
    std::vector<Value> inputs;
    for (const GraphValue* input : node.inputs()) inputs.push_back(constant_of(input));
    switch (node.kind()) {
      case NodeKind::kOp: return evaluate_op(*node.op(), inputs, deadline_ns, results);
      case NodeKind::kListConstruct:
        results.push_back(ops::make_list(node.output()->type()->element(), std::move(inputs)));
        return true;
      case NodeKind::kTupleConstruct: {
        const ops::TypePtr& type = node.output()->type();
        results.push_back(make_intrusive<ops::TupleObject>(std::move(inputs), type->name().empty() ? nullptr : type));
        return true;
      }
      case NodeKind::kListUnpack:
        if (inputs[0].is_list()) results = inputs[0].to_list()->items;
        return inputs[0].is_list();
      case NodeKind::kTupleUnpack:
        if (inputs[0].is_tuple()) results = inputs[0].to_tuple()->items;
        return inputs[0].is_tuple();
      case NodeKind::kTupleIndex: {
        if (!inputs[0].is_tuple()) return false;
        const auto& items = inputs[0].to_tuple()->items;
        if (static_cast<size_t>(node.index()) >= items.size()) return false;
        results.push_back(items[static_cast<size_t>(node.index())]);
        return true;
      }
      case NodeKind::kIsInstance:
        for (const ops::TypePtr& type : node.types()) {
          if (!ops::is_instance(inputs[0], *type)) continue;
          results.push_back(true);
          return true;
        }
        results.push_back(false);
        return true;
      default: return false;
    }
  }

  // If folding fails, the run fails again and reports the location in the script.
  static bool evaluate_op(const ops::Op& op, const std::vector<Value>& inputs, int64_t deadline_ns,
                          std::vector<Value>& results) {
    try {
      if (makes_too_much(op, inputs)) return false;
      const CancellationScope time({}, deadline_ns);
      if (!says_what_it_makes(op, inputs) && makes_tensors(op)) {
        const FoldMemory memory;
        std::vector<Value> trial;
        ops::run(op, inputs, trial);
      }
      ops::run(op, inputs, results);
      return true;
    } catch (const Error&) {
      check_work_cancelled();  // the load's own deadline, not that of the fold
      return false;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  static constexpr int64_t kMaxMadeItems = 16 << 20;

  static size_t largest_input(const std::vector<Value>& inputs) {
    size_t max = 1;
    for (const Value& input : inputs) {
      if (input.is_strided() && input.to_tensor().defined()) {
        max = std::max(max, static_cast<size_t>(input.to_tensor().numel()));
      }
    }
    return max;
  }

  static bool is_too_many(std::span<const int64_t> sizes) {
    int64_t items = 1;
    for (int64_t size : sizes) {
      if (__builtin_mul_overflow(items, std::max<int64_t>(size, 1), &items)) return true;
    }
    return items > kMaxMadeItems;
  }

  static bool says_what_it_makes(const ops::Op& op, const std::vector<Value>& inputs) {
    return op.is_view || (op.infer && !ops::has_complex(inputs));
  }
  static bool makes_tensors(const ops::Op& op) {
    return std::ranges::any_of(op.schema.returns, [](const auto& value) { return may_hold_tensor(*value.type); });
  }

  // For texts and lists: each item of one argument may meet each item of the others ("replace", "join"), as often as a
  // number says.
  static bool multiplies(const std::vector<Value>& inputs) {
    std::vector<int64_t> counts;
    for (const Value& input : inputs) {
      if (input.is_int() && input.to_int() != INT64_MAX) counts.push_back(input.to_int());
      if (input.is_string()) counts.push_back(static_cast<int64_t>(input.to_string().size()));
      if (input.is_list()) counts.push_back(static_cast<int64_t>(input.to_list()->items.size()));
    }
    return is_too_many(counts);
  }

  // Whether the result is too large. Compute operators report the size of their result; direct functions do not, so
  // sizes and counts among their arguments ("[0] * n", zeros(sizes)) must be small.
  static bool makes_too_much(const ops::Op& op, const std::vector<Value>& inputs) {
    if (op.is_view) return false;
    if (says_what_it_makes(op, inputs)) {
      double items = 0;
      for (const ops::TensorMeta& meta : op.infer(inputs)) {
        if (is_too_many(meta.sizes)) return true;
        const auto made = static_cast<size_t>(checked_numel(meta.sizes));
        if (made * tensord::size_of(meta.dtype) > kMaxFoldedBytes) return true;
        items += static_cast<double>(made);
      }
      return items * static_cast<double>(largest_input(inputs)) > kMaxFoldWork;
    }
    bool makes_memory = false;
    for (const ops::Argument& returned : op.schema.returns) {
      makes_memory |= returned.type->kind() == TypeKind::kString || AliasAnalysis::is_mutable_type(*returned.type);
    }
    if (!makes_memory) return false;
    if (!makes_tensors(op) && multiplies(inputs)) return true;
    for (const Value& input : inputs) {
      if (input.is_int() && input.to_int() > (1 << 20) && input.to_int() != INT64_MAX) return true;
      if (!input.is_list() || input.to_list()->element->kind() != TypeKind::kInt) continue;
      std::vector<int64_t> sizes;
      for (const Value& item : input.to_list()->items) sizes.push_back(item.is_int() ? item.to_int() : 1);
      if (is_too_many(sizes)) return true;
    }
    return false;
  }

  static bool is_representable(const Value& value) {
    return !value.is_future() && !value.is_dict() && !value.is_object();
  }

  static bool is_view_of_input(const Node& node, const Value& result) {
    if (!result.is_strided()) return false;
    return std::any_of(node.inputs().begin(), node.inputs().end(), [&](const GraphValue* input) {
      const Value& from = constant_of(input);
      return from.is_strided() && from.to_tensor().storage() == result.to_tensor().storage();
    });
  }

  void replace(Node* node, std::vector<Value> results) {
    for (size_t i = 0; i < results.size(); ++i) {
      GraphValue* output = node->output(i);
      // A declared type is more precise than the type of None or of a container's items, but less precise than that of
      // any other value.
      bool keep_type =
          results[i].is_list() || results[i].is_tuple() || !ops::is_subtype(ops::type_of(results[i]), output->type());
      GraphValue* constant = GraphBuilder(node).constant(std::move(results[i]), keep_type ? output->type() : nullptr);
      constant->set_name(output->name());
      made_.insert(constant);
      output->replace_all_uses_with(constant);
    }
    node->destroy();
    changed_ = true;
  }

  Graph& graph_;
  PassContext& context_;
  AliasAnalysis alias_;
  std::unordered_set<const GraphValue*> made_;  // constants made here, which nobody writes
  size_t folded_bytes_ = 0;
  int64_t spent_ns_ = 0;
  bool changed_ = false;
};

}  // namespace

bool propagate_constants(Graph& graph, PassContext& context) { return Folder(graph, context).run(); }

bool fold_conversions(Graph& graph, PassContext& context) {
  if (context.is_for_training || !context.packs) return false;
  return Folder(graph, context).run_conversions();
}

}  // namespace tensord::jit
