#include "core/jit/runtime/step/planned_step.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_set>

#include "core/autograd/accumulate_grad.h"
#include "core/autograd/anomaly.h"
#include "core/autograd/engine.h"
#include "core/autograd/hooks/hooks.h"
#include "core/autograd/hooks/saved_hooks.h"
#include "core/autograd/op_node.h"
#include "core/autograd/recorder.h"
#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/parallel.h"
#include "core/jit/passes/pipeline.h"
#include "core/jit/runtime/interpreter.h"
#include "core/ops/generator.h"

namespace tensord::jit {

using ops::Value;

// What is known of steps with certain shapes.
struct PlannedStep::Entry {
  std::vector<Value> key;
  Signature signature;
  std::vector<bool> requires_grad;
  std::unique_ptr<StepRecording> first;  // until there is a second one
  std::unique_ptr<Graph> graph;          // of the second one
  std::vector<size_t> written;           // indices of inputs
  size_t level = 0;                      // index in kLevels
  std::vector<size_t> with_gradient;     // indices of parameters, in the order of the program's results
  std::vector<bool> must_copy;           // for each of these: whether the result shares memory with another
  ops::PackStore packs;
  std::unique_ptr<const Program> program;
  std::string reason;      // why it stays interpreted
  uint64_t steps = 0;      // since the plan was made
  bool is_proven = false;  // a step that ran both ways agreed
  bool is_used = false;    // a step was planned
};

namespace {

// Names what depends on more than operators and parameters in the graph of a loss; empty if there is nothing.
std::string find_foreign_node(const Tensor& loss, std::span<const Tensor> parameters) {
  std::unordered_set<const autograd::Node*> seen, leaves;
  for (const Tensor& parameter : parameters) leaves.insert(autograd::gradient_edge(parameter).node.get());
  std::vector<autograd::NodePtr> stack{autograd::gradient_edge(loss).node};
  while (!stack.empty()) {
    const autograd::NodePtr node = std::move(stack.back());
    stack.pop_back();
    if (!node || !seen.insert(node.get()).second) continue;
    if (autograd::has_hooks(*node)) return concat(node->name(), " has hooks");
    const bool is_leaf = dynamic_cast<const autograd::AccumulateGrad*>(node.get());
    if (is_leaf && !leaves.contains(node.get())) return "a tensor that is not known to the step gets a gradient";
    const bool is_own = is_leaf || dynamic_cast<const autograd::OpNode*>(node.get()) || node->name() == "CopySlices";
    if (!is_own) return concat(node->name(), " is not an operator's gradient");
    for (const autograd::Edge& edge : node->next_edges()) stack.push_back(edge.node);
  }
  return {};
}

bool is_equal(const Tensor& a, const Tensor& b) {
  const Tensor x = a.contiguous(), y = b.contiguous();
  return x.size_bytes() == 0 || std::memcmp(x.raw_data(), y.raw_data(), x.size_bytes()) == 0;
}

// The largest difference, relative to the largest element; infinite if exactly one of two elements is NaN.
double difference(const Tensor& a, const Tensor& b) {
  if (a.sizes() != b.sizes() || a.dtype() != b.dtype()) return INFINITY;
  if (is_equal(a, b)) return 0;
  const Tensor x = a.to(DType::kFloat64).contiguous(), y = b.to(DType::kFloat64).contiguous();
  double max = 0, scale = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double p = x.data<double>()[i], q = y.data<double>()[i];
    if (std::isnan(p) && std::isnan(q)) continue;
    if (p == q) continue;
    if (!std::isfinite(p) || !std::isfinite(q)) return INFINITY;
    max = std::max(max, std::abs(p - q));
  }
  for (int64_t i = 0; i < y.numel(); ++i) {
    if (std::isfinite(y.data<double>()[i])) scale = std::max(scale, std::abs(y.data<double>()[i]));
  }
  // Equal numbers with different bits: zeros of different sign.
  return max == 0 ? std::numeric_limits<double>::min() : max / scale;
}

// Tolerance for sums in another order, relative to the largest element.
double tolerance(DType dtype) {
  switch (dtype) {
    case DType::kFloat64: return 1e-11;
    case DType::kFloat32: return 2e-5;
    case DType::kFloat16: return 4e-3;
    case DType::kBFloat16: return 3e-2;
    default: return 0;
  }
}

void record_storages(const Value& value, std::unordered_set<const StorageImpl*>& storages) {
  if (value.is_strided() && value.to_tensor().defined()) storages.insert(value.to_tensor().storage().get());
  if (!value.is_list()) return;
  for (const Value& item : value.to_list()->items) record_storages(item, storages);
}

ops::Generator::Saved generator_state() {
  ops::Generator& generator = ops::current_generator();
  const MutexLock lock = generator.lock();
  return generator.saved();
}

void set_generator_state(const ops::Generator::Saved& state) {
  ops::Generator& generator = ops::current_generator();
  const MutexLock lock = generator.lock();
  generator.restore(state);
}

// How a step is planned: with everything that inference uses, or with the interpreter's kernels in its order.
struct Level {
  std::set<std::string> plain;     // PlanSettings::plain
  std::set<std::string> disabled;  // disabled passes
};
constexpr size_t kFused = 0, kExact = 1;
const Level kLevels[] = {{},
                         {{"*"},
                          {"fuse_attention", "group_heads", "fuse_patterns", "fuse_pointwise", "fuse_epilogue",
                           "remove_transposes", "split_samples"}}};

}  // namespace

