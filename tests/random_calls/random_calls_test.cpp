// Random operator calls (make_calls.py), compared with PyTorch's results: eagerly, and as graphs of one call,
// interpreted and planned, with all tensors as inputs and with all but the first as constants. TENSORD_RANDOM_CALLS
// names the file. With TENSORD_GUARD=1 the memory of each tensor is guarded (core/tensor/memory/memory_checks.h).
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <functional>
#include <optional>

#include "core/base/parallel.h"
#include "core/jit/ir/verify.h"
#include "core/jit/passes/pipeline.h"
#include "core/jit/runtime/interpreter.h"
#include "core/jit/runtime/signature.h"
#include "tests/ops/op_cases.h"

namespace tensord::jit::random_calls_test {
namespace {

using namespace op_cases;

char running[256];  // the current call, for crash reports

void say_and_die(int signal) {
  constexpr char kBefore[] = "crash in: ";
  (void)!write(STDERR_FILENO, kBefore, sizeof(kBefore) - 1);
  (void)!write(STDERR_FILENO, running, strlen(running));
  (void)!write(STDERR_FILENO, "\n", 1);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void announce(const std::string& label, const char* way) {
  std::snprintf(running, sizeof(running), "%s, %s", label.c_str(), way);
}

// A call and the activations after it.
struct Record {
  std::string label;
  const ops::Op* op;
  std::vector<Value> arguments;
  std::vector<std::pair<const ops::Op*, std::vector<Value>>> then;  // arguments after the first
  std::vector<Value> expected;
  std::string error;
  Tolerance tolerance;
};

// Null if we do not have this operator.
std::optional<Record> read(const Value& record) {
  Record out;
  out.label = field(record, "label").to_string();
  out.op = ops::find_op(field(record, "op").to_string());
  if (!out.op) return std::nullopt;
  out.arguments = items(field(record, "args"));
  for (const Value& step : items(field(record, "then"))) {
    const std::vector<Value>& parts = items(step);
    const ops::Op* op = ops::find_op(parts[0].to_string());
    check_internal(op != nullptr, parts[0].to_string(), " is not there");
    out.then.emplace_back(op, std::vector<Value>(parts.begin() + 1, parts.end()));
    out.label += concat(", ", parts[0].to_string());
  }
  out.expected = items(field(record, "results"));
  out.error = field(record, "error").to_string();
  out.tolerance = {field(record, "rtol").to_float(), field(record, "atol").to_float()};
  return out;
}

std::vector<Value> run_eagerly(const Record& record) {
  std::vector<Value> results = ops::run(*record.op, ops::bind(*record.op, copy_all(record.arguments)));
  for (const auto& [op, rest] : record.then) {
    std::vector<Value> arguments{results.at(0)};
    arguments.insert(arguments.end(), rest.begin(), rest.end());
    results = ops::run(*op, ops::bind(*op, arguments));
  }
  return results;
}

// The record as a graph. Tensors from number `inputs` on are constants.
class OneCall {
 public:
  OneCall(const Record& record, size_t inputs) : max_inputs_(inputs) {
    Block* const body = graph_->block();
    Node* node = add_node(*record.op, ops::bind(*record.op, copy_all(record.arguments)), nullptr);
    for (const auto& [op, rest] : record.then) {
      std::vector<Value> arguments{Value(Tensor::meta(Dims{1}, DType::kFloat32))};
      arguments.insert(arguments.end(), rest.begin(), rest.end());
      node = add_node(*op, ops::bind(*op, arguments), node->output());
    }
    if (node->outputs().size() == 1) {
      body->add_output(node->output());
      return;
    }
    std::vector<GraphValue*> results(node->outputs().begin(), node->outputs().end());
    std::vector<ops::TypePtr> types;
    for (const GraphValue* result : results) types.push_back(result->type());
    Node* const tuple = graph_->create(NodeKind::kTupleConstruct, results);
    body->add_output(tuple->add_output(ops::tuple_type(types)));
    tuple->append_to(body);
  }

  std::unique_ptr<Graph>& graph() { return graph_; }
  // Fresh copies, which a run may move from.
  std::vector<Value> arguments() const { return copy_all(inputs_); }

 private:
  GraphValue* value_of(const Value& value) {
    if (value.is_tensor() && inputs_.size() < max_inputs_) {
      inputs_.push_back(value);
      return graph_->block()->add_input(ops::type_of(value));
    }
    if (value.is_list() && !items(value).empty() && items(value)[0].is_tensor()) {
      std::vector<GraphValue*> parts;
      for (const Value& item : items(value)) parts.push_back(value_of(item));
      Node* const list = graph_->create(NodeKind::kListConstruct, parts);
      list->append_to(graph_->block());
      return list->add_output(ops::type_of(value));
    }
    // All empty lists among arguments are lists of ints.
    const bool is_empty = value.is_list() && items(value).empty();
    Node* const constant = graph_->create_constant(is_empty ? Value(ops::make_int_list(Dims{})) : value);
    constant->append_to(graph_->block());
    return constant->output();
  }

  Node* add_node(const ops::Op& op, const std::vector<Value>& arguments, GraphValue* first) {
    std::vector<GraphValue*> values;
    for (size_t i = 0; i < arguments.size(); ++i) values.push_back(i == 0 && first ? first : value_of(arguments[i]));
    Node* const node = graph_->create(op, values);
    node->append_to(graph_->block());
    return node;
  }

  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
  size_t max_inputs_;
  std::vector<Value> inputs_;
};

std::vector<Value> results_of(const Value& result, bool is_tuple) {
  return is_tuple && result.is_tuple() ? result.to_tuple()->items : std::vector<Value>{result};
}

// Runs twice on the same frame, as a worker would; returns the second results.
std::vector<Value> run_program(const Program& program, const OneCall& call, bool is_tuple) {
  Frame frame;
  Value result;
  for (int i = 0; i < 2; ++i) {
    std::vector<Value> arguments = call.arguments();
    result = Interpreter(frame, nullptr).run(program, arguments);
  }
  return results_of(result, is_tuple);
}

std::vector<Value> run_graph(const Record& record, size_t inputs, bool is_planned) {
  OneCall call(record, inputs);
  verify(*call.graph());
  PassContext context;
  if (inputs < SIZE_MAX) run_pipeline(call.graph(), context, {}, inference_pipeline());
  const bool is_tuple = record.expected.size() != 1 || record.op->schema.returns.size() > 1;
  if (!is_planned) return run_program(*Program::compile(*call.graph(), "call"), call, is_tuple);
  specialize_inputs(*call.graph(), call.arguments());
  run_pipeline(call.graph(), context, {}, plan_pipeline());
  ops::PackStore packs;
  PlanSettings settings;
  settings.threads = thread_budget();
  settings.packs = &packs;
  return run_program(*Program::compile(*call.graph(), "call", settings), call, is_tuple);
}

struct Way {
  const char* name;
  std::function<std::vector<Value>(const Record&)> run;
  bool is_graph = true;
};

const std::vector<Way>& ways() {
  static const std::vector<Way> all{
      {"eager", run_eagerly, false},
      {"interpreted", [](const Record& r) { return run_graph(r, SIZE_MAX, false); }},
      {"planned", [](const Record& r) { return run_graph(r, SIZE_MAX, true); }},
      {"interpreted, weights constant", [](const Record& r) { return run_graph(r, 1, false); }},
      {"planned, weights constant", [](const Record& r) { return run_graph(r, 1, true); }},
  };
  return all;
}

// "" if everything is correct.
std::string check_way(const Record& record, const Way& way) {
  try {
    const std::vector<Value> results = way.run(record);
    // We may accept calls that PyTorch refuses; they only must do no harm.
    return record.error.empty() ? compare_items(results, record.expected, record.tolerance) : "";
  } catch (const Error& error) {
    return record.error.empty() ? concat("failed: ", error.what()) : "";
  }
}

TEST(RandomCalls, EqualPyTorch) {
  const char* const file = std::getenv("TENSORD_RANDOM_CALLS");
  ASSERT_TRUE(file) << "set TENSORD_RANDOM_CALLS to the file that tests.random_calls.make_calls wrote";
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL}) std::signal(signal, say_and_die);
  const Value records = load_torch_file(file);
  const GradModeGuard guard(GradMode{false, true});
  size_t calls = 0;
  for (const Value& value : items(records)) {
    const std::optional<Record> record = read(value);
    if (!record) continue;
    ++calls;
    set_thread_budget(calls % 2 == 0 ? 1 : 3);
    for (const Way& way : ways()) {
      if (way.is_graph && !field(value, "in_graph").to_bool()) continue;
      announce(record->label, way.name);
      const std::string problem = check_way(*record, way);
      EXPECT_EQ(problem, "") << record->label << ", " << way.name;
      if (!problem.empty()) break;
    }
  }
  std::printf("%zu calls\n", calls);
  EXPECT_GT(calls, items(records).size() * 9 / 10) << "operators are missing";
}

}  // namespace
}  // namespace tensord::jit::random_calls_test
