#pragma once

#include <string>
#include <vector>

#include "server/config/model_config.h"
#include "server/executor/model/model.h"

namespace tensord::server {

// Applies the configuration of an input or output: name (the old one becomes an alias), data_type, dims and reshape.
// Throws Error that starts with `file`.
void apply_config(const ModelConfig::TensorConfig& config, const std::string& file, bool has_batch, TensorSpec& spec);

// Makes names unique: removes aliases that are the name of another tensor or an alias of an earlier one.
void keep_names_apart(std::vector<TensorSpec>& specs);

// The number at the end of "NAME__3", or `otherwise`.
size_t trailing_index(const std::string& name, size_t otherwise);

// Whether the name is `prefix` followed by a number.
bool is_numbered(const std::string& name, const std::string& prefix);

// "'a', 'b'".
std::string names_of(const std::vector<TensorSpec>& specs);

// Which results are returned, under which names and in which order: the configured outputs, plus those that sequences
// and generation need; without configured outputs, all results. Immutable.
class ConfiguredOutputs {
 public:
  ConfiguredOutputs() = default;
  // `own`: the results that the return type describes; `own_is_complete`: there are no others. `numbered`: the prefix
  // of the names of results that the type does not describe. `has_own_names`: configured names with a number do not
  // select a result by position, as they do in Triton for TorchScript, except for OUTPUT__0 …. Throws Error.
  ConfiguredOutputs(const std::string& file, std::vector<TensorSpec> own, bool own_is_complete,
                    const ModelConfig& config, std::string numbered = "OUTPUT__", bool has_own_names = false);

  const std::vector<TensorSpec>& specs() const { return specs_; }
  bool is_complete() const { return is_complete_; }
  // The index of an output among the results; -1 if it is not known before a run.
  int own_index(size_t output) const { return bindings_[output].own_index; }

  // Throws Error{kFailedPrecondition} if the results do not match the configuration.
  void apply(std::vector<InferTensor>& outputs) const;

 private:
  struct Binding {
    int own_index = -1;
    std::string own_name;    // name of the result before it is renamed
    std::string positional;  // second name, if the type does not describe the result
  };
  void add(const std::string& file, const ModelConfig::TensorConfig& output, size_t place, bool has_batch);
  void keep(const std::string& name);
  InferTensor take(std::vector<InferTensor>& outputs, const Binding& binding, const std::string& name) const;
  void finish(InferTensor& output, const TensorSpec& spec) const;

  std::string numbered_;
  bool has_own_names_ = false;
  std::vector<TensorSpec> own_;
  bool own_is_complete_ = true;
  bool is_complete_ = true;
  bool selects_ = false;  // the configuration lists outputs
  bool has_batch_ = false;
  std::vector<TensorSpec> specs_;
  std::vector<Binding> bindings_;  // by index in specs_
};

}  // namespace tensord::server