PlannedStep::PlannedStep(std::vector<Tensor> parameters, std::vector<Tensor> buffers, PlannedStepOptions options)
    : parameters_(std::move(parameters)), buffers_(std::move(buffers)), options_(std::move(options)) {
  frame_ = std::make_unique<Frame>();
}
PlannedStep::~PlannedStep() = default;

void PlannedStep::forget() { entries_.clear(); }

std::vector<Tensor> PlannedStep::inputs_of(std::span<const Tensor> batch) const {
  std::vector<Tensor> inputs(batch.begin(), batch.end());
  inputs.insert(inputs.end(), parameters_.begin(), parameters_.end());
  inputs.insert(inputs.end(), buffers_.begin(), buffers_.end());
  return inputs;
}

PlannedStep::Entry* PlannedStep::find(std::span<const Tensor> inputs) {
  std::vector<Value> key(inputs.begin(), inputs.end());
  std::vector<bool> requires_grad;
  for (const Tensor& parameter : parameters_) requires_grad.push_back(autograd::requires_grad(parameter));
  for (const auto& entry : entries_) {
    if (entry->requires_grad == requires_grad && entry->signature.matches(key, thread_budget())) return entry.get();
  }
  if (entries_.size() >= options_.cache_size) return nullptr;
  auto entry = std::make_unique<Entry>();
  entry->signature = Signature(key, thread_budget());
  entry->requires_grad = std::move(requires_grad);
  if (!entry->signature.is_usable()) entry->reason = "there are too many tensors";
  entries_.push_back(std::move(entry));
  return entries_.back().get();
}

std::string PlannedStep::unsupported_reason() const {
  if (autograd::is_anomaly_mode()) return "anomaly mode is on";
  if (execution_context().included_keys.has(Functionality::kAutocast)) return "autocast is on around the step";
  if (autograd::hooks_are_set()) return "there are hooks for saved tensors";
  if (options_.find_unsupported_reason) {
    if (std::string found = options_.find_unsupported_reason(); !found.empty()) return found;
  }
  if (!is_grad_enabled() || is_inference_mode()) return "gradients are off";
  for (const Tensor& parameter : parameters_) {
    const autograd::NodePtr node = autograd::gradient_edge(parameter).node;
    if (node && autograd::has_hooks(*node)) return "a parameter has hooks";
    if (autograd::grad(parameter).defined()) return "gradients are added to those of an earlier step";
  }
  return {};
}

Tensor PlannedStep::run(std::span<const Tensor> batch, const Loss& loss,
                        const std::function<void(const Tensor&)>& check_loss,
                        const std::function<bool()>* is_cancelled) {
  report_.is_planned = report_.is_settled = false;
  report_.reason = options_.is_enabled ? options_.unsupported_reason : "plans are off";
  report_.is_settled = !report_.reason.empty();
  if (report_.reason.empty()) report_.reason = unsupported_reason();
  const std::vector<Tensor> inputs = inputs_of(batch);
  Entry* entry = report_.reason.empty() ? find(inputs) : nullptr;
  if (!entry && report_.reason.empty()) report_.reason = "there were too many shapes";
  if (entry && !entry->reason.empty()) report_.reason = entry->reason, report_.is_settled = true;
  if (!report_.reason.empty()) {
    ++report_.interpreted;
    return interpret(loss, check_loss);
  }
  if (!entry->program) {
    ++report_.interpreted;
    return record(*entry, inputs, loss, check_loss);
  }
  // A step that ended with an error did not check anything.
  if (std::has_single_bit(++entry->steps) || !entry->is_proven)
    return check(*entry, inputs, loss, check_loss, is_cancelled);
  const ops::Generator::Saved before = generator_state();
  Outcome outcome;
  try {
    outcome = run_plan(*entry, inputs, is_cancelled);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled) throw;
    set_generator_state(before);
    return after_failure(*entry, error, loss, check_loss);
  }
  if (check_loss) check_loss(outcome.loss);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (outcome.gradients[i].defined()) autograd::set_grad(parameters_[i], outcome.gradients[i]);
  }
  const std::vector<size_t>& written = entry->written;
  for (size_t i = 0; i < written.size(); ++i) {
    inputs[written[i]].copy_from(outcome.written[i]);
    inputs[written[i]].storage()->bump_version();
  }
  entry->is_used = true;
  ++report_.planned;
  report_.is_planned = report_.is_settled = true;
  return outcome.loss;
}

