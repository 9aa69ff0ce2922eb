#pragma once

#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/nn/optim/optimizer.h"

namespace tensord::nn {

// Metadata of an optimizer's option. The engine's checks, and the checks, JSON, flags and documentation of training
// jobs are derived from it. Options of one name have the same meaning and type in all optimizers.
struct OptionInfo {
  enum class Kind { kNumber, kInteger, kFlag };
  std::string name;  // "lr"; the two numbers of "betas" are "beta1" and "beta2"
  Kind kind = Kind::kNumber;
  double default_value = 0;
  double min = 0;  // of numbers, which must be finite
  double max = std::numeric_limits<double>::infinity();
  bool is_below_most = false;   // `max` itself is out of range
  bool is_above_least = false;  // `min` itself is out of range
  std::string text;             // "learning rate"
  std::string error_text = {};  // message prefix for a value out of range; empty: the optimizer accepts any value, as
                                // PyTorch does, but jobs check the range
  std::string in_pair = {};     // "betas": the optimizer's own option that has it as a part; else it is `name`
  int pair_index = 0;

  bool allows(double value) const;
  // "at least 0 and below 1"
  std::string range_text() const;
};

// A constraint between options.
struct OptionRule {
  std::string option;  // named if the rule is violated
  std::string text;    // "Nesterov momentum requires a momentum and zero dampening"
  bool (*holds)(const Options& options);
};

// Everything that other code needs to know of an optimizer. Each definition is in the file of its class.
struct OptimizerInfo {
  std::string name;  // "adamw"
  std::vector<OptionInfo> options;
  std::vector<OptionRule> rules = {};
  // A step recomputes the loss several times (Optimizer::Closure), and all parameters have the same options.
  bool needs_closure = false;
  std::unique_ptr<Optimizer> (*make)(std::vector<ParamGroup> groups, const Options& options) = nullptr;

  const OptionInfo* find(std::string_view option) const;  // null: it has no option of that name
  // Converts names of this table to the optimizer's own. REQUIRES: known names.
  Options to_options(const std::map<std::string, double>& values) const;
  // Throws Error{kInvalidArgument} with PyTorch's message if an option is out of range or a rule is violated. REQUIRES:
  // all options are set.
  void check(const Options& options) const;
};

const OptimizerInfo& sgd_info();
const OptimizerInfo& adam_info();
const OptimizerInfo& adamw_info();
const OptimizerInfo& rmsprop_info();
const OptimizerInfo& adagrad_info();
const OptimizerInfo& sparseadam_info();
const OptimizerInfo& lbfgs_info();

// All optimizers, in listing order.
std::span<const OptimizerInfo* const> optimizer_infos();
// Case-insensitive; null if there is no such optimizer.
const OptimizerInfo* find_optimizer(std::string_view name);
// "sgd, adam, …"
std::string optimizer_names();
// The option of that name in the first optimizer that has it; null if none has.
const OptionInfo* find_option(std::string_view name);

}  // namespace tensord::nn
