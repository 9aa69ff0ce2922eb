// torch.ops.higher_order: operators that take graphs as arguments.

#include "core/base/error.h"
#include "core/jit/importers/pt2/graph_reader.h"

namespace tensord::jit::pt2 {

using ops::TypeKind;

namespace {

constexpr std::string_view kPrefix = "torch.ops.higher_order.";

}  // namespace

// One call.
class HigherOrder {
 public:
  using Values = GraphReader::Values;
  using Scope = GraphReader::Scope;

  HigherOrder(GraphReader& reader, const std::string& target, const Json& node, Scope& scope)
      : reader_(reader),
        builder_(reader.builder()),
        name_(target.substr(kPrefix.size())),
        node_(node),
        scope_(scope),
        inputs_(array_member(node, "inputs", name_)) {}

  void run() {
    if (name_ == "cond") return define(cond());
    if (name_ == "while_loop") return define(while_loop());
    if (name_ == "map_impl" || name_ == "map") return define(map());
    if (name_ == "scan") return define(scan());
    if (name_ == "associative_scan") return define(associative_scan());
    if (name_ == "wrap_with_set_grad_enabled") return define(with_grad_mode());
    if (name_ == "wrap_with_autocast") return define(with_autocast());
    if (name_ == "invoke_subgraph") return define(call(graph(0), values_from(2)));
    if (name_ == "run_const_graph") return define(call(graph(0), values_from(1)));
    if (name_ == "strict_mode" || name_ == "tag_activation_checkpoint") return define(call(graph(0), values_from(1)));
    fail(ErrorCode::kUnimplemented, "higher-order operator ", name_, " is not supported");
  }

 private:
  const Json& input(size_t index) const {
    if (index >= inputs_.size()) fail(ErrorCode::kDataLoss, name_, ": argument ", index, " is missing");
    return member(inputs_[index], "arg", name_);
  }

  const Json& graph(size_t index) const {
    const auto [kind, value] = union_case(input(index), name_);
    if (kind != "as_graph") fail(ErrorCode::kDataLoss, name_, ": argument ", index, " is ", kind, ", not a graph");
    return member(value, "graph", name_);
  }

  // A single argument, or the items of a list argument.
  Values values(size_t index) {
    GraphValue* value = reader_.argument(input(index), scope_);
    if (value->type()->kind() != TypeKind::kList) return {value};
    const auto items = value->node()->inputs();
    return Values(items.begin(), items.end());
  }

  Values values_from(size_t first) {
    Values all;
    for (size_t i = first; i < inputs_.size(); ++i) {
      for (GraphValue* value : values(i)) all.push_back(value);
    }
    return all;
  }

  // Inlines the body with these inputs and returns its results.
  Values call(const Json& body, const Values& given) {
    const Json& formals = array_member(body, "inputs", name_);
    if (formals.size() != given.size()) {
      fail(ErrorCode::kDataLoss, name_, ": a body takes ", formals.size(), " values, but is given ", given.size());
    }
    Scope scope;
    for (size_t i = 0; i < given.size(); ++i) {
      const auto [kind, value] = union_case(formals[i], name_);
      if (kind == "as_tensor") scope.emplace(string_member(value, "name", name_), given[i]);
      if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
        scope.emplace(string_member(value, "as_name", name_), given[i]);
      }
    }
    reader_.add_nodes(body, scope);
    Values results;
    for (const Json& output : array_member(body, "outputs", name_)) results.push_back(reader_.argument(output, scope));
    return results;
  }

  GraphValue* as_condition(GraphValue* value) { return reader_.as_number(value, ops::bool_type()); }
  GraphValue* only(const Values& results) const {
    if (results.size() != 1) fail(ErrorCode::kDataLoss, name_, ": a condition has ", results.size(), " results");
    return results[0];
  }

  void define(const Values& results) {
    size_t next = 0;
    const auto take = [&]() -> GraphValue* {
      if (next >= results.size()) fail(ErrorCode::kDataLoss, name_, ": has more results than its body");
      return results[next++];
    };
    for (const Json& output : array_member(node_, "outputs", name_)) {
      const auto [kind, value] = union_case(output, name_);
      if (kind == "as_tensors" && value.is_array()) {
        for (const Json& item : value) reader_.name_output(Json{{"as_tensor", item}}, take(), scope_);
      } else {
        reader_.name_output(output, take(), scope_);
      }
    }
  }

