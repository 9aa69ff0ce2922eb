#include "core/jit/runtime/inputs/known_inputs.h"

#include <algorithm>
#include <unordered_map>

#include "core/jit/ir/operator_search.h"
#include "core/jit/ir/result_keys.h"
#include "core/jit/passes/packing.h"
#include "core/jit/runtime/inputs/traced.h"
#include "core/jit/runtime/module.h"

namespace tensord::jit {

void Facts::require(const Dim& dim, int64_t size) {
  if (dim.of_input < 0) {
    fails = fails || (dim.size >= 0 && dim.size != size);
    is_complete = is_complete && dim.size >= 0;
    return;
  }
  const auto [place, is_new] = sizes.emplace(dim.of_input, size);
  fails = fails || (!is_new && place->second != size);
}

Facts either(const Facts& a, const Facts& b) {
  if (a.fails || b.fails) return a.fails ? b : a;
  Facts out;
  std::ranges::set_intersection(a.failing, b.failing, std::inserter(out.failing, out.failing.end()));
  for (const auto& [dim, size] : a.sizes) {
    const auto other = b.sizes.find(dim);
    if (other != b.sizes.end() && other->second == size) out.sizes.emplace(dim, size);
  }
  out.weight_dtypes = a.weight_dtypes;
  out.weight_dtypes.insert(b.weight_dtypes.begin(), b.weight_dtypes.end());
  out.is_without_batch = a.is_without_batch || b.is_without_batch;
  out.is_complete = a.is_complete && b.is_complete;
  return out;
}

namespace {

using ops::TypeKind;

// Higher ranks are assumed not to be intended by a model.
constexpr int kMaxRank = 6;
// Larger graphs are not analyzed, because it would delay the load.
constexpr size_t kMaxNodes = 20'000;

// Tracks an input through a graph, assuming a rank, or several, assuming what is known of them.
class InputTrace {
 public:
  InputTrace() = default;
  InputTrace(const GraphValue* input, int rank) {
    Traced& traced = values_[input];
    traced.is_traced = true;
    traced.shape.emplace();
    for (int i = 0; i < rank; ++i) traced.shape->push_back({i, -1});
    traced.dtypes.emplace();
    std::ranges::copy(kRequestDtypes, traced.dtypes->begin());
  }

  // An input with these properties, beside others. At most one of them may be `of_any_dtype`.
  void assume(const GraphValue* input, const KnownInput& known, bool of_any_dtype) {
    Traced& traced = values_[input];
    traced.is_traced = true;
    const std::optional<Dims> sizes = known.rank ? known.shape_of_rank(*known.rank) : std::nullopt;
    if (sizes) {
      traced.shape.emplace();
      for (const int64_t size : *sizes) traced.shape->push_back({-1, size});
    }
    if (known.dtype) traced.dtypes.emplace().fill(*known.dtype);
    if (of_any_dtype) std::ranges::copy(kRequestDtypes, traced.dtypes.emplace().begin());
  }

  // What is known of a value behind run().
  KnownInput known(const GraphValue* value) const {
    KnownInput out;
    const Traced traced = operand(value).traced;
    if (traced.dtypes) out.dtype = only_dtype(*traced.dtypes);
    if (!traced.shape) return out;
    out.rank = static_cast<int>(traced.shape->size());
    for (int i = 0; i < *out.rank; ++i) {
      const Dim& dim = (*traced.shape)[static_cast<size_t>(i)];
      if (dim.size >= 0) out.from_front.emplace(i, dim.size);
    }
    return out;
  }

  Facts run(const Block& block) {
    Facts facts;
    follow(block, facts);
    return facts;
  }

 private:
  void follow(const Block& block, Facts& facts) {
    for (const Node* node = block.first(); node != nullptr && !facts.fails; node = node->next()) {
      check_work_cancelled();
      visit(*node, facts);
    }
  }

  void visit(const Node& node, Facts& facts) {
    switch (node.kind()) {
      case NodeKind::kConstant: return;
      case NodeKind::kOp: return op(node, facts);
      case NodeKind::kIf: return branches(node, facts);
      case NodeKind::kUncheckedCast: return know(node.output(), operand(node.input()).traced, facts);
      case NodeKind::kListConstruct: return list(node, facts);
      default:
        for (const GraphValue* output : node.outputs()) forget(node, output, facts);
    }
  }

