// Runs the files of tests/jit/passes: each has cases of a graph, the passes to run, and the expected graph. With
// TENSORD_UPDATE_EXPECTATIONS=1 the expected graphs are overwritten with the actual ones; read the difference before
// you commit it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <new>
#include <sstream>
#include <stdexcept>

#include "core/base/error.h"
#include "core/jit/ir/text.h"
#include "core/jit/ir/verify.h"
#include "core/jit/passes/passes.h"
#include "core/jit/passes/peephole.h"
#include "core/jit/passes/pipeline.h"
#include "tests/support/places.h"

namespace tensord::jit::passes_test {
namespace {

namespace fs = std::filesystem;

struct Case {
  std::string comment;  // lines before the header
  std::string name;
  std::vector<std::string> passes;
  std::string shapes;  // as written
  std::string input, expected;
};

// "float32[2, 3]; int64[4]": the known shapes of the graph's inputs; "-" for unknown.
void set_shapes(Graph& graph, const std::string& text) {
  std::stringstream items(text);
  size_t input = 0;
  for (std::string item; std::getline(items, item, ';'); ++input) {
    item.erase(std::remove(item.begin(), item.end(), ' '), item.end());
    const size_t open = item.find('[');
    if (open == std::string::npos) continue;
    Dims sizes;
    std::stringstream numbers(item.substr(open + 1, item.size() - open - 2));
    for (std::string number; std::getline(numbers, number, ',');) sizes.push_back(std::stoll(number));
    for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kInt64, DType::kBool}) {
      if (item.substr(0, open) == name_of(dtype)) graph.inputs()[input]->set_known(Tensor::meta(sizes, dtype));
    }
  }
}

// "case NAME: pass, pass", or "case NAME (float32[2, 3]; int64[4]): pass" if inputs have known shapes; then the graph,
// "expect", the expected graph. After "training" in the list gradients are recorded.
std::vector<Case> read_cases(const fs::path& path) {
  std::ifstream file(path);
  std::vector<Case> cases;
  std::string comment, line;
  enum { kBetween, kInput, kExpected } state = kBetween;
  while (std::getline(file, line)) {
    if (line.starts_with("case ")) {
      Case next;
      next.comment = std::move(comment);
      comment.clear();
      size_t colon = line.find(':');
      next.name = line.substr(5, colon - 5);
      if (const size_t open = next.name.find(" ("); open != std::string::npos) {
        next.shapes = next.name.substr(open + 2, next.name.size() - open - 3);
        next.name.resize(open);
      }
      std::stringstream names(line.substr(colon + 1));
      for (std::string pass; std::getline(names, pass, ',');)
        next.passes.push_back(pass.substr(pass.find_first_not_of(' ')));
      cases.push_back(std::move(next));
      state = kInput;
    } else if (line == "expect") {
      state = kExpected;
    } else if (state == kInput) {
      cases.back().input += line + "\n";
    } else if (state == kExpected && !line.empty() && line[0] != '#') {
      cases.back().expected += line + "\n";
    } else if (!line.empty()) {
      comment += line + "\n";
    }
  }
  return cases;
}

void write_cases(const fs::path& path, const std::vector<Case>& cases) {
  std::ofstream file(path);
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    std::string passes;
    for (const std::string& pass : c.passes) passes += (passes.empty() ? "" : ", ") + pass;
    const std::string shapes = c.shapes.empty() ? "" : " (" + c.shapes + ")";
    file << (i > 0 ? "\n" : "") << c.comment << "case " << c.name << shapes << ": " << passes << "\n"
         << c.input << "expect\n"
         << c.expected;
  }
}

fs::path folder() { return fs::path(tests_folder()) / "jit" / "passes"; }

// Whether the pass reported a change.
bool run(const std::string& pass, Graph& graph, PassContext& context) {
  if (pass == "training") return (context.is_for_training = true, false);
  return find_pass(pass).run(graph, context);
}

// The graph without type annotations of its values.
std::string without_notes(const Graph& graph) {
  std::string out;
  std::stringstream lines(print_graph(graph));
  for (std::string line; std::getline(lines, line);) out += line.substr(0, line.find("  # ")) + "\n";
  return out;
}

class PassFile : public ::testing::TestWithParam<fs::path> {};

TEST_P(PassFile, GivesTheExpectedGraphs) {
  std::vector<Case> cases = read_cases(GetParam());
  ASSERT_FALSE(cases.empty());
  bool update = std::getenv("TENSORD_UPDATE_EXPECTATIONS") != nullptr;
  for (Case& c : cases) {
    SCOPED_TRACE(c.name);
    auto graph = parse_graph(c.input);
    set_shapes(*graph, c.shapes);
    verify(*graph);
    PassContext context;
    for (const std::string& pass : c.passes) {
      run(pass, *graph, context);
      verify(*graph);
    }
    std::string got = print_graph(*graph);
    if (update) {
      c.expected = got;
    } else {
      EXPECT_EQ(got, c.expected);
    }
    // A pass must converge: running the same passes again changes nothing.
    for (const std::string& pass : c.passes) run(pass, *graph, context);
    EXPECT_EQ(print_graph(*graph), got) << "changes again when run again";
  }
  if (update) write_cases(GetParam(), cases);
}