  Values cond() {
    GraphValue* predicate = as_condition(reader_.argument(input(0), scope_));
    const Values operands = values(3);
    Node* node = builder_.add(NodeKind::kIf, std::span<GraphValue* const>(&predicate, 1));
    Values branches[2];
    for (const size_t i : {0, 1}) {
      Block* block = node->add_block();
      const GraphBuilder::Inside inside(builder_, block);
      branches[i] = call(graph(i + 1), operands);
      for (GraphValue* value : branches[i]) block->add_output(value);
    }
    if (branches[0].size() != branches[1].size()) fail(ErrorCode::kDataLoss, "cond: the branches differ in results");
    Values results;
    for (size_t i = 0; i < branches[0].size(); ++i) {
      const ops::TypePtr type = ops::unify(branches[0][i]->type(), branches[1][i]->type());
      if (!type) fail(ErrorCode::kUnimplemented, "cond: result ", i, " has another type in each branch");
      results.push_back(node->add_output(type));
    }
    return results;
  }

  // A loop of `trips` iterations, or while `first` and then the body's first result are true. `body` gets the iteration
  // number and the carried values, and returns their new values (after the condition, if there is one).
  template <class Body>
  Values loop(GraphValue* trips, GraphValue* first, const Values& carried, Body body) {
    Values inputs{trips ? trips : builder_.constant(INT64_MAX), first ? first : builder_.constant(true)};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    Node* node = builder_.add(NodeKind::kLoop, inputs);
    Block* block = node->add_block();
    GraphValue* round = block->add_input(ops::int_type());
    Values inner;
    for (const GraphValue* value : carried) inner.push_back(block->add_input(value->type()));
    const GraphBuilder::Inside inside(builder_, block);
    Values next = body(round, inner);
    if (!first) next.insert(next.begin(), builder_.constant(true));
    check_internal(next.size() == carried.size() + 1, name_, ": the body gives another number of values");
    for (size_t i = 0; i < carried.size(); ++i) {
      if (!ops::same_type(next[i + 1]->type(), carried[i]->type())) {
        fail(ErrorCode::kDataLoss, name_, ": value ", i, " that is carried changes its type");
      }
    }
    for (GraphValue* value : next) block->add_output(value);
    Values results;
    for (const GraphValue* value : carried) results.push_back(node->add_output(value->type()));
    return results;
  }

  static Values joined(Values first, const Values& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }

  Values while_loop() {
    const Values carried = values(2);
    const Values more = values(3);
    GraphValue* first = as_condition(only(call(graph(0), joined(carried, more))));
    return loop(nullptr, first, carried, [&](GraphValue*, const Values& inner) {
      Values next = call(graph(1), joined(inner, more));
      next.insert(next.begin(), as_condition(only(call(graph(0), joined(next, more)))));
      return next;
    });
  }

  GraphValue* row(GraphValue* tensor, GraphValue* index) {
    return builder_.op("aten::select.int", {tensor, builder_.constant(0), index});
  }
  GraphValue* length(GraphValue* tensor) { return builder_.op("aten::size.int", {tensor, builder_.constant(0)}); }

  Values empty_lists(size_t count) {
    Values lists;
    for (size_t i = 0; i < count; ++i) lists.push_back(builder_.list(ops::tensor_type(), Values()));
    return lists;
  }
  void append(const Values& lists, std::span<GraphValue* const> rows) {
    for (size_t i = 0; i < lists.size(); ++i) builder_.op("aten::append.t", {lists[i], rows[i]});
  }
  Values stacked(const Values& lists) {
    Values out;
    for (GraphValue* rows : lists) out.push_back(builder_.op("aten::stack", {rows, builder_.constant(0)}));
    return out;
  }
  size_t result_count(const Json& body) const { return array_member(body, "outputs", name_).size(); }

  Values rows_of(const Values& tensors, GraphValue* index) {
    Values rows;
    for (GraphValue* tensor : tensors) rows.push_back(row(tensor, index));
    return rows;
  }

  Values map() {
    const Values xs = values(1);
    const Values more = values(2);
    if (xs.empty()) fail(ErrorCode::kDataLoss, "map: there is nothing to go over");
    const Values lists = empty_lists(result_count(graph(0)));
    loop(length(xs[0]), nullptr, {}, [&](GraphValue* round, const Values&) {
      append(lists, call(graph(0), joined(rows_of(xs, round), more)));
      return Values();
    });
    return stacked(lists);
  }