Tensor PlannedStep::after_failure(Entry& entry, const Error& error, const Loss& loss,
                                  const std::function<void(const Tensor&)>& check_loss) {
  ++report_.interpreted;
  const std::string reason = concat("the planned step failed: ", error.what());
  give_up(entry, reason);
  return interpret(loss, check_loss);
}

Tensor PlannedStep::interpret(const Loss& loss, const std::function<void(const Tensor&)>& check_loss,
                              std::string* hooks) {
  const Tensor result = loss();
  tensord::check(autograd::requires_grad(result), "the loss does not depend on any parameter that is trained");
  if (check_loss && !hooks) check_loss(autograd::detach(result));
  if (hooks) *hooks = find_foreign_node(result, parameters_);
  autograd::backward(result);
  return autograd::detach(result);
}

Tensor PlannedStep::record(Entry& entry, std::span<const Tensor> inputs, const Loss& loss,
                           const std::function<void(const Tensor&)>& check_loss) {
  auto recording = std::make_unique<StepRecording>(inputs, options_.lasting, options_.takes_constants);
  std::string foreign;
  Tensor result;
  {
    const ops::ObserverScope scope(Functionality::kStepRecorder, &*recording);
    result = interpret(loss, {}, &foreign);
  }
  if (!foreign.empty()) recording->refuse(foreign);
  std::vector<Tensor> results{result};
  std::vector<size_t> with_gradient;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    results.push_back(autograd::grad(parameters_[i]));
    if (results.back().defined()) with_gradient.push_back(i);
  }
  recording->finish(results);
  report_.reason = "these shapes are recorded";
  if (!recording->refusal().empty()) {
    give_up(entry, recording->refusal());
  } else if (!entry.first) {
    entry.first = std::move(recording);
    entry.with_gradient = std::move(with_gradient);
  } else {
    std::string why_not;
    const bool is_same = entry.with_gradient == with_gradient && entry.first->is_same_program(*recording, why_not);
    entry.first = nullptr;
    if (is_same) {
      entry.written = recording->written_inputs();
      entry.graph = recording->take_graph();
      entry.level = options_.keeps_bits ? kExact : kFused;
      build(entry, inputs);
    } else {
      give_up(entry, why_not.empty() ? "other parameters have gradients" : why_not);
    }
  }
  if (check_loss) check_loss(result);
  return result;
}

void PlannedStep::give_up(Entry& entry, std::string reason) {
  entry.first = nullptr;
  entry.graph = nullptr;
  entry.program = nullptr;
  entry.reason = report_.reason = std::move(reason);
  report_.is_settled = true;
  // Including the arena, which other shapes allocate again when they are next run.
  frame_ = std::make_unique<Frame>();
}

void PlannedStep::build(Entry& entry, std::span<const Tensor> inputs) {
  const Level& level = kLevels[entry.level];
  entry.must_copy.clear();
  // Passes that ask random operators for their shapes draw random numbers.
  const ops::Generator::Saved state = generator_state();
  try {
    std::unique_ptr<Graph> graph = entry.graph->clone();
    specialize_inputs(*graph, std::vector<Value>(inputs.begin(), inputs.end()));
    PassContext context;
    PassOptions passes = options_.passes;
    passes.disabled.insert(level.disabled.begin(), level.disabled.end());
    run_pipeline(graph, context, passes, plan_pipeline());
    PlanSettings settings;
    settings.plain = level.plain;
    settings.threads = thread_budget();
    settings.packs = &entry.packs;
    settings.splits_samples = !passes.disabled.contains("split_samples");
    settings.reuses_in_place = !passes.disabled.contains("in_place");
    settings.shares_memory = !passes.disabled.contains("memory_plan");
    settings.alter = options_.alter;
    entry.program = Program::compile(*graph, "training step", settings);
    const PlanTotals totals = plan_totals(*entry.program);
    report_.calls = totals.calls;
    if (totals.plans == 0) give_up(entry, "nothing of it can be planned");
  } catch (const std::exception& error) {
    give_up(entry, error.what());
  }
  set_generator_state(state);
}

