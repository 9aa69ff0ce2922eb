#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/jit/runtime/module.h"
#include "core/tensor/tensor.h"
#include "server/executor/model/result.h"
#include "server/training/jobs/job_spec.h"

namespace tensord::server {

// The module that a job trains, and how it computes a batch's loss. Not thread-safe.
class TrainingModel {
 public:
  // Loads the archive for training. Throws Error: kInvalidArgument naming the job's field that does not fit the model,
  // or a loading error. `operator_overrides`: see jit::LoadOptions. `autocast`: the type in which the loss is computed.
  TrainingModel(const std::string& archive, const LossSpec& loss, const std::map<std::string, std::string>& inputs,
                bool needs_output, std::vector<std::shared_ptr<const ops::Op>> operator_overrides = {},
                Device device = {}, std::optional<DType> autocast = std::nullopt);

  // Modules whose activations are computed again in the backward pass: patterns of their names, or "auto"; see
  // protos/training.proto. Throws Error{kInvalidArgument} for a pattern that no module matches.
  void checkpoint_activations(const std::vector<std::string>& patterns);

  // Uses methods of the script as metrics: those of `metrics` that are named metric_…(output, label). Throws
  // Error{kInvalidArgument} if there is no such method, or it takes other arguments.
  void use_metrics(const std::vector<std::string>& metrics);

  // The names of the data arrays that make up a batch, in this order.
  const std::vector<std::string>& arrays() const { return arrays_; }
  // Converts an array to what the model takes: floating-point types become the argument's type if the model's file
  // declares it, otherwise the parameters' type.
  Tensor to_model_type(const std::string& name, const Tensor& array) const;

  Device device() const { return device_; }
  // The tensors of a batch on it.
  std::vector<Tensor> on_device(std::span<const Tensor> batch) const;
  // The loss of a batch on it, given one tensor per array; recorded in grad mode. Throws Error if it is not a single
  // number. `is_cancelled` stops a run.
  Tensor loss(std::span<const Tensor> batch, const std::function<bool()>& is_cancelled);
  // For a rank that averages over its own rows: throws Error{kUnimplemented} if a label has the ignored value, because
  // the mean of the ranks' means would then differ from the mean of one process.
  void check_all_rows_count(std::span<const Tensor> batch) const;

  struct Evaluated {
    Tensor loss;
    Tensor output;  // undefined unless needs_output
    Tensor label;
    std::map<std::string, double> metrics;  // of use_metrics()
  };
  // In no-grad mode with `training` off.
  Evaluated evaluate(std::span<const Tensor> batch, const std::function<bool()>& is_cancelled);

  jit::Module& module() { return *module_; }
  // A warning about the loss, known after the first batch; may be empty.
  const std::string& warning() const { return warning_; }
  // The operators of the loss whose result depends on which rows are computed together or on the rank: "batch_norm,
  // dropout"; overridden operators are not listed. Empty: none known.
  std::string local_operators() const;
  // The module's methods that loss() runs.
  std::vector<std::string> methods_of_loss() const;
  // Whether an operator of the loss may produce sparse gradients, as embeddings can.
  bool may_have_sparse_gradients() const;
  // The parameters that require a gradient, by name.
  std::vector<std::pair<std::string, Tensor>> trained_parameters() const;

 private:
  // A method and the index of each argument in arrays(); -1: its default.
  struct Call {
    const jit::Method* method = nullptr;
    std::vector<int> arguments;
    std::vector<bool> is_written;  // the method may write to the argument
  };
  void check_output() const;
  bool is_output(const std::string& name) const;
  Call bind(const std::string& method, const std::map<std::string, std::string>& inputs);
  int index_of(const std::string& array);
  const jit::Block* block_of_loss() const;
  ops::Value run(const Call& call, std::span<const Tensor> batch, const std::function<bool()>& is_cancelled);
  // The same in the job's precision.
  ops::Value run_in_precision(const Call& call, std::span<const Tensor> batch,
                              const std::function<bool()>& is_cancelled);
  // In float32 at least: losses and metrics are.
  Tensor output_of(const ops::Value& result) const;
  Tensor find_output(const ops::Value& result) const;
  Tensor compare(const Tensor& output, const Tensor& label) const;

  const LossSpec spec_;
  const Device device_;
  const std::optional<DType> autocast_;  // none: in the types of the parameters
  std::shared_ptr<jit::Module> module_;
  std::unique_ptr<jit::Frame> frame_;
  std::vector<std::string> arrays_;
  std::map<std::string, DType> declared_;     // declared types of floating-point arrays
  ResultNames result_names_;                  // of forward
  Call loss_call_;                            // with a method as loss
  Call forward_call_;                         // with a built-in loss, or for metrics
  std::map<std::string, Call> metric_calls_;  // whose arguments are the output and the label
  int label_ = -1;
  bool is_first_ = true;  // no loss was computed yet
  std::string warning_;
  DType dtype_ = DType::kFloat32;  // of the parameters
  Tensor class_weights_;           // undefined: none
};

}  // namespace tensord::server
