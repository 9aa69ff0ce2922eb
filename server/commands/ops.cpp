#include <CLI/CLI.hpp>

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/nearest.h"
#include "core/base/printable.h"
#include "core/ops/attributes/packed.h"
#include "core/ops/attributes/runs_on_host.h"
#include "core/ops/dispatch.h"
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
  add(base.has_fill(kCUDA), "cuda");
  if (const auto* on_host = base.attributes.get<ops::RunsOnHost>())
    add(true, concat("cuda by a copy to the host: ", on_host->reason).c_str());
  add(op.is_view, "view");
  add(base.is_pointwise, "pointwise");
  add(base.is_reduction, "reduction");
  add(op.is_random, "random");
  add(op.has_dynamic_shape, "dynamic shape");
  add(static_cast<bool>(base.gradient), "gradient");
  return out;
}

// Sample values for all arguments except tensors.
std::vector<ops::Value> sample_arguments(const ops::Schema& schema) {
  const Tensor one = Tensor::empty(Dims{1}, DType::kFloat32);
  *one.data<float>() = 1;
  std::vector<ops::Value> out;
  for (const ops::Argument& argument : schema.arguments) {
    const bool is_optional = argument.type->kind() == ops::TypeKind::kOptional;
    const ops::TypeKind kind = (is_optional ? argument.type->element() : argument.type)->kind();
    if (kind == ops::TypeKind::kTensor) {
      out.push_back(is_optional ? ops::Value(one) : ops::Value());
    } else if (argument.default_value && !argument.default_value->is_none()) {
      out.push_back(*argument.default_value);
    } else {
      out.push_back(kind == ops::TypeKind::kBool ? ops::Value(false) : ops::Value(1.0));
    }
  }
  return out;
}

// Whether a layer with packed weights can run the operator as its epilogue.
bool is_joined(const ops::Op& op) {
  const auto* joins = op.attributes.get<ops::EpilogueMaker>();
  const ops::Op& linear = ops::get_op("aten::linear");
  const ops::PackFn& pack = linear.pack[static_cast<size_t>(DeviceKind::kCPU)];
  if (!joins || !pack) return false;
  const std::vector<ops::Value> arguments = sample_arguments(op.schema);
  const auto epilogue = joins->says(arguments);
  if (!epilogue) return false;
  const Tensor weight = Tensor::empty(Dims{1, 1}, DType::kFloat32);
  const ops::Value of_linear[] = {ops::Value(), weight, ops::Value()};
  const auto packed = pack({linear, of_linear, ops::Precision::kF32, std::make_shared<ops::PackStore>()});
  return packed && packed->with({&op, arguments, 0, -1}, *epilogue);
}

// The record of one operator, from which scripts/operator_reference.py makes docs/operators.md.
nlohmann::ordered_json record_of(const ops::Op& op) {
  const ops::Op& base = op.base ? *op.base : op;
  std::vector<std::string> devices;
  const bool has_devices = base.kind == ops::OpKind::kStructured || base.kind == ops::OpKind::kAllocating;
  for (const DeviceKind kind : {kCPU, kCUDA}) {
    if (has_devices && base.kernel(kind) && base.kernel(kind) != &ops::kOnHost) devices.emplace_back(name_of(kind));
  }
  const auto* const on_host = base.attributes.get<ops::RunsOnHost>();
  const auto has_any = [](const auto& by_device) {
    return std::any_of(by_device.begin(), by_device.end(), [](const auto& function) { return !!function; });
  };
  return {{"name", op.schema.full_name()},
          {"schema", op.schema.str()},
          {"base", op.base ? op.base->schema.full_name() : ""},
          {"devices", devices},
          {"on_host", on_host ? on_host->reason : ""},
          {"differentiable", static_cast<bool>(base.gradient) || base.is_composite},
          {"view", op.is_view},
          {"random", op.is_random},
          {"dynamic_shape", op.has_dynamic_shape},
          {"fused", base.formula != nullptr},
          {"joined", is_joined(base)},
          {"packed", has_any(base.pack)},
          {"prepared", has_any(base.prepare)}};
}