PlannedStep::Outcome PlannedStep::run_plan(Entry& entry, std::span<const Tensor> inputs,
                                           const std::function<bool()>* is_cancelled) {
  const autograd::BelowAutogradScope below;
  const NoGradGuard no_grad;
  std::vector<Value> arguments(inputs.begin(), inputs.end());
  const Value result = Interpreter(*frame_, nullptr, {.is_cancelled = is_cancelled, .profile = options_.profile})
                           .run(*entry.program, arguments);
  const auto& items = result.to_tuple()->items;
  report_.arena_bytes = frame_->arena_bytes();
  Outcome outcome{items[0].to_tensor(), std::vector<Tensor>(parameters_.size()), {}};
  size_t next = 1;
  if (entry.must_copy.empty()) {
    std::unordered_set<const StorageImpl*> taken;
    for (const Tensor& input : inputs) taken.insert(input.storage().get());
    for (const Value& constant : entry.program->argument_template) record_storages(constant, taken);
    for (size_t i = 0; i < items.size(); ++i)
      entry.must_copy.push_back(!taken.insert(items[i].to_tensor().storage().get()).second);
  }
  for (const size_t parameter : entry.with_gradient) {
    const Tensor& gradient = items[next].to_tensor();
    // An optimizer or gradient clipping may write to it.
    outcome.gradients[parameter] = entry.must_copy[next++] ? gradient.clone(true) : gradient;
  }
  while (next < items.size()) outcome.written.push_back(items[next++].to_tensor());
  return outcome;
}

Tensor PlannedStep::check(Entry& entry, std::span<const Tensor> inputs, const Loss& loss,
                          const std::function<void(const Tensor&)>& check_loss,
                          const std::function<bool()>* is_cancelled) {
  const ops::Generator::Saved before = generator_state();
  // Plans of other levels start from the same state as the interpreted step.
  std::vector<Tensor> start(inputs.begin(), inputs.end());
  for (const size_t i : entry.written) start[i] = start[i].clone(true);
  Outcome planned;
  try {
    planned = run_plan(entry, start, is_cancelled);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled) throw;
    set_generator_state(before);
    return after_failure(entry, error, loss, check_loss);
  }
  const ops::Generator::Saved after = generator_state();
  set_generator_state(before);
  ++report_.interpreted;
  const Tensor result = interpret(loss, check_loss);
  const ops::Generator::Saved end = generator_state();
  const auto judge = [&](const ops::Generator::Saved& state) {
    Verdict verdict = compare(entry, planned, result, inputs);
    if (state != end) verdict.wrong = "the generator's state";
    return verdict;
  };
  Verdict verdict = judge(after);
  while (!entry.is_proven && !is_good(verdict) && ++entry.level < std::size(kLevels)) {
    planned = {};
    build(entry, start);
    if (!entry.program) break;
    set_generator_state(before);
    planned = run_plan(entry, start, is_cancelled);
    verdict = judge(generator_state());
  }
  set_generator_state(end);
  if (entry.program) conclude(entry, verdict);
  return result;
}

bool PlannedStep::is_good(const Verdict& verdict) const {
  return verdict.wrong.empty() && (verdict.error == 0 || !options_.keeps_bits);
}

void PlannedStep::conclude(Entry& entry, const Verdict& verdict) {
  if (is_good(verdict)) {
    entry.is_proven = true;
    report_.reason = "this step is checked against the interpreted one";
    ++report_.checked;
    report_.identical += verdict.error == 0;
    report_.error = std::max(report_.error, verdict.error);
    report_.is_fused = entry.level == kFused;
    return;
  }
  if (verdict.wrong.empty())
    return give_up(entry, concat("the planned step has other bits than the interpreted one, by ", verdict.error));
  const bool was_used = entry.is_used;
  give_up(entry, concat("the planned step differs from the interpreted one: ", verdict.wrong));
  log(LogLevel::kError, "a planned training step is wrong, so these shapes are interpreted; please report this",
      {{"reason", entry.reason}});
  if (was_used) fail(ErrorCode::kInternal, entry.reason, "; run the steps without plans");
}

PlannedStep::Verdict PlannedStep::compare(const Entry& entry, const Outcome& planned, const Tensor& loss,
                                          std::span<const Tensor> inputs) const {
  Verdict verdict;
  const auto compare = [&](const Tensor& a, const Tensor& b, const std::string& what) {
    const double found = a.defined() == b.defined() ? (a.defined() ? difference(a, b) : 0) : INFINITY;
    verdict.error = std::max(verdict.error, found);
    if (b.defined() ? found > tolerance(b.dtype()) : found > 0) verdict.wrong = concat(what, " by ", found);
  };
  compare(planned.loss, loss, "the loss");
  for (size_t i = 0; i < parameters_.size(); ++i)
    compare(planned.gradients[i], autograd::grad(parameters_[i]), concat("the gradient of parameter ", i));
  for (size_t i = 0; i < entry.written.size(); ++i) compare(planned.written[i], inputs[entry.written[i]], "a buffer");
  return verdict;
}

}  // namespace tensord::jit