// Without remaining changes a pass does nothing and reports none; with one, it consumes it when it acts.
TEST_P(PassFile, ChangesAreCounted) {
  for (const Case& c : read_cases(GetParam())) {
    SCOPED_TRACE(c.name);
    auto graph = parse_graph(c.input);
    set_shapes(*graph, c.shapes);
    PassContext context;
    for (const std::string& pass : c.passes) {
      SCOPED_TRACE(pass);
      const std::string before = without_notes(*graph);
      context.remaining_changes = 0;
      EXPECT_FALSE(run(pass, *graph, context));
      EXPECT_EQ(without_notes(*graph), before);
      EXPECT_EQ(context.remaining_changes, 0);
      context.remaining_changes = 1;
      const bool is_changed = run(pass, *graph, context);
      verify(*graph);
      EXPECT_EQ(context.remaining_changes, is_changed ? 0 : 1);
      EXPECT_EQ(without_notes(*graph) != before, is_changed);
      context.remaining_changes = INT64_MAX;
      run(pass, *graph, context);
    }
  }
}

std::vector<fs::path> files() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(folder())) {
    if (entry.path().extension() == ".ir") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, PassFile, ::testing::ValuesIn(files()),
                         [](const auto& info) { return info.param.stem().string(); });

TEST(Peephole, EveryRuleIsActive) { EXPECT_EQ(inactive_peephole_rules(), std::vector<std::string>{}); }

TEST(Pipeline, LimitsAndDisablesPasses) {
  const char* text = R"(graph(%x : int):
  %a : int = prim::Constant[value=2]()
  %b : int = aten::add.int(%a, %a)
  %c : int = aten::add.int(%b, %b)
  %d : int = aten::add.int(%c, %x)
  return (%d)
)";
  const auto run = [&](const PassOptions& options) {
    auto graph = parse_graph(text);
    PassContext context;
    run_pipeline(graph, context, options, simplification_pipeline());
    return print_graph(*graph);
  };
  EXPECT_NE(run({}).find("Constant[value=8]"), std::string::npos);
  PassOptions disabled;
  disabled.disabled = {"const_prop"};
  EXPECT_EQ(run(disabled), text);
  PassOptions limited;
  limited.limits = {{"const_prop", 1}};
  EXPECT_NE(run(limited).find("Constant[value=4]"), std::string::npos);
  EXPECT_EQ(run(limited).find("Constant[value=8]"), std::string::npos);
}

constexpr const char* kSum = R"(graph(%x : int):
  %a : int = prim::Constant[value=2]()
  %b : int = aten::add.int(%a, %a)
  %c : int = aten::add.int(%b, %x)
  return (%c)
)";

// The graph as it was goes through the other passes, and the failure is counted.
TEST(Pipeline, GoesWithoutAPassThatFails) {
  for (const bool throws : {true, false}) {
    auto graph = parse_graph(kSum);
    PassOptions options;
    options.alter = [&](const std::string& pass, Graph& altered) {
      if (pass != "const_prop") return;
      if (throws) throw std::out_of_range("no such input");
      altered.block()->last()->move_before(altered.block()->first());
    };
    PassFailures failures;
    PassContext context;
    context.failures = &failures;
    run_pipeline(graph, context, options, simplification_pipeline());
    EXPECT_EQ(print_graph(*graph), kSum);
    EXPECT_EQ(failures.counts(), (std::map<std::string, uint64_t>{{"const_prop", 1}}));
  }
}

TEST(Pipeline, WorkThatIsGivenUpIsNoFailure) {
  for (const ErrorCode code : {ErrorCode::kCancelled, ErrorCode::kDeadlineExceeded, ErrorCode::kResourceExhausted}) {
    auto graph = parse_graph(kSum);
    PassOptions options;
    options.alter = [&](const std::string&, Graph&) { throw Error(code, "enough"); };
    PassFailures failures;
    PassContext context;
    context.failures = &failures;
    try {
      run_pipeline(graph, context, options, simplification_pipeline());
      ADD_FAILURE() << "nothing is thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
    }
    options.alter = [](const std::string&, Graph&) { throw std::bad_alloc(); };
    EXPECT_THROW(run_pipeline(graph, context, options, simplification_pipeline()), std::bad_alloc);
    EXPECT_TRUE(failures.counts().empty());
  }
}

// Code that is compiled during inlining may be invalid; that is the model's error.
TEST(Pipeline, WhatDoesNotCompileIsNoFailure) {
  auto graph = parse_graph(kSum);
  PassOptions options;
  options.alter = [](const std::string& pass, Graph&) {
    if (pass == "inline") fail(ErrorCode::kUnimplemented, "there is no such operator");
  };
  PassContext context;
  EXPECT_THROW(run_pipeline(graph, context, options, simplification_pipeline()), Error);
}

// In tests a failing pass ends the process.
TEST(PipelineDeathTest, AFailureEndsTests) {
  ASSERT_TRUE(verifies_passes());
  const Pass broken{"broken", [](Graph&, PassContext&) -> bool { throw std::out_of_range("no such input"); }};
  const PipelineStep steps[] = {{{broken}, false}};
  auto graph = parse_graph(kSum);
  PassContext context;
  EXPECT_DEATH(run_pipeline(graph, context, {}, steps), "pass broken failed: no such input");
}

TEST(Pipeline, TellsTheObserverOfEveryChange) {
  auto graph = parse_graph("graph(%x : int):\n  %a : int = aten::add.int(%x, %x)\n  return (%x)\n");
  std::vector<std::string> seen;
  PassOptions options;
  options.observer = [&](const std::string& pass, const Graph&) { seen.push_back(pass); };
  PassContext context;
  run_pipeline(graph, context, options, simplification_pipeline());
  EXPECT_EQ(seen, (std::vector<std::string>{"", "dce"}));
}

TEST(Pipeline, NamesItsPasses) {
  std::vector<std::string> names = pass_names();
  EXPECT_EQ(names.front(), "inline");
  EXPECT_EQ(std::count(names.begin(), names.end(), "dce"), 1);
  EXPECT_THROW(find_pass("no_such_pass"), Error);
}

}  // namespace
}  // namespace tensord::jit::passes_test
