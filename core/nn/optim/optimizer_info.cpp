#include "core/nn/optim/optimizer_info.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/base/error.h"

namespace tensord::nn {
namespace {

using ops::Value;

Value to_value(const OptionInfo& option, double value) {
  switch (option.kind) {
    case OptionInfo::Kind::kFlag: return Value(value != 0);
    case OptionInfo::Kind::kInteger: return Value(static_cast<int64_t>(value));
    case OptionInfo::Kind::kNumber: break;
  }
  return Value(value);
}

}  // namespace

bool OptionInfo::allows(double value) const {
  if (kind == Kind::kFlag) return value == 0 || value == 1;
  if (!std::isfinite(value) || value < min || (is_above_least && value == min) ||
      (kind == Kind::kInteger && value != std::floor(value)))
    return false;
  return is_below_most ? value < max : value <= max;
}

std::string OptionInfo::range_text() const {
  if (kind == Kind::kFlag) return "true or false";
  std::string out = concat(is_above_least ? "above " : "at least ", min);
  if (max != std::numeric_limits<double>::infinity()) {
    out += concat(is_below_most ? " and below " : " and at most ", max);
  }
  return out;
}

const OptionInfo* OptimizerInfo::find(std::string_view option) const {
  const auto found =
      std::find_if(options.begin(), options.end(), [&](const auto& item) { return item.name == option; });
  return found == options.end() ? nullptr : &*found;
}

Options OptimizerInfo::to_options(const std::map<std::string, double>& values) const {
  Options out;
  std::map<std::string, std::pair<double, double>> pairs;
  for (const auto& [name, value] : values) {
    const OptionInfo& option = *find(name);
    if (option.in_pair.empty()) {
      out.set(name, to_value(option, value));
    } else {
      pairs[option.in_pair] = {};
    }
  }
  for (auto& [pair, parts] : pairs) {
    for (const OptionInfo& option : options) {
      if (option.in_pair != pair) continue;
      const auto given = values.find(option.name);
      (option.pair_index == 0 ? parts.first : parts.second) =
          given == values.end() ? option.default_value : given->second;
    }
    out.set(pair, ops::make_tuple({Value(parts.first), Value(parts.second)}));
  }
  return out;
}

void OptimizerInfo::check(const Options& all) const {
  for (const OptionInfo& option : options) {
    if (option.kind == OptionInfo::Kind::kFlag) {
      all.flag(option.name);
      continue;
    }
    double value = 0;
    if (option.in_pair.empty()) {
      value = option.kind == OptionInfo::Kind::kInteger ? static_cast<double>(all.integer(option.name))
                                                        : all.number(option.name);
    } else {
      const auto [first, second] = all.pair(option.in_pair);
      value = option.pair_index == 0 ? first : second;
    }
    // Like PyTorch's comparisons, these accept infinity.
    const bool is_enough = option.is_above_least ? value > option.min : value >= option.min;
    const bool is_fine = is_enough && (option.is_below_most ? value < option.max : value <= option.max);
    tensord::check(option.error_text.empty() || is_fine, option.error_text, value);
  }
  for (const OptionRule& rule : rules) tensord::check(rule.holds(all), rule.text);
}

// To register an optimizer, add it here.
std::span<const OptimizerInfo* const> optimizer_infos() {
  static const OptimizerInfo* const all[] = {&sgd_info(),     &adam_info(),       &adamw_info(), &rmsprop_info(),
                                             &adagrad_info(), &sparseadam_info(), &lbfgs_info()};
  return all;
}

const OptimizerInfo* find_optimizer(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const OptimizerInfo* info : optimizer_infos()) {
    if (info->name == lower) return info;
  }
  return nullptr;
}

std::string optimizer_names() {
  std::string out;
  for (const OptimizerInfo* info : optimizer_infos()) out += (out.empty() ? "" : ", ") + info->name;
  return out;
}

const OptionInfo* find_option(std::string_view name) {
  for (const OptimizerInfo* info : optimizer_infos()) {
    if (const OptionInfo* found = info->find(name)) return found;
  }
  return nullptr;
}

std::unique_ptr<Optimizer> make_optimizer(std::string_view kind, std::vector<ParamGroup> groups,
                                          const Options& options) {
  const OptimizerInfo* const info = find_optimizer(kind);
  if (info == nullptr) {
    fail(ErrorCode::kInvalidArgument, "unknown optimizer \"", kind, "\"; there are ", optimizer_names());
  }
  return info->make(std::move(groups), options);
}

}  // namespace tensord::nn
