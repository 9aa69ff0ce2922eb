#include "core/jit/passes/pipeline.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <new>
#include <string_view>

#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/jit/ir/verify.h"
#include "core/jit/passes/passes.h"

namespace tensord::jit {

namespace {

constexpr Pass kInline{"inline", inline_calls, true};
constexpr Pass kFreeze{"freeze", freeze_attributes};
constexpr Pass kConstProp{"const_prop", propagate_constants};
constexpr Pass kSimplify{"simplify", simplify_structure};
constexpr Pass kPeephole{"peephole", apply_peepholes};
constexpr Pass kCse{"cse", eliminate_common_subexpressions};
constexpr Pass kDce{"dce", eliminate_dead_code};
constexpr Pass kExpandLayers{"expand_layers", expand_layers};
constexpr Pass kPrepack{"prepack", prepack_weights};
constexpr Pass kFoldConversions{"fold_conversions", fold_conversions};
constexpr Pass kFoldBatchNorm{"fold_batch_norm", fold_batch_norm};
constexpr Pass kFuseEpilogue{"fuse_epilogue", fuse_epilogue};
constexpr Pass kChannelsLast{"channels_last", use_channels_last};
constexpr Pass kShapeProp{"shape_prop", propagate_shapes};
constexpr Pass kUnroll{"unroll", unroll_loops};
constexpr Pass kCollectLists{"collect_lists", collect_lists};
constexpr Pass kFunctionalize{"functionalize", functionalize};
constexpr Pass kRemoveTransposes{"remove_transposes", remove_transposes};
constexpr Pass kFuseAttention{"fuse_attention", fuse_attention};
constexpr Pass kGroupHeads{"group_heads", group_heads};
constexpr Pass kFusePatterns{"fuse_patterns", fuse_patterns};
constexpr Pass kFusePointwise{"fuse_pointwise", fuse_pointwise};
constexpr Pass kPlan{"plan", plan_segments};
// Steps of the planner (core/jit/runtime/plan/planner.h), which do not work on a graph. They are listed here so that
// flags find them.
constexpr Pass kSplitSamples{"split_samples", nullptr};
constexpr Pass kInPlace{"in_place", nullptr};
constexpr Pass kMemoryPlan{"memory_plan", nullptr};

// A rewrite may enable another one. More rounds than this mean two rules that undo each other.
constexpr int kMaxRounds = 10;

const std::vector<PipelineStep>& simplification() {
  static const std::vector<PipelineStep> steps{
      // Frozen submodules resolve calls through interfaces, so these two passes alternate.
      {{kInline, kFreeze}, true},
      {{kConstProp, kSimplify, kPeephole, kDce, kCse}, true},
      // Folding removes branches with calls or attributes that blocked other passes.
      {{kInline, kFreeze, kConstProp, kSimplify, kPeephole, kCse, kDce}, true},
  };
  return steps;
}

const std::vector<PipelineStep>& inlining() {
  static const std::vector<PipelineStep> steps{{{kInline}, false}};
  return steps;
}

const std::vector<PipelineStep>& freezing() {
  static const std::vector<PipelineStep> steps{{{kFreeze}, false}};
  return steps;
}

const std::vector<PipelineStep>& folding() {
  static const std::vector<PipelineStep> steps{{{kInline, kFreeze, kConstProp, kSimplify, kPeephole}, true},
                                               {{kDce}, false}};
  return steps;
}

const std::vector<PipelineStep>& inference() {
  static const std::vector<PipelineStep> steps = [] {
    std::vector<PipelineStep> all = simplification();
    all.push_back(
        {{kExpandLayers, kPrepack, kFoldConversions, kFoldBatchNorm, kFuseEpilogue, kChannelsLast, kDce}, false});
    return all;
  }();
  return steps;
}

const std::vector<PipelineStep>& planning() {
  static const std::vector<PipelineStep> steps{
      // Shapes make branches and loops constant, which enables further simplification.
      {{kShapeProp, kConstProp, kUnroll, kCollectLists, kSimplify, kPeephole, kExpandLayers, kCse, kDce}, true},
      {{kFunctionalize, kShapeProp, kFuseAttention, kGroupHeads, kRemoveTransposes, kFusePatterns, kFuseEpilogue, kDce},
       true},
      // Nodes made since the last shape_prop have no shapes yet.
      {{kShapeProp, kFoldConversions, kFusePointwise, kDce, kPlan}, false},
  };
  return steps;
}

// All passes, each once, in the order of their first use.
std::vector<const Pass*> known_passes() {
  std::vector<const Pass*> passes;
  const auto add = [&](const Pass& pass) {
    const auto is_same = [&](const Pass* other) { return std::string_view(other->name) == pass.name; };
    if (std::none_of(passes.begin(), passes.end(), is_same)) passes.push_back(&pass);
  };
  for (const auto* steps : {&inference(), &planning()}) {
    for (const PipelineStep& step : *steps) {
      for (const Pass& pass : step.passes) add(pass);
    }
  }
  add(kSplitSamples);
  add(kInPlace);
  add(kMemoryPlan);
  return passes;
}

// A pass threw, or left a malformed graph.
class PassFailed : public Error {
 public:
  PassFailed(const char* pass, const std::string& reason) : Error(ErrorCode::kInternal, reason), pass_(pass) {}
  const char* pass() const { return pass_; }

