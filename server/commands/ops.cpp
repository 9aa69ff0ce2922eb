#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>
#include <string>

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

}  // namespace

void add_ops_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("ops", "List the operators that scripts may use");
  auto prefix = std::make_shared<std::string>();
  command->add_option("PREFIX", *prefix, "Only names that start so, such as aten::conv");
  command->callback([prefix, exit_code] {
    *exit_code = 0;
    for (const ops::Op* op : ops::all_ops()) {
      if (!op->schema.full_name().starts_with(*prefix)) continue;
      const std::string flags = properties(*op);
      std::cout << op->schema.str() << (flags.empty() ? "" : "   # " + flags) << '\n';
    }
  });
}

}  // namespace tensord::server
