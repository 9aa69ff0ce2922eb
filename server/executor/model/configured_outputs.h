#pragma once

#include <string>
#include <vector>

#include "server/config/model_config.h"
#include "server/executor/model/model.h"

namespace tensord::server {

// Lays what the configuration says of an input or output over what the model's code says: name (the old one becomes an
// alias), data_type, dims and reshape. Throws Error that begins with `file`.
void apply_config(const ModelConfig::TensorConfig& config, const std::string& file, bool has_batch, TensorSpec& spec);

// A name means one tensor, and that of a tensor comes before what others answer to: takes away aliases that are the
// name of another one, or an alias of one before.
void keep_names_apart(std::vector<TensorSpec>& specs);

// The number at the end of "NAME__3", or `otherwise`.
size_t trailing_index(const std::string& name, size_t otherwise);

// Whether the name is `prefix` and a number.
bool is_numbered(const std::string& name, const std::string& prefix);

// "'a', 'b'".
std::string names_of(const std::vector<TensorSpec>& specs);

// Which results of a run are answered with, as what and in which order. Where the configuration lists outputs: those,
// as Triton has it, and what sequences and generation need; else all that the model returns. Immutable.
class ConfiguredOutputs {
 public:
  ConfiguredOutputs() = default;
  // `own` are the results as the return type describes them; `own_is_complete`: a run gives no others. `numbered` is
  // what stands before the number in the names of results that the type does not tell. `has_own_names`: names with a
  // number, as Triton has them for TorchScript, are no places among the results, but for OUTPUT__0 …. Throws Error.
  ConfiguredOutputs(const std::string& file, std::vector<TensorSpec> own, bool own_is_complete,
                    const ModelConfig& config, std::string numbered = "OUTPUT__", bool has_own_names = false);

  const std::vector<TensorSpec>& specs() const { return specs_; }
  bool is_complete() const { return is_complete_; }
  // Of an output, its number among the results; -1 where that is not known before a run.
  int own_index(size_t output) const { return bindings_[output].own_index; }

  // Throws Error{kFailedPrecondition} when the results are not what the configuration says they are.
  void apply(std::vector<InferTensor>& outputs) const;

 private:
  struct Binding {
    int own_index = -1;
    std::string own_name;    // as the result is called before
    std::string positional;  // another name it may have, where its type does not tell
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
  std::vector<Binding> bindings_;  // of each of specs_
};

}  // namespace tensord::server