 private:
  const char* pass_;
};

// Whether an error means that the work was cancelled or ran out of memory, not that the pass is wrong.
bool ends_work(const Error& error) {
  return error.code() == ErrorCode::kCancelled || error.code() == ErrorCode::kDeadlineExceeded ||
         error.code() == ErrorCode::kResourceExhausted;
}

class Runner {
 public:
  Runner(Graph& graph, PassContext& context, const PassOptions& options, const std::set<std::string>& failed,
         bool verify_each)
      : graph_(graph),
        context_(context),
        options_(options),
        failed_(failed),
        verify_each_(verify_each),
        limits_(options.limits) {}

  bool run(const PipelineStep& step) {
    bool changed = false;
    for (const Pass& pass : step.passes) changed |= run(pass);
    return changed;
  }
  bool changed() const { return changed_; }

 private:
  bool run(const Pass& pass) {
    if (options_.disabled.contains(pass.name) || failed_.contains(pass.name)) return false;
    auto limit = limits_.find(pass.name);
    context_.remaining_changes = limit == limits_.end() ? INT64_MAX : limit->second;
    check_work_cancelled();
    const bool changed = attempt(pass);
    if (limit != limits_.end()) limit->second = context_.remaining_changes;
    if (!changed) return false;
    changed_ = true;
    if (options_.observer) options_.observer(pass.name, graph_);
    return true;
  }

  bool attempt(const Pass& pass) {
    try {
      const bool changed = pass.run(graph_, context_);
      if (options_.alter) options_.alter(pass.name, graph_);
      if (changed && verify_each_) verify(graph_);
      return changed;
    } catch (const Error& error) {
      if (ends_work(error) || (pass.compiles && error.code() != ErrorCode::kInternal)) throw;
      throw PassFailed(pass.name, error.what());
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      throw PassFailed(pass.name, error.what());
    }
  }

  Graph& graph_;
  PassContext& context_;
  const PassOptions& options_;
  const std::set<std::string>& failed_;
  bool verify_each_;
  bool changed_ = false;
  std::map<std::string, int64_t> limits_;
};

// Copies the graph with the known() values of its inputs.
std::unique_ptr<Graph> copy_of(const Graph& graph) {
  std::unique_ptr<Graph> copy = graph.clone();
  for (const GraphValue* input : graph.inputs()) copy->inputs()[input->index()]->set_known(input->known());
  return copy;
}

// Returns whether the graph changed.
bool run_steps(Runner& runner, std::span<const PipelineStep> steps) {
  for (const PipelineStep& step : steps) {
    for (int round = 0; runner.run(step) && step.until_stable && round + 1 < kMaxRounds; ++round) {
    }
  }
  return runner.changed();
}

void report(const PassFailed& failure, PassContext& context, bool ends_process) {
  if (ends_process) {
    std::cerr << "pass " << failure.pass() << " failed: " << failure.what() << std::endl;
    std::abort();
  }
  if (context.failures) context.failures->add(failure.pass());
  log(LogLevel::kError, "a pass failed, so the graph goes without it; please report this",
      {{"pass", failure.pass()}, {"reason", failure.what()}});
}

}  // namespace

std::span<const PipelineStep> inference_pipeline() { return inference(); }
std::span<const PipelineStep> simplification_pipeline() { return simplification(); }
std::span<const PipelineStep> inlining_pipeline() { return inlining(); }
std::span<const PipelineStep> freezing_pipeline() { return freezing(); }
std::span<const PipelineStep> folding_pipeline() { return folding(); }
std::span<const PipelineStep> plan_pipeline() { return planning(); }

bool run_pipeline(std::unique_ptr<Graph>& graph, PassContext& context, const PassOptions& options,
                  std::span<const PipelineStep> steps) {
  const bool is_strict = verifies_passes() && !options.alter;
  bool verify_each = is_strict;
  if (verify_each) verify(*graph);
  std::set<std::string> failed;
  bool changed = false;
  for (;;) {
    std::unique_ptr<Graph> given = copy_of(*graph);
    if (options.observer) options.observer("", *graph);
    try {
      Runner runner(*graph, context, options, failed, verify_each);
      changed = run_steps(runner, steps);
      if (changed && !verify_each) verify(*graph);
      break;
    } catch (const PassFailed& failure) {
      report(failure, context, is_strict);
      failed.insert(failure.pass());
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInternal || verify_each) throw;
      verify(*given);
      verify_each = true;  // once more, to find the pass that failed
    }
    graph = std::move(given);
  }
  context.remaining_changes = INT64_MAX;
  return changed;
}

bool verifies_passes() {
  static const bool value = [] {
    const char* const text = std::getenv("TENSORD_VERIFY_PASSES");
    return text != nullptr && std::string_view(text) == "1";
  }();
  return value;
}

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const Pass* pass : known_passes()) names.emplace_back(pass->name);
  return names;
}

const Pass& find_pass(const std::string& name) {
  std::string known;
  for (const Pass* pass : known_passes()) {
    if (pass->name == name) return *pass;
    known += (known.empty() ? "" : ", ") + std::string(pass->name);
  }
  fail(ErrorCode::kInvalidArgument, "there is no pass '", name, "'; known are ", known);
}

}  // namespace tensord::jit
