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

// What there is to know of an option of an optimizer. The engine's checks, and of training jobs the checks, JSON, flags
// and pages, are made from it. An option of one name means the same, in the same kind, for all optimizers.
struct OptionInfo {
  enum class Kind { kNumber, kInteger, kFlag };
  std::string name;  // "lr"; the two numbers of "betas" are "beta1" and "beta2"
  Kind kind = Kind::kNumber;
  double default_value = 0;
  double min = 0;  // of numbers; they are finite, whatever else
  double max = std::numeric_limits<double>::infinity();
  bool is_below_most = false;   // `most` itself is too much
  bool is_above_least = false;  // `least` itself is too little
  std::string text;             // "learning rate"
  std::string error_text =
      {};                    // before a value out of range; empty: the optimizer takes any, as PyTorch's, and jobs not
  std::string in_pair = {};  // "betas": the optimizer's own option that has it as a part; else it is `name`
  int pair_index = 0;

  bool allows(double value) const;
  // "at least 0 and below 1"
  std::string range_text() const;
};

// What options must be to each other.
struct OptionRule {
  std::string option;  // that is named when it is broken
  std::string text;    // "Nesterov momentum requires a momentum and zero dampening"
  bool (*holds)(const Options& options);
};

// One optimizer: all that others need to know of it. Each is in the file of its class.
struct OptimizerInfo {
  std::string name;  // "adamw"
  std::vector<OptionInfo> options;
  std::vector<OptionRule> rules = {};
  // A step computes the loss again and again (Optimizer::Closure), and all parameters have the same options.
  bool needs_closure = false;
  std::unique_ptr<Optimizer> (*make)(std::vector<ParamGroup> groups, const Options& options) = nullptr;

  const OptionInfo* find(std::string_view option) const;  // null: it has none of that name
  // By the names here → as the optimizer takes them. REQUIRES: names that it has.
  Options to_options(const std::map<std::string, double>& values) const;
  // Throws Error{kInvalidArgument} for what is out of its range, or breaks a rule, with PyTorch's text. REQUIRES: all
  // options are there.
  void check(const Options& options) const;
};

const OptimizerInfo& sgd_info();
const OptimizerInfo& adam_info();
const OptimizerInfo& adamw_info();
const OptimizerInfo& rmsprop_info();
const OptimizerInfo& adagrad_info();
const OptimizerInfo& sparseadam_info();
const OptimizerInfo& lbfgs_info();

// All optimizers, in the order in which they are listed.
std::span<const OptimizerInfo* const> optimizer_infos();
// In any case; null: there is none of that name.
const OptimizerInfo* find_optimizer(std::string_view name);
// "sgd, adam, …"
std::string optimizer_names();
// The option of that name, as the first optimizer that has it says; null: none has.
const OptionInfo* find_option(std::string_view name);

}  // namespace tensord::nn
