#pragma once

#include <string>
#include <vector>

#include "server/executor/model/class_labels.h"
#include "server/executor/model/model.h"
#include "server/executor/strategies/execution_strategy.h"

namespace tensord::server {

// The steps of an ensemble, with its tensors numbered: request inputs first, then the outputs of steps. Immutable.
struct EnsemblePlan {
  // How a tensor passes between a batching model and one without batching: a batch dimension of 1 is added if the
  // tensor has one dimension less than the receiver's shape, or removed if it has one more.
  struct BatchFit {
    enum class Change { kNone, kAdd, kTake };
    Change change = Change::kNone;
    size_t rank = 0;  // of the receiver's shape
  };
  // A tensor of the ensemble and the name of the step's input or output that it is mapped to.
  struct Link {
    std::string name;
    size_t tensor = 0;
    BatchFit fit = {};  // inputs only
  };
  struct Step {
    std::string model;
    std::string version;  // as for ModelDirectory::find
    std::vector<Link> inputs, outputs;
    bool is_decoupled = false;
  };
  std::vector<std::string> tensors;  // names
  std::vector<size_t> inputs;        // tensor number of each input of the signature
  std::vector<size_t> outputs;       // tensor number of each output
  std::vector<BatchFit> output_fits;
  std::vector<std::optional<DataType>> declared;  // by request input: its datatype on the wire
  std::vector<Step> steps;
  Signature signature;
  size_t max_inflight = 0;  // concurrent runs downstream of one decoupled step of a request; 0: no limit

  size_t tensor_named(const std::string& name) const;  // tensors.size() if there is none
};

// Builds the plan from the configuration and the models that it names, which must be loaded. Without configured inputs
// and outputs, the ensemble's inputs are the tensors that no step produces, and its outputs those that no step
// consumes; missing types and shapes are taken from the models. Throws Error{kInvalidArgument} if a tensor has no
// producer or two, steps form a cycle, ensembles contain each other, or names, types, shapes or batch sizes do not fit.
// Throws Error of ModelDirectory::find.
EnsemblePlan plan_ensemble(const std::string& name, const ModelConfig& config, const ModelDirectory& directory);

// The class labels of the ensemble's outputs. Unless configured, they are those of the models that produce the outputs.
ClassLabels ensemble_labels(const ModelConfig& config, const ModelDirectory& directory);

// Whether a step is decoupled, which makes the ensemble decoupled.
bool has_decoupled_step(const ModelConfig& config, const ModelDirectory& directory);

// The ensemble as a Model: it has a signature, but cannot run.
std::unique_ptr<const Model> make_ensemble_model(const std::string& name, const ModelConfig& config,
                                                 const ModelDirectory& directory);

// Runs the requests of an ensemble through its steps.
std::unique_ptr<ExecutionStrategy> make_ensemble_strategy(const StrategyContext& context);

}  // namespace tensord::server
