#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/ops/registry.h"
#include "server/commands/commands.h"

namespace tensord::server {
namespace {

std::string properties(const ops::Op& op) {
  const ops::Op& base = op.base ? *op.base : op;
  std::string out;
  const auto add = [&](bool holds, const char* name) {
    if (holds) out += (out.empty() ? "" : ", ") + std::string(name);
  };
  add(static_cast<bool>(base.kernels[static_cast<size_t>(kCUDA)]), "cuda");
  add(op.is_view, "view");
  add(base.is_pointwise, "pointwise");
  add(base.is_reduction, "reduction");
  add(op.is_random, "random");
  add(op.has_dynamic_shape, "dynamic shape");
  add(static_cast<bool>(base.gradient), "gradient");
  return out;
}

// What docs/operators.md is made from, by scripts/operator_reference.py.
nlohmann::ordered_json record_of(const ops::Op& op) {
  const ops::Op& base = op.base ? *op.base : op;
  std::vector<std::string> devices;
  for (size_t kind = 0; kind < kDeviceKinds; ++kind) {
    if (base.kernels[kind]) devices.emplace_back(name_of(static_cast<DeviceKind>(kind)));
  }
  const bool is_prepared = std::any_of(base.prepare.begin(), base.prepare.end(), [](const auto& f) { return !!f; });
  return {{"name", op.schema.full_name()},
          {"schema", op.schema.str()},
          {"base", op.base ? op.base->schema.full_name() : ""},
          {"devices", devices},
          {"differentiable", static_cast<bool>(base.gradient) || base.is_composite},
          {"view", op.is_view},
          {"random", op.is_random},
          {"dynamic_shape", op.has_dynamic_shape},
          {"fused", base.formula != nullptr},
          {"joined", static_cast<bool>(base.epilogue)},
          {"packed", static_cast<bool>(base.pack)},
          {"prepared", is_prepared}};
}

}  // namespace

void add_ops_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("ops", "List the operators that scripts may use");
  auto prefix = std::make_shared<std::string>();
  command->add_option("PREFIX", *prefix, "Only names that start so, such as aten::conv");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json,
                    "A JSON object a line, with how each runs: devices, gradient, fused and prepared forms");
  command->callback([prefix, as_json, exit_code] {
    *exit_code = 0;
    for (const ops::Op* op : ops::all_ops()) {
      if (!op->schema.full_name().starts_with(*prefix)) continue;
      if (*as_json) {
        std::cout << record_of(*op).dump() << '\n';
        continue;
      }
      const std::string flags = properties(*op);
      std::cout << op->schema.str() << (flags.empty() ? "" : "   # " + flags) << '\n';
    }
  });
}

}  // namespace tensord::server