  TracedOperand operand(const GraphValue* value) const {
    TracedOperand out;
    out.constant = value->constant();
    const auto found = values_.find(value);
    if (found != values_.end()) out.traced = found->second;
    return out;
  }

  bool comes_from_input(const Node& node) const {
    return std::ranges::any_of(node.inputs(), [&](const GraphValue* v) { return operand(v).traced.is_traced; });
  }

  void know(const GraphValue* value, Traced traced, Facts& facts) {
    if (traced.is_traced && !traced.shape) facts.is_complete = false;
    values_[value] = std::move(traced);
  }

  // Marks a result as unknown but dependent on the input.
  void forget(const Node& node, const GraphValue* output, Facts& facts) {
    Traced traced;
    traced.is_traced = !is_plain(*output->type()) && (comes_from_input(node) || !node.blocks().empty());
    if (traced.is_traced) facts.is_complete = false;
    values_[output] = std::move(traced);
  }

  void list(const Node& node, Facts& facts) {
    Traced traced;
    if (node.output()->type()->kind() == TypeKind::kList &&
        node.output()->type()->element()->kind() == TypeKind::kInt) {
      traced.numbers.emplace();
      for (const GraphValue* item : node.inputs()) traced.numbers->push_back(operand(item).number());
      return know(node.output(), std::move(traced), facts);
    }
    traced.is_traced = comes_from_input(node);
    values_[node.output()] = std::move(traced);
  }

  void op(const Node& node, Facts& facts) {
    if (node.op()->name() == "prim::RaiseException") {
      facts.fails = true;
      return;
    }
    std::vector<TracedOperand> operands;
    for (const GraphValue* input : node.inputs()) operands.push_back(operand(input));
    if (const ops::PackedOp* packed = packed_of(node))
      return know(node.output(), run_packed(*packed, operands, facts), facts);
    if (const std::optional<int64_t> number = number_of(*node.op(), operands)) {
      Traced traced;
      traced.number = number;
      return know(node.output(), std::move(traced), facts);
    }
    if (node.outputs().size() != 1) {
      for (const GraphValue* output : node.outputs()) forget(node, output, facts);
      return;
    }
    if (node.output()->type()->kind() != TypeKind::kTensor) return forget(node, node.output(), facts);
    know(node.output(), trace_call(*node.op(), operands, facts), facts);
  }

  // The one that all runs give that get there.
  static std::optional<DType> only_dtype(const TracedDtypes& dtypes) {
    std::set<DType> all;
    for (const auto& dtype : dtypes) {
      if (dtype) all.insert(*dtype);
    }
    return all.size() == 1 ? std::optional(*all.begin()) : std::nullopt;
  }

  // A number, string or list of numbers, which no operator turns into a tensor that is tracked.
  static bool is_plain(const ops::Type& type) {
    const ops::Type& item = type.kind() == TypeKind::kList ? *type.element() : type;
    switch (item.kind()) {
      case TypeKind::kInt:
      case TypeKind::kFloat:
      case TypeKind::kBool:
      case TypeKind::kNumber:
      case TypeKind::kString:
      case TypeKind::kNone: return true;
      default: return false;
    }
  }

  static Traced unknown(const Traced& source) {
    Traced out;
    out.is_traced = source.is_traced;
    return out;
  }

  static Traced run_packed(const ops::PackedOp& packed, const std::vector<TracedOperand>& operands, Facts& facts) {
    Traced running = operands[1].traced;
    for (const ops::BoundCall& call : packed.calls()) {
      std::vector<TracedOperand> arguments;
      for (size_t i = 0; i < call.arguments.size(); ++i) {
        TracedOperand& argument = arguments.emplace_back();
        const auto number = static_cast<int>(i);
        if (number == call.input) {
          argument.traced = running;
        } else if (number == call.other && operands.size() > 2) {
          argument = operands[2];
        } else {
          argument.constant = &call.arguments[i];
        }
      }
      // The call uses its weights as float32, whatever their stored dtype.
      if (call.widened != 0) return unknown(running);
      running = trace_call(*call.op, arguments, facts);
      if (facts.fails) break;
    }
    return running;
  }

