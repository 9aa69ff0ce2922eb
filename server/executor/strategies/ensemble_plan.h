#pragma once

#include <string>
#include <vector>

#include "server/executor/model/class_labels.h"
#include "server/executor/model/model.h"
#include "server/executor/strategies/execution_strategy.h"

namespace tensord::server {

// The steps of an ensemble with its tensors as numbers: those that requests bring first, then what steps make.
// Immutable.
struct EnsemblePlan {
  // A tensor on its way between a model with batches and one without: a batch of 1 is added where the sizes are one
  // fewer than the taker's, or taken away where they are one more.
  struct BatchFit {
    enum class Change { kNone, kAdd, kTake };
    Change change = Change::kNone;
    size_t rank = 0;  // of the taker's shape
  };
  // A tensor of the ensemble, and what the step's model calls it.
  struct Link {
    std::string name;
    size_t tensor = 0;
    BatchFit fit = {};  // of inputs
  };
  struct Step {
    std::string model;
    std::string version;  // as ModelDirectory::find takes it
    std::vector<Link> inputs, outputs;
    bool is_decoupled = false;
  };
  std::vector<std::string> tensors;  // names
  std::vector<size_t> inputs;        // the tensor of each input of the signature
  std::vector<size_t> outputs;       // and of each output
  std::vector<BatchFit> output_fits;
  std::vector<std::optional<DataType>> declared;  // of each tensor that requests bring: its type on the wire
  std::vector<Step> steps;
  Signature signature;
  size_t max_inflight = 0;  // runs at a time below one decoupled step of a request; 0: any number

  size_t tensor_named(const std::string& name) const;  // tensors.size() when there is none
};

// From the configuration and the models that it names, which must be there. Inputs and outputs that are not configured
// are the tensors that no step makes, and those that no step takes; types and shapes that are not, those of the models.
// Throws Error{kInvalidArgument} where a tensor has no maker or two, steps wait for each other, names, types, shapes or
// batch sizes do not fit, or ensembles need each other; Error of ModelDirectory::find.
EnsemblePlan plan_ensemble(const std::string& name, const ModelConfig& config, const ModelDirectory& directory);

// The classes of its outputs: those of the steps' models that make them, where it configures none itself.
ClassLabels ensemble_labels(const ModelConfig& config, const ModelDirectory& directory);

// Whether one of its steps answers as often as it likes, and with it the ensemble.
bool has_decoupled_step(const ModelConfig& config, const ModelDirectory& directory);

// The ensemble as a model: a signature, and nothing that runs.
std::unique_ptr<const Model> make_ensemble_model(const std::string& name, const ModelConfig& config,
                                                 const ModelDirectory& directory);

// Its requests' way through the steps.
std::unique_ptr<ExecutionStrategy> make_ensemble_strategy(const StrategyContext& context);

}  // namespace tensord::server
