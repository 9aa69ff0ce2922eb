#include "core/jit/passes/pipeline.h"

#include <algorithm>
#include <map>

#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/jit/ir/verify.h"
#include "core/jit/passes/passes.h"

namespace tensord::jit {

namespace {

constexpr Pass kInline{"inline", inline_calls};
constexpr Pass kFreeze{"freeze", freeze_attributes};
constexpr Pass kConstProp{"const_prop", propagate_constants};
constexpr Pass kSimplify{"simplify", simplify_structure};
constexpr Pass kPeephole{"peephole", apply_peepholes};
constexpr Pass kCse{"cse", eliminate_common_subexpressions};
constexpr Pass kDce{"dce", eliminate_dead_code};
constexpr Pass kExpandLayers{"expand_layers", expand_layers};
constexpr Pass kPrepack{"prepack", prepack_weights};
constexpr Pass kFoldBatchNorm{"fold_batch_norm", fold_batch_norm};
constexpr Pass kFuseEpilogue{"fuse_epilogue", fuse_epilogue};
constexpr Pass kChannelsLast{"channels_last", use_channels_last};
constexpr Pass kShapeProp{"shape_prop", propagate_shapes};
constexpr Pass kUnroll{"unroll", unroll_loops};
constexpr Pass kCollectLists{"collect_lists", collect_lists};
constexpr Pass kFunctionalize{"functionalize", functionalize};
constexpr Pass kRemoveTransposes{"remove_transposes", remove_transposes};
constexpr Pass kFuseAttention{"fuse_attention", fuse_attention};
constexpr Pass kFusePatterns{"fuse_patterns", fuse_patterns};
constexpr Pass kFusePointwise{"fuse_pointwise", fuse_pointwise};
constexpr Pass kPlan{"plan", plan_segments};
// Steps of the planner (core/jit/runtime/plan/planner.h), not of a graph; here so that flags find them.
constexpr Pass kSplitSamples{"split_samples", nullptr};
constexpr Pass kInPlace{"in_place", nullptr};
constexpr Pass kMemoryPlan{"memory_plan", nullptr};

// A rewrite may make room for another; more rounds than this are two rules at odds.
constexpr int kMaxRounds = 10;

const std::vector<PipelineStep>& simplification() {
  static const std::vector<PipelineStep> steps{
      // Frozen submodules make calls through interfaces known, so these two alternate.
      {{kInline, kFreeze}, true},
      {{kConstProp, kSimplify, kPeephole, kDce, kCse}, true},
      // Folding removes branches that held the last call or attribute that was in the way.
      {{kInline, kFreeze, kConstProp, kSimplify, kPeephole, kCse, kDce}, true},
  };
  return steps;
}

const std::vector<PipelineStep>& inference() {
  static const std::vector<PipelineStep> steps = [] {
    std::vector<PipelineStep> all = simplification();
    all.push_back({{kExpandLayers, kPrepack, kFoldBatchNorm, kFuseEpilogue, kChannelsLast, kDce}, false});
    return all;
  }();
  return steps;
}

const std::vector<PipelineStep>& planning() {
  static const std::vector<PipelineStep> steps{
      // Shapes make branches and loops constant, and what these hid can be simplified.
      {{kShapeProp, kConstProp, kUnroll, kCollectLists, kSimplify, kPeephole, kExpandLayers, kCse, kDce}, true},
      {{kFunctionalize, kShapeProp, kFuseAttention, kRemoveTransposes, kFusePatterns, kFuseEpilogue, kDce}, true},
      // What the passes since then made has no shapes yet.
      {{kShapeProp, kFusePointwise, kDce, kPlan}, false},
  };
  return steps;
}

// All passes, once each, in the order in which they come first.
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

class Runner {
 public:
  Runner(Graph& graph, PassContext& context, const PassOptions& options, bool verify_each)
      : graph_(graph), context_(context), options_(options), verify_each_(verify_each), limits_(options.limits) {}

  bool run(const PipelineStep& step) {
    bool changed = false;
    for (const Pass& pass : step.passes) changed |= run(pass);
    return changed;
  }
  bool changed() const { return changed_; }

 private:
  bool run(const Pass& pass) {
    if (options_.disabled.contains(pass.name)) return false;
    auto limit = limits_.find(pass.name);
    context_.remaining_changes = limit == limits_.end() ? INT64_MAX : limit->second;
    check_work_cancelled();
    bool changed = pass.run(graph_, context_);
    if (limit != limits_.end()) limit->second = context_.remaining_changes;
    if (!changed) return false;
    changed_ = true;
    if (verify_each_) verify_after(pass);
    if (options_.observer) options_.observer(pass.name, graph_);
    return true;
  }

  void verify_after(const Pass& pass) {
    try {
      verify(graph_);
    } catch (const Error& error) {
      fail(error.code(), "after pass ", pass.name, ": ", error.what());
    }
  }

  Graph& graph_;
  PassContext& context_;
  const PassOptions& options_;
  bool verify_each_;
  bool changed_ = false;
  std::map<std::string, int64_t> limits_;
};

}  // namespace

std::span<const PipelineStep> inference_pipeline() { return inference(); }
std::span<const PipelineStep> simplification_pipeline() { return simplification(); }
std::span<const PipelineStep> plan_pipeline() { return planning(); }

void run_pipeline(Graph& graph, PassContext& context, const PassOptions& options, std::span<const PipelineStep> steps,
                  bool verify_each) {
  if (verify_each) verify(graph);
  if (options.observer) options.observer("", graph);
  Runner runner(graph, context, options, verify_each);
  for (const PipelineStep& step : steps) {
    for (int round = 0; runner.run(step) && step.until_stable && round + 1 < kMaxRounds; ++round) {
    }
  }
  context.remaining_changes = INT64_MAX;
  if (runner.changed() && !verify_each) verify(graph);
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