  // Queries of rank and sizes, and arithmetic on their results.
  static std::optional<int64_t> number_of(const ops::Op& op, const std::vector<TracedOperand>& operands) {
    const std::string& name = op.name();
    if (name == "aten::dim" && operands[0].traced.shape) return static_cast<int64_t>(operands[0].traced.shape->size());
    if (operands.empty()) return std::nullopt;
    const std::optional<int64_t> a = operands[0].number();
    if (name == "aten::__not__" && a) return *a == 0;
    const std::optional<int64_t> b = operands.size() == 2 ? operands[1].number() : std::nullopt;
    if (!a || !b) return std::nullopt;
    if (name == "aten::eq") return *a == *b;
    if (name == "aten::ne") return *a != *b;
    if (name == "aten::lt") return *a < *b;
    if (name == "aten::le") return *a <= *b;
    if (name == "aten::gt") return *a > *b;
    if (name == "aten::ge") return *a >= *b;
    if (name == "aten::__and__") return *a & *b;
    if (name == "aten::__or__") return *a | *b;
    return std::nullopt;
  }

  void branches(const Node& node, Facts& facts) {
    const std::optional<int64_t> condition = operand(node.input()).number();
    Facts taken[2] = {facts, facts};
    for (size_t i = 0; i < 2; ++i) {
      taken[i].fails = condition && (*condition != 0) != (i == 0);
      if (!taken[i].fails) follow(*node.blocks()[i], taken[i]);
    }
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      const TracedOperand a = result(node, 0, i), b = result(node, 1, i);
      know(node.output(i), taken[0].fails ? b.traced : taken[1].fails ? a.traced : joined(a.traced, b.traced), facts);
    }
    const bool was_complete = facts.is_complete;
    facts = either(taken[0], taken[1]);
    facts.is_complete = facts.is_complete && was_complete;
  }

  // Numbers are taken as such, because only one side may be a constant.
  TracedOperand result(const Node& node, size_t branch, size_t i) const {
    TracedOperand out = operand(node.blocks()[branch]->outputs()[i]);
    out.traced.number = out.number();
    return out;
  }

  static Traced joined(const Traced& a, const Traced& b) {
    Traced out;
    out.is_traced = a.is_traced || b.is_traced;
    if (a.shape == b.shape) out.shape = a.shape;
    if (a.dtypes == b.dtypes) out.dtypes = a.dtypes;
    if (a.number == b.number) out.number = a.number;
    return out;
  }

