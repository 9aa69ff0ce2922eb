#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/jit/passes/pass.h"
#include "core/jit/runtime/frame.h"
#include "core/jit/runtime/signature.h"
#include "core/jit/runtime/step/step_recording.h"

namespace tensord::jit {

struct PlannedStepOptions {
  bool is_enabled = true;          // false: every step is interpreted
  std::string unsupported_reason;  // why every step is interpreted; empty: nothing known
  PassOptions passes;              // as of inference
  // Why this step must be interpreted, where that hangs on what no recording shows; empty: nothing. May be null.
  std::function<std::string()> find_unsupported_reason = {};
  bool takes_constants = true;  // see StepRecording
  // Planned steps run the kernels of interpreted ones, in their order: the same bits, or they are not used. False: they
  // are fused and use prepared forms, as inference, and may differ by rounding.
  bool keeps_bits = true;
  std::set<const void*> lasting;          // lists and dicts that outlive a step, by identity (Value::identity)
  std::function<void(Plan&)> alter = {};  // breaks plans before they are verified; for tests
  Profile* profile = nullptr;             // planned steps add to it; not owned
  size_t cache_size = 8;                  // shapes kept; the step is interpreted for others
};

// How often steps ran which way, and what is known of the shapes that came last.
struct PlannedStepReport {
  uint64_t planned = 0, interpreted = 0;
  uint64_t checked = 0;    // ran both ways, and agreed; among the interpreted
  uint64_t identical = 0;  // of these: bit by bit
  bool is_planned = false;
  bool is_settled = false;  // the last step's shapes stay planned, or interpreted for `reason`
  std::string reason;       // why the last step was not planned: "aten::item gives elements as numbers"
  size_t arena_bytes = 0;
  bool is_fused = false;  // see PlannedStepOptions::keeps_bits
  size_t calls = 0;       // that a planned step makes
  double error = 0;       // the largest difference found, of the largest element of its tensor
};

// A step of training, loss and gradients, that is planned when it repeats. The first two steps of some shapes are
// interpreted and recorded; when both were the same program, it is planned as an inference program is: its kernels
// prepared, its tensors in one arena, fused where bits may differ. The next step runs both ways from the same state,
// and the plan is used only when loss, gradients, buffers and the state of the generator are the same bits (without
// keeps_bits: agree within rounding). It is checked again at the steps 2, 4, 8 … after that; a plan that then is not
// within rounding is given up, and the step throws Error{kInternal}. Where a planned step fails, the interpreted one is
// run for its error. What cannot be recorded is interpreted, as before: numbers read from tensors, hooks, anomaly mode,
// sparse or complex tensors, gradients that are added to others.
//
// Not thread-safe.
class PlannedStep {
 public:
  // Gives the loss of a batch: one number, recorded by autograd. What it does may depend on the inputs' shapes, the
  // tensors' elements and requires_grad, and nothing else; after other changes (a module's `training`) call forget().
  using Loss = std::function<Tensor()>;

  // `parameters` and `buffers`: all tensors that the loss reads or writes, and that outlive a step. They are held.
  PlannedStep(std::vector<Tensor> parameters, std::vector<Tensor> buffers, PlannedStepOptions options = {});
  ~PlannedStep();

  // Leaves the gradients of the loss in the parameters' grad() and gives back the loss, detached. `check_loss` is
  // called with it before any gradient is in its place; what it throws comes out. REQUIRES: `batch` is all that `loss`
  // reads besides. `is_cancelled` is asked while a planned step runs. Throws Error as the step does.
  Tensor run(std::span<const Tensor> batch, const Loss& loss, const std::function<void(const Tensor&)>& check_loss = {},
             const std::function<bool()>* is_cancelled = nullptr);
  void forget();
  const PlannedStepReport& report() const { return report_; }

 private:
  struct Entry;
  struct Outcome {
    Tensor loss;
    std::vector<Tensor> gradients;  // by parameter; undefined where there is none
    std::vector<Tensor> written;    // what is then in the buffers that are written
  };

  std::vector<Tensor> inputs_of(std::span<const Tensor> batch) const;
  Entry* find(std::span<const Tensor> inputs);
  // Why a step must be interpreted that might otherwise be planned; empty: nothing.
  std::string unsupported_reason() const;
  Tensor interpret(const Loss& loss, const std::function<void(const Tensor&)>& check_loss,
                   std::string* hooks = nullptr);
  Tensor record(Entry& entry, std::span<const Tensor> inputs, const Loss& loss,
                const std::function<void(const Tensor&)>& check_loss);
  void build(Entry& entry, std::span<const Tensor> inputs);
  // Interprets the step of which the plan threw `error`.
  Tensor after_failure(Entry& entry, const Error& error, const Loss& loss,
                       const std::function<void(const Tensor&)>& check_loss);
  Outcome run_plan(Entry& entry, std::span<const Tensor> inputs, const std::function<bool()>* is_cancelled);
  struct Verdict {
    std::string wrong;  // what differs by more than rounding; empty: nothing
    double error = 0;   // PlannedStepReport::error
  };
  // Of the interpreted step, which was just made: its loss, and what it left in the inputs.
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
