#include "server/training/jobs/optimizer_checks.h"

#include <algorithm>

#include "core/base/error.h"

namespace tensord::server {
namespace {

constexpr const char* kDefault = "adamw";
// Maximum of integer options, which count repetitions or history entries.
constexpr double kMaxCount = 10000;

void check_values(const std::string& field, const nn::OptimizerInfo& info, const OptionValues& values) {
  for (const auto& [name, value] : values) {
    const nn::OptionInfo* const option = info.find(name);
    check(option != nullptr, field, name, ": ", info.name, " has none");
    const bool is_count = option->kind == nn::OptionInfo::Kind::kInteger;
    check(option->allows(value) && (!is_count || value <= kMaxCount), field, name, ": must be a ",
          is_count ? "whole number of " : "number of ", option->range_text(),
          is_count ? concat(" and at most ", kMaxCount) : std::string(), ", got ", value);
  }
}

// Checks options that depend on each other: `values` override the optimizer's defaults.
void check_rules(const std::string& field, const nn::OptimizerInfo& info, OptionValues values) {
  for (const nn::OptionInfo& option : info.options) values.try_emplace(option.name, option.default_value);
  const nn::Options options = info.to_options(values);
  for (const nn::OptionRule& rule : info.rules) check(rule.holds(options), field, rule.option, ": ", rule.text);
}

}  // namespace

const nn::OptimizerInfo& optimizer_of(const OptimizerSpec& spec) {
  const nn::OptimizerInfo* const info = nn::find_optimizer(spec.name);
  check(info != nullptr && info->name == spec.name, "optimizer.name: '", spec.name, "' is not one of ",
        nn::optimizer_names());
  return *info;
}

void check_optimizer(OptimizerSpec& spec, size_t max_groups) {
  if (spec.name.empty()) spec.name = kDefault;
  const nn::OptimizerInfo& info = optimizer_of(spec);
  check_values("optimizer.", info, spec.options);
  const auto lr = spec.options.find("lr");
  // Groups may have a learning rate of 0, but the job as a whole may not.
  check(lr == spec.options.end() || lr->second > 0, "optimizer.lr: must be a number above 0, got 0");
  check_rules("optimizer.", info, spec.options);
  check(spec.groups.size() <= max_groups, "optimizer.groups: more than ", max_groups);
  const bool only_freeze =
      std::all_of(spec.groups.begin(), spec.groups.end(), [](const auto& group) { return group.freeze; });
  check(!info.needs_closure || only_freeze, "optimizer.groups: ", info.name,
        " has the same values for all parameters; groups can only freeze");
  for (const ParameterGroupSpec& group : spec.groups) {
    check(!group.pattern.empty(), "optimizer.groups.pattern: is empty");
    check_values("optimizer.groups.", info, group.options);
    OptionValues all = group.options;
    all.insert(spec.options.begin(), spec.options.end());
    check_rules("optimizer.groups.", info, all);
  }
}

}  // namespace tensord::server