  std::unordered_map<const GraphValue*, Traced> values_;
};

// The only dtype that every run accepts, or the intended one among those accepted.
std::optional<DType> needed_dtype(const std::map<int, Facts>& ranks) {
  std::set<DType> taken, weights;
  for (const auto& [rank, facts] : ranks) {
    for (const DType dtype : kRequestDtypes) {
      if (!facts.failing.contains(dtype)) taken.insert(dtype);
    }
    weights.insert(facts.weight_dtypes.begin(), facts.weight_dtypes.end());
  }
  if (taken.size() == 1) return *taken.begin();
  if (taken == std::set<DType>{DType::kInt32, DType::kInt64}) return DType::kInt64;
  // A normalization accepts floating-point numbers other than those of its weights.
  if (weights.size() == 1 && taken.contains(*weights.begin()) && std::ranges::all_of(taken, is_floating))
    return *weights.begin();
  return std::nullopt;
}

// Whether the known sizes are the same when a batch dimension is added in front.
bool is_one_sample_of(const Facts& sample, const Facts& batch) {
  std::map<int, int64_t> shifted;
  for (const auto& [dim, size] : sample.sizes) shifted.emplace(dim + 1, size);
  return shifted == batch.sizes;
}

std::optional<int> needed_rank(const std::map<int, Facts>& ranks) {
  if (ranks.size() == 1) return ranks.begin()->first;
  if (ranks.size() != 2) return std::nullopt;
  const auto& [first, sample] = *ranks.begin();
  const auto& [second, batch] = *std::next(ranks.begin());
  const bool is_either = second == first + 1 && sample.is_without_batch && !batch.is_without_batch;
  if (!is_either || !batch.is_complete || !is_one_sample_of(sample, batch)) return std::nullopt;
  return second;
}

// Sizes that are the same for every rank, counted from one end.
std::map<int, int64_t> common_sizes(const std::map<int, Facts>& ranks, bool from_end) {
  std::optional<std::map<int, int64_t>> common;
  for (const auto& [rank, facts] : ranks) {
    std::map<int, int64_t> sizes;
    for (const auto& [dim, size] : facts.sizes) {
      const int place = from_end ? dim - rank : dim;
      const bool is_shared = !common || (common->contains(place) && common->at(place) == size);
      if (is_shared) sizes.emplace(place, size);
    }
    common = std::move(sizes);
  }
  return common.value_or(std::map<int, int64_t>());
}

KnownInput known_input(const Graph& graph, const GraphValue* input) {
  std::map<int, Facts> ranks;  // ranks with which a run can succeed
  for (int rank = 0; rank <= kMaxRank; ++rank) {
    Facts facts = InputTrace(input, rank).run(*graph.block());
    if (!facts.fails && facts.failing.size() < kRequestDtypeCount) ranks.emplace(rank, std::move(facts));
  }
  KnownInput known;
  if (ranks.empty()) return known;  // no run succeeds, so nothing is known
  known.rank = needed_rank(ranks);
  if (known.rank) std::erase_if(ranks, [&](const auto& it) { return it.first != *known.rank; });
  known.dtype = needed_dtype(ranks);
  known.from_front = common_sizes(ranks, false);
  known.from_end = common_sizes(ranks, true);
  return known;
}

size_t count_nodes(const Block& block) {
  size_t count = 0;
  for_each_node(block, [&](const Node&) { ++count; });
  return count;
}

bool reshapes(const Block& block) {
  bool found = false;
  for_each_node(block, [&](const Node& node) { found = found || (node.op() && changes_shape(*node.op())); });
  return found;
}

bool is_one_output(const ops::Type& type) {
  switch (type.kind()) {
    case TypeKind::kTensor:
    case TypeKind::kInt:
    case TypeKind::kFloat:
    case TypeKind::kBool:
    case TypeKind::kString: return true;
    default: return false;
  }
}

bool can_trace(const Block& block) { return count_nodes(block) <= kMaxNodes && !reshapes(block); }

}  // namespace

std::optional<Dims> KnownInput::shape_of_rank(int rank) const {
  Dims out(static_cast<size_t>(rank), -1);
  const auto put = [&](int place, int64_t size) {
    if (place < 0 || place >= rank) return false;
    int64_t& mine = out[static_cast<size_t>(place)];
    if (mine >= 0 && mine != size) return false;
    mine = size;
    return true;
  };
  for (const auto& [place, size] : from_front) {
    if (!put(place, size)) return std::nullopt;
  }
  for (const auto& [place, size] : from_end) {
    if (!put(place + rank, size)) return std::nullopt;
  }
  return out;
}

std::vector<KnownInput> find_known_inputs(const Method& method) {
  const Graph& graph = method.graph();
  const size_t count = method.schema().arguments.size();
  std::vector<KnownInput> known(count);
  if (!can_trace(*graph.block())) return known;
  const size_t first = graph.inputs().size() - count;  // self comes first
  for (size_t i = 0; i < count; ++i) {
    const GraphValue* input = graph.inputs()[first + i];
    if (input->type()->kind() == TypeKind::kTensor) known[i] = known_input(graph, input);
  }
  return known;
}

std::vector<KnownInput> find_known_results(const Method& method, const std::vector<KnownInput>& inputs) {
  const Graph& graph = method.graph();
  const std::vector<const GraphValue*> results = result_values(graph);
  // Each has to be one output.
  if (!std::ranges::all_of(results, [](const GraphValue* value) { return is_one_output(*value->type()); })) return {};
  std::vector<KnownInput> known(results.size());
  if (!can_trace(*graph.block())) return known;
  InputTrace trace;
  const size_t first = graph.inputs().size() - inputs.size();
  size_t open = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    open += graph.inputs()[first + i]->type()->kind() == TypeKind::kTensor && !inputs[i].dtype ? 1 : 0;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const GraphValue* input = graph.inputs()[first + i];
    if (input->type()->kind() == TypeKind::kTensor) trace.assume(input, inputs[i], !inputs[i].dtype && open == 1);
  }
  if (trace.run(*graph.block()).fails) return known;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i]->type()->kind() == TypeKind::kTensor) known[i] = trace.known(results[i]);
  }
  return known;
}

}  // namespace tensord::jit
