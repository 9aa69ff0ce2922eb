#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/test_hooks.h"
#include "core/jit/passes/pass.h"
#include "core/jit/runtime/frame.h"
#include "core/jit/runtime/signature.h"
#include "core/jit/runtime/step/step_recording.h"

namespace tensord::jit {

struct PlannedStepOptions {
  bool is_enabled = true;          // false: every step is interpreted
  std::string unsupported_reason;  // why every step is interpreted; empty: no reason known
  PassOptions passes;              // as for inference
  // Why this step must be interpreted for reasons that no recording shows; empty: no reason. May be null.
  std::function<std::string()> find_unsupported_reason = {};
  bool takes_constants = true;  // see StepRecording
  // Planned steps run the interpreter's kernels in its order: the same bits, or they are not used. False: they are
  // fused and use prepared calls, as inference does, and may differ by rounding.
  bool keeps_bits = true;
  std::set<const void*> lasting;     // lists and dicts that outlive a step, by identity (Value::identity)
  TestHook<void(Plan&)> alter = {};  // corrupts plans before they are verified
  Profile* profile = nullptr;        // planned steps are added to it; not owned
  size_t cache_size = 8;             // number of cached shapes; steps with others are interpreted
};

// How often steps ran which way, and the state of the most recent shapes.
struct PlannedStepReport {
  uint64_t planned = 0, interpreted = 0;
  uint64_t checked = 0;    // ran both ways and agreed; included in `interpreted`
  uint64_t identical = 0;  // bit-identical ones among them
  bool is_planned = false;
  bool is_settled = false;  // whether the last step's shapes stay planned, or interpreted for `reason`
  std::string reason;       // why the last step was not planned: "aten::item gives elements as numbers"
  size_t arena_bytes = 0;
  bool is_fused = false;  // see PlannedStepOptions::keeps_bits
  size_t calls = 0;       // made by a planned step
  double error = 0;       // largest difference found, relative to the largest element of its tensor
};

// A training step (loss and gradients) that is planned when it repeats. The first two steps of each shape are
// interpreted and recorded; if both are the same program, it is planned like an inference program: kernels are
// prepared, tensors share one arena, and calls are fused if bits may differ. The next step runs both ways from the same
// state, and the plan is used only if loss, gradients, buffers and the generator's state have the same bits (without
// keeps_bits: agree within rounding). It is checked again at steps 2, 4, 8 … after that; a plan that is then not within
// rounding is dropped, and the step throws Error{kInternal}. If a planned step fails, the step is interpreted to get
// its error. What cannot be recorded is interpreted: numbers read from tensors, hooks, anomaly mode, sparse or complex
// tensors, accumulated gradients.
//
// Not thread-safe.
class PlannedStep {
 public:
  // Returns the scalar loss of a batch, recorded by autograd. It may depend on the inputs' shapes, the tensors'
  // elements and requires_grad, and nothing else; after other changes (a module's `training`) call forget().
  using Loss = std::function<Tensor()>;

  // `parameters` and `buffers` are all tensors that the loss reads or writes and that outlive a step. Keeps references
  // to them.
  PlannedStep(std::vector<Tensor> parameters, std::vector<Tensor> buffers, PlannedStepOptions options = {});
  ~PlannedStep();

  // Leaves the gradients of the loss in the parameters' grad() and returns the detached loss. `check_loss` is called
  // with the loss before any gradient is stored; its exceptions are passed on. REQUIRES: `loss` reads only `batch`
  // besides. `is_cancelled` is called while a planned step runs. Throws Error as the step does.
  Tensor run(std::span<const Tensor> batch, const Loss& loss, const std::function<void(const Tensor&)>& check_loss = {},
             const std::function<bool()>* is_cancelled = nullptr);
  void forget();
  const PlannedStepReport& report() const { return report_; }

 private:
  struct Entry;
  struct Outcome {
    Tensor loss;
    std::vector<Tensor> gradients;  // by parameter; undefined if it has none
    std::vector<Tensor> written;    // new values of the buffers that are written
  };

  std::vector<Tensor> inputs_of(std::span<const Tensor> batch) const;
  Entry* find(std::span<const Tensor> inputs);
  // Why a step must be interpreted that could otherwise be planned; empty: no reason.
  std::string unsupported_reason() const;
  Tensor interpret(const Loss& loss, const std::function<void(const Tensor&)>& check_loss,
                   std::string* hooks = nullptr);
  Tensor record(Entry& entry, std::span<const Tensor> inputs, const Loss& loss,
                const std::function<void(const Tensor&)>& check_loss);
  void build(Entry& entry, std::span<const Tensor> inputs);
  // Interprets the step whose plan threw `error`.
  Tensor after_failure(Entry& entry, const Error& error, const Loss& loss,
                       const std::function<void(const Tensor&)>& check_loss);
  Outcome run_plan(Entry& entry, std::span<const Tensor> inputs, const std::function<bool()>* is_cancelled);
  struct Verdict {
    std::string wrong;  // what differs by more than rounding; empty: nothing
    double error = 0;   // PlannedStepReport::error
  };
  // Compares with the interpreted step that was just made: its loss, and the state it left in the inputs.
  Verdict compare(const Entry& entry, const Outcome& planned, const Tensor& loss, std::span<const Tensor> inputs) const;
  bool is_good(const Verdict& verdict) const;
  void conclude(Entry& entry, const Verdict& verdict);
  Tensor check(Entry& entry, std::span<const Tensor> inputs, const Loss& loss,
               const std::function<void(const Tensor&)>& check_loss, const std::function<bool()>* is_cancelled);
  void give_up(Entry& entry, std::string reason);

  const std::vector<Tensor> parameters_, buffers_;
  const PlannedStepOptions options_;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::unique_ptr<Frame> frame_;
  PlannedStepReport report_;
};

}  // namespace tensord::jit