// Escaped, so that a default with a newline in it stays on one line.
std::string line_of(const ops::Op& op) {
  const std::string flags = properties(op);
  return to_printable(op.schema.str()) + (flags.empty() ? "" : "   # " + flags);
}

// "kernels/sparse/arithmetic.cpp:12", from where the sources lie.
std::string place_of(const std::source_location& origin) {
  std::string_view file = origin.file_name();
  for (const std::string_view folder : {"kernels/", "core/", "tests/"}) {
    if (const size_t at = file.rfind(folder); at != std::string_view::npos) {
      file.remove_prefix(at);
      break;
    }
  }
  return concat(file, ":", origin.line());
}

// The operator's row of the dispatch table: a line for each cell that has code, in the order in which calls go through.
void print_table(const ops::Op& op) {
  static constexpr const char* kDevices[kDeviceKinds] = {"CPU", "CUDA", "PrivateUse"};
  std::cout << op.schema.full_name() << '\n';
  const auto* const on_host = op.attributes.get<ops::RunsOnHost>();
  const auto line = [&](const char* functionality, const std::string& device, const ops::KernelFunction& kernel) {
    std::cout << "  " << std::left << std::setw(17) << functionality << std::setw(12) << device
              << place_of(kernel.origin);
    if (&kernel == &ops::kOnHost) std::cout << "   # the CPU's, by a copy to the host and back: " << on_host->reason;
    std::cout << '\n';
  };
  for (int row = kFunctionalityCount; row-- > 0;) {
    const auto functionality = static_cast<Functionality>(row);
    const ops::KernelFunction* const first = op.table[ops::cell_of(functionality, kCPU)];
    if (row >= kLayoutCount) {
      if (first) line(name_of(functionality), "all", *first);
      continue;
    }
    std::map<const ops::KernelFunction*, std::string> devices;
    for (int device = 0; device < kDeviceKinds; ++device) {
      const auto* const kernel = op.table[ops::cell_of(functionality, static_cast<DeviceKind>(device))];
      if (kernel) devices[kernel] += (devices[kernel].empty() ? "" : " ") + std::string(kDevices[device]);
    }
    for (const auto& [kernel, on] : devices)
      line(name_of(functionality), on == "CPU CUDA PrivateUse" ? "all" : on, *kernel);
  }
}

void print_ops(const std::string& prefix, bool as_json, bool as_table) {
  bool found = false;
  std::vector<std::string> names;
  for (const ops::Op* op : ops::all_ops()) {
    names.push_back(op->schema.name);
    if (!op->schema.full_name().starts_with(prefix)) continue;
    found = true;
    if (as_table) {
      print_table(*op);
      continue;
    }
    std::cout << (as_json ? record_of(*op).dump() : line_of(*op)) << '\n';
  }
  if (found) return;
  std::string near = nearest(prefix.find("::") == std::string::npos ? "aten::" + prefix : prefix, names);
  if (!near.empty()) near = "; did you mean " + near + "?";
  fail(ErrorCode::kNotFound, "no operator's name starts with '", prefix, "'", near);
}

}  // namespace

void add_ops_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("ops", "List the operators that scripts may use");
  auto prefix = std::make_shared<std::string>();
  command->add_option("PREFIX", *prefix, "Only names with this prefix, such as aten::conv");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json,
                    "A JSON object a line, with how each runs: devices, gradient, fused and prepared forms");
  auto as_table = std::make_shared<bool>(false);
  command->add_flag("--table", *as_table,
                    "The dispatch table of each: which code runs for which tensors, and where it is written");
  command->callback([prefix, as_json, as_table, exit_code] {
    *exit_code = 0;
    print_ops(*prefix, *as_json, *as_table);
  });
}

}  // namespace tensord::server