  // scan in PyTorch 2.6 has the dimension and the direction before the other arguments.
  size_t first_after_direction() const {
    const auto [dim_kind, dim] = union_case(input(3), name_);
    if (dim_kind != "as_int") return 3;
    const auto [reverse_kind, reverse] = union_case(input(4), name_);
    if (dim != 0) fail(ErrorCode::kUnimplemented, "scan of PyTorch 2.6 over another dimension than 0");
    if (reverse_kind != "as_bool" || reverse != false)
      fail(ErrorCode::kUnimplemented, "scan of PyTorch 2.6 in reverse");
    return 5;
  }

  Values scan() {
    const Values init = values(1), xs = values(2);
    const Values more = inputs_.size() > 3 ? values_from(first_after_direction()) : Values();
    if (xs.empty()) fail(ErrorCode::kUnimplemented, "scan: there is nothing to go over");
    const size_t results = result_count(graph(0));
    if (results < init.size()) fail(ErrorCode::kDataLoss, "scan: the body gives less than it carries");
    const Values lists = empty_lists(results - init.size());
    const Values last = loop(length(xs[0]), nullptr, init, [&](GraphValue* round, const Values& inner) {
      const Values got = call(graph(0), joined(joined(inner, rows_of(xs, round)), more));
      append(lists, std::span<GraphValue* const>(got).subspan(init.size()));
      return Values(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(init.size()));
    });
    return joined(last, stacked(lists));
  }

  // Evaluated from left to right: the operator is associative, so the order does not matter.
  Values associative_scan() {
    const Values xs = values(1);
    const Values more = values(2);
    if (xs.empty()) fail(ErrorCode::kDataLoss, "associative_scan: there is nothing to go over");
    const Values first = rows_of(xs, builder_.constant(0));
    const Values lists = empty_lists(xs.size());
    append(lists, first);
    GraphValue* rounds = builder_.op("aten::sub.int", {length(xs[0]), builder_.constant(1)});
    loop(rounds, nullptr, first, [&](GraphValue* round, const Values& inner) {
      GraphValue* index = builder_.op("aten::add.int", {round, builder_.constant(1)});
      Values next = call(graph(0), joined(joined(inner, rows_of(xs, index)), more));
      if (next.size() != lists.size())
        fail(ErrorCode::kDataLoss, "associative_scan: the body gives another number of values");
      append(lists, next);
      return next;
    });
    return stacked(lists);
  }

  Values detached(Values given) {
    for (GraphValue*& value : given) {
      if (value->type()->kind() == TypeKind::kTensor) value = builder_.op("aten::detach", {value});
    }
    return given;
  }

  // With gradients disabled, nothing in the body may be recorded, so its inputs are detached.
  Values with_grad_mode() {
    const auto [kind, value] = union_case(input(0), name_);
    if (kind != "as_bool") fail(ErrorCode::kUnimplemented, name_, ": the mode is not a constant");
    const bool is_on = to_bool(value, name_);
    if (!reader_.records_) return call(graph(1), values_from(2));
    if (is_on && reader_.is_in_no_grad_) {
      fail(ErrorCode::kUnimplemented, "enable_grad inside of no_grad is not supported in training");
    }
    if (is_on) return call(graph(1), values_from(2));
    const bool before = std::exchange(reader_.is_in_no_grad_, true);
    Values results = call(graph(1), detached(values_from(2)));
    reader_.is_in_no_grad_ = before;
    return results;
  }

  // Arguments: (device type, dtype, enabled, cache, body, values…)
  Values with_autocast() {
    const std::string device = to_text(union_case(input(0), name_).value, name_);
    const auto [kind, value] = union_case(input(2), name_);
    const bool is_on = kind != "as_bool" || to_bool(value, name_);
    if (is_on && device == "cpu") fail(ErrorCode::kUnimplemented, "autocast on the CPU is not supported");
    return call(graph(4), values_from(5));
  }

  GraphReader& reader_;
  GraphBuilder& builder_;
  std::string name_;
  const Json& node_;
  Scope& scope_;
  const Json& inputs_;
};

bool is_higher_order(const std::string& target) { return target.starts_with(kPrefix); }

void add_higher_order(GraphReader& reader, const std::string& target, const Json& node, GraphReader::Scope& scope) {
  HigherOrder(reader, target, node, scope).run();
}

}  // namespace tensord::jit::pt2
