#include "server/commands/client/optimizer_options.h"

#include <algorithm>
#include <cctype>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "core/base/error.h"
#include "core/nn/optim/optimizer_info.h"
#include "server/commands/client/json_line.h"
#include "server/commands/client/table.h"

namespace tensord::server {
namespace {

using Kind = nn::OptionInfo::Kind;

std::string flag_of(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + name;
}

std::string default_text(const nn::OptionInfo& option) {
  if (option.kind == Kind::kFlag) return option.default_value != 0 ? "true" : "false";
  return concat(option.default_value);
}

std::string join(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

// Help such as "Of sgd, rmsprop: momentum; default 0".
std::string help_of(const nn::OptionInfo& option) {
  std::vector<std::string> owners;
  std::map<std::string, std::vector<std::string>> by_default;
  for (const nn::OptimizerInfo* info : nn::optimizer_infos()) {
    const nn::OptionInfo* const own = info->find(option.name);
    if (own == nullptr) continue;
    owners.push_back(info->name);
    by_default[default_text(*own)].push_back(info->name);
  }
  std::string text = option.text;
  if (owners.size() < nn::optimizer_infos().size()) {
    text = "Of " + join(owners) + ": " + text;
  } else {
    text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  }
  if (option.kind == Kind::kFlag) return text;
  text += "; default ";
  if (by_default.size() == 1) return text + by_default.begin()->first;
  std::vector<std::string> parts;
  for (const auto& [value, names] : by_default) parts.push_back(concat(value, " (", join(names), ")"));
  return text + join(parts);
}

void add_option_flag(CLI::App& command, const nn::OptionInfo& option, OptimizerSpec& spec) {
  const std::string flag = flag_of(option.name), help = help_of(option);
  const auto set = [&spec, name = option.name](double value) { spec.options[name] = value; };
  switch (option.kind) {
    case Kind::kFlag:
      command.add_flag_callback(
          flag, [set] { set(1); }, help);
      break;
    case Kind::kInteger:
      command.add_option_function<int64_t>(
          flag, [set](int64_t value) { set(static_cast<double>(value)); }, help);
      break;
    case Kind::kNumber: command.add_option_function<double>(flag, set, help); break;
  }
}

}  // namespace

void add_optimizer_options(CLI::App& command, OptimizerSpec& spec) {
  command.add_option("--optimizer", spec.name, nn::optimizer_names() + "; default adamw");
  std::set<std::string> seen;
  for (const nn::OptimizerInfo* info : nn::optimizer_infos()) {
    for (const nn::OptionInfo& option : info->options) {
      if (seen.insert(option.name).second) add_option_flag(command, option, spec);
    }
  }
}

void print_optimizers(bool as_json) {
  nlohmann::json all = nlohmann::json::array();
  Table table({"optimizer", "option", "default", "range", "meaning"});
  for (const nn::OptimizerInfo* info : nn::optimizer_infos()) {
    nlohmann::json options = nlohmann::json::array();
    for (const nn::OptionInfo& option : info->options) {
      table.add({info->name, option.name, default_text(option), option.range_text(), option.text});
      options.push_back({{"name", option.name},
                         {"default", default_text(option)},
                         {"range", option.range_text()},
                         {"text", option.text}});
    }
    all.push_back({{"name", info->name}, {"needs_closure", info->needs_closure}, {"options", std::move(options)}});
  }
  if (as_json) {
    print_json_line(all);
  } else {
    table.print(std::cout);
  }
}

}  // namespace tensord::server
