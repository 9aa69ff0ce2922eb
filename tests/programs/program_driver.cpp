// Runs programs in given modes and reports differences from PyTorch's results: one JSON request a line on standard
// input, one JSON response a line on standard output. Only run.py uses it.
//
// {"archive": PATH, "calls": PATH, "modes": [{"name": TEXT, …}]}; the fields of a mode are those that read_mode reads.
// Response: {"problems": [{"mode", "kind", "text"}], "passes": [names of those that changed the program], "runs": N}.
// Kinds: "wrong" (a different value), "error" (PyTorch has none), "no error", "refused" (UNIMPLEMENTED), "unstable"
// (bits differ from the mode named by "same_as", or from its own first round).
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/base/log.h"
#include "core/base/parallel.h"
#include "core/jit/archive/torch_file.h"
#include "core/jit/passes/pipeline.h"
#include "core/jit/runtime/load_flags.h"
#include "core/jit/runtime/module.h"
#include "tests/programs/results.h"

namespace tensord::programs {
namespace {

using jit::LoadOptions;
using Json = nlohmann::json;

// A request that exceeds these limits ends the process, which the caller reports as a hang. The limit on CPU time does
// not depend on other load; the limit on elapsed time does.
constexpr unsigned kMaxComputedS = 120, kMaxAwaitedS = 900;
void limit_time(unsigned computed_s, unsigned awaited_s) {
  const itimerval computed{.it_interval = {}, .it_value = {.tv_sec = computed_s, .tv_usec = 0}};
  setitimer(ITIMER_PROF, &computed, nullptr);
  alarm(awaited_s);
}

struct Call {
  std::string method;
  std::vector<Value> arguments;
  std::string error;  // "": none
  Value expected;     // (result, arguments afterwards, buffers afterwards)
  std::map<std::string, std::vector<Tolerances::Leaf>> tolerances;  // by precision
};

struct Mode {
  std::string name, same_as, precision = "f32";
  LoadOptions options;
  int threads = 1;
  bool is_again =
      false;  // a second round of calls with the same frame, after the results of the first were returned to it
  bool is_background = false;  // another thread builds the plans meanwhile
  bool is_lent = false;        // arguments are shared with other readers, so calls write to copies
};

struct Problem {
  std::string kind, text;
};

// The result of one call.
struct Outcome {
  std::string error;
  ErrorCode code = ErrorCode::kInternal;
  Value found;
};

const Value& field(const Value& record, const char* name) {
  const auto index = record.to_dict()->find(Value(name));
  check(index >= 0, "no field ", name);
  return record.to_dict()->items()[static_cast<size_t>(index)].second;
}

std::vector<Tolerances::Leaf> leaves_of(const Tensor& table) {
  std::vector<Tolerances::Leaf> leaves;
  const double* values = table.data<double>();
  for (int64_t i = 0; i + 1 < table.numel(); i += 2) leaves.push_back({values[i], values[i + 1]});
  return leaves;
}

std::vector<Call> load_calls(const std::string& path) {
  std::vector<Call> calls;
  for (const Value& record : items_of(jit::load_torch_file(path))) {
    Call call{field(record, "method").to_string(),
              items_of(field(record, "arguments")),
              field(record, "error").to_string(),
              field(record, "expected"),
              {}};
    for (const auto& [name, table] : field(record, "tolerances").to_dict()->items()) {
      call.tolerances[name.to_string()] = leaves_of(table.to_tensor().contiguous());
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

Mode read_mode(const Json& json) {
  Mode mode;
  mode.name = json.at("name");
  mode.same_as = json.value("same_as", "");
  mode.precision = json.value("precision", "f32");
  mode.threads = json.value("threads", 1);
  mode.is_again = json.value("again", false);
  mode.is_background = json.value("background", false);
  mode.is_lent = json.value("lent", false);
  mode.options.optimize = json.value("optimize", true);
  mode.options.plan.is_enabled = json.value("plan", true);
  mode.options.plan.poison = json.value("poison", false);
  mode.options.precision = jit::parse_precision(mode.precision);
  for (const std::string name : json.value("disabled", Json::array())) jit::disable_pass(mode.options, name);
  for (const std::string text : json.value("limits", Json::array())) jit::limit_pass(mode.options, text);
  return mode;
}

Value buffers_of(const jit::Module& module) {
  std::vector<Value> tensors;
  for (const auto& [name, tensor] : module.named_buffers()) tensors.emplace_back(tensor);
  return ops::make_list(ops::tensor_type(), std::move(tensors));
}

Value tuple_of(std::vector<Value> items) {
  std::vector<ops::TypePtr> types;
  return make_intrusive<ops::TupleObject>(std::move(items), nullptr);
}

class Runner {
 public:
  explicit Runner(const Json& request) : archive_(request.at("archive")), calls_(load_calls(request.at("calls"))) {}

  Json run(const Json& modes) {
    Json problems = Json::array();
    for (const Json& json : modes) {
      const Mode mode = read_mode(json);
      const auto problem = run(mode);
      if (problem) problems.push_back({{"mode", mode.name}, {"kind", problem->kind}, {"text", problem->text}});
    }
    return {{"problems", problems}, {"passes", passes_}, {"runs", runs_}};
  }

 private:
  std::optional<Problem> run(const Mode& mode) {
    set_thread_budget(mode.threads);
    LoadOptions options = mode.options;
    options.passes.observer = [&](const std::string& pass, const jit::Graph&) {
      if (!pass.empty()) passes_.insert(pass);
    };
    std::vector<Outcome> outcomes;
    try {
      const auto module = jit::Module::load(archive_, options);
      jit::Frame frame;
      const jit::RunOptions run_options{.plans_in_background = mode.is_background};
      outcomes = run_calls(*module, frame, mode.is_lent, run_options);
      if (mode.is_again && !changes_state(*module)) {
        if (auto problem = compare(run_calls(*module, frame, mode.is_lent, run_options), outcomes, "its second round"))
          return problem;
      }
    } catch (const Error& error) {
      // The archive cannot be used at all: every call fails.
      outcomes = {Outcome{error.what(), error.code(), {}}};
    }
    if (!mode.same_as.empty()) return compare(outcomes, outcomes_.at(mode.same_as), mode.same_as);
    auto problem = check_outcomes(outcomes, mode);
    outcomes_[mode.name] = std::move(outcomes);
    return problem;
  }

  bool changes_state(const jit::Module& module) const {
    return std::any_of(calls_.begin(), calls_.end(),
                       [&](const Call& call) { return module.method(call.method).changes_state(); });
  }

  // Up to the first error.
  std::vector<Outcome> run_calls(const jit::Module& module, jit::Frame& frame, bool is_lent,
                                 const jit::RunOptions& options) {
    std::vector<Outcome> outcomes;
    for (const Call& call : calls_) {
      ++runs_;
      Outcome& outcome = outcomes.emplace_back();
      try {
        std::vector<Value> arguments = Copier()(call.arguments);
        const Value lender = tuple_of(is_lent ? arguments : std::vector<Value>());
        if (is_lent) arguments = Copier(Copier::Tensors::kLent)(arguments);
        // Like PyTorch's caller, which keeps its own lists and dictionaries: a call gets copies of them with the same
        // tensors.
        const std::vector<Value> handed = Copier(Copier::Tensors::kShared)(arguments);
        Value result = module.method(call.method).run(frame, handed, options);
        outcome.found = Copier()(tuple_of({result, tuple_of(std::move(arguments)), buffers_of(module)}));
        frame.recycle(std::move(result));
        if (is_lent && !is_identical(lender, tuple_of(call.arguments))) outcome.error = "it writes what it was lent";
      } catch (const Error& error) {
        outcome.error = error.what();
        outcome.code = error.code();
        return outcomes;
      }
    }
    return outcomes;
  }

  std::optional<Problem> check_outcomes(const std::vector<Outcome>& outcomes, const Mode& mode) const {
    for (size_t i = 0; i < calls_.size(); ++i) {
      const Call& call = calls_[i];
      const std::string place = concat("call ", i, ": ");
      const Outcome& outcome = outcomes.at(i);
      if (!outcome.error.empty()) {
        if (!call.error.empty()) return std::nullopt;
        return Problem{outcome.code == ErrorCode::kUnimplemented ? "refused" : "error", place + outcome.error};
      }
      if (!call.error.empty()) return Problem{"no error", place + "PyTorch says " + call.error};
      Tolerances tolerances{call.tolerances.at(mode.precision)};
      const std::string problem = difference(outcome.found, call.expected, tolerances);
      if (!problem.empty()) return Problem{"wrong", place + problem};
    }
    return std::nullopt;
  }

  static std::optional<Problem> compare(const std::vector<Outcome>& outcomes, const std::vector<Outcome>& expected,
                                        const std::string& what) {
    for (size_t i = 0; i < std::min(outcomes.size(), expected.size()); ++i) {
      const bool is_same = outcomes[i].error.empty() == expected[i].error.empty() &&
                           (!outcomes[i].error.empty() || is_identical(outcomes[i].found, expected[i].found));
      if (is_same) continue;
      Tolerances exact;
      for (int leaf = 0; leaf < 10000; ++leaf) exact.leaves.push_back({0, 0});
      const std::string problem = outcomes[i].error.empty() && expected[i].error.empty()
                                      ? difference(outcomes[i].found, expected[i].found, exact)
                                      : outcomes[i].error;
      return Problem{"unstable", concat("call ", i, " beside ", what, ": ", problem)};
    }
    return std::nullopt;
  }

  const std::string archive_;
  const std::vector<Call> calls_;
  std::map<std::string, std::vector<Outcome>> outcomes_;  // by mode
  std::set<std::string> passes_;
  int64_t runs_ = 0;
};

Json answer(const std::string& line) {
  const Json request = Json::parse(line);
  if (request.contains("pass_names")) return {{"passes", jit::pass_names()}};
  Runner runner(request);
  return runner.run(request.at("modes"));
}

}  // namespace
}  // namespace tensord::programs

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    tensord::programs::limit_time(tensord::programs::kMaxComputedS, tensord::programs::kMaxAwaitedS);
    std::string text;
    try {
      text = tensord::programs::answer(line).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    } catch (const std::exception& error) {
      text = nlohmann::json{{"failure", error.what()}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    }
    tensord::programs::limit_time(0, 0);
    std::cout << text << std::endl;
  }
  return 0;
}
