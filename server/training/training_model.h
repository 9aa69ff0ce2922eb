#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/jit/runtime/module.h"
#include "core/tensor/tensor.h"
#include "server/executor/model/result.h"
#include "server/training/jobs/job_spec.h"

namespace tensord::server {

// The module that a job trains, and how a batch becomes a loss. Not thread-safe.
class TrainingModel {
 public:
  // Loads the archive for training. Throws Error: kInvalidArgument naming the field of the job that does not fit the
  // model, or whatever loading says.
  // `operator_overrides`: operators that run instead of those of the model's code (jit::LoadOptions).
  TrainingModel(const std::string& archive, const LossSpec& loss, const std::map<std::string, std::string>& inputs,
                bool needs_output, std::vector<std::shared_ptr<const ops::Op>> operator_overrides = {});

  // The arrays of the data that a batch has, in this order.
  const std::vector<std::string>& arrays() const { return arrays_; }
  // An array as the model takes it: other floating types become that of the argument, where the model's file has it, or
  // of the parameters.
  Tensor to_model_type(const std::string& name, const Tensor& array) const;

  // The loss of a batch, one tensor for each of arrays(); recorded when grad mode is on. Throws Error when it is not
  // one number; `is_cancelled` ends a run.
  Tensor loss(std::span<const Tensor> batch, const std::function<bool()>& is_cancelled);
  // Of a rank among others, which takes the mean over its own rows: throws Error{kUnimplemented} where a label is the
  // one that does not count, since the ranks' means would weigh such rows otherwise than one process does.
  void check_all_rows_count(std::span<const Tensor> batch) const;

  struct Evaluated {
    Tensor loss;
    Tensor output;  // undefined unless needs_output
    Tensor label;
  };
  // In no-grad mode and with `training` off.
  Evaluated evaluate(std::span<const Tensor> batch, const std::function<bool()>& is_cancelled);

  jit::Module& module() { return *module_; }
  // What the first batch showed of the loss that may not be meant; empty before that, and where there is nothing.
  const std::string& warning() const { return warning_; }
  // The operators of the loss whose result hangs on which rows are computed together, or by which rank: "batch_norm,
  // dropout"; stand-ins are none. Empty: none is known.
  std::string local_operators() const;
  // The methods of the module that loss() runs.
  std::vector<std::string> methods_of_loss() const;
  // Whether an operator of the loss has a choice of sparse gradients, as tables do.
  bool may_have_sparse_gradients() const;
  // Those that require a gradient, by name.
  std::vector<std::pair<std::string, Tensor>> trained_parameters() const;

 private:
  // A method and where its arguments are among arrays(): -1 for its default.
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
  Tensor output_of(const ops::Value& result) const;
  Tensor compare(const Tensor& output, const Tensor& label) const;

  const LossSpec spec_;
  std::shared_ptr<jit::Module> module_;
  std::unique_ptr<jit::Frame> frame_;
  std::vector<std::string> arrays_;
  std::map<std::string, DType> declared_;  // of floats among them, where the model's file says their type
  ResultNames result_names_;               // of forward
  Call loss_call_;                         // with a method
  Call forward_call_;                      // with a built-in loss, or for metrics
  int label_ = -1;
  bool is_first_ = true;  // no loss was computed yet
  std::string warning_;
  DType dtype_ = DType::kFloat32;  // of the parameters
};

}  // namespace tensord::server
