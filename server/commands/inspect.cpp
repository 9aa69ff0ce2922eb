#include <CLI/CLI.hpp>

#include <algorithm>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "core/jit/archive/model_archive.h"
#include "core/jit/ir/missing_operators.h"
#include "core/jit/ir/text.h"
#include "core/jit/runtime/module.h"
#include "core/jit/runtime/program.h"
#include "core/ops/attributes/runs_on_host.h"
#include "server/commands/arguments_file.h"
#include "server/commands/commands.h"
#include "server/commands/engine_inputs.h"
#include "server/commands/model_options.h"

namespace tensord::server {

namespace {

// Limits of the one-page summary.
constexpr size_t kPageTensors = 20, kPageKinds = 15;

struct InspectOptions {
  ModelOptions model;
  std::string method;  // "": forward, or the first one of a model without
  std::string after;
  std::vector<std::string> inputs;
  std::string arguments_path;
  bool dot = false;
  bool all = false;
  bool summary = false;
  bool source = false;
  bool for_training = false;
};

// The graph after one pass; the pass "" means before the first.
struct Snapshot {
  std::string pass;
  std::string text;
  std::map<std::string, size_t> counts;
};

void count_nodes(const jit::Block* block, std::map<std::string, size_t>& counts) {
  for (const jit::Node* node = block->first(); node; node = node->next()) {
    if (node->kind() != jit::NodeKind::kConstant) ++counts[node->kind_name()];
    for (const jit::Block* inner : node->blocks()) count_nodes(inner, counts);
  }
}

Snapshot take_snapshot(const std::string& pass, const jit::Graph& graph, const InspectOptions& options) {
  Snapshot snapshot{pass, options.dot ? jit::print_dot(graph) : jit::print_graph(graph), {}};
  count_nodes(graph.block(), snapshot.counts);
  return snapshot;
}

size_t total(const std::map<std::string, size_t>& counts) {
  size_t sum = 0;
  for (const auto& [name, count] : counts) sum += count;
  return sum;
}

void print_signature(const jit::Module& module) {
  std::cout << "methods\n";
  for (const std::string& name : module.method_names()) {
    try {
      const jit::Method& method = module.method(name);
      std::cout << "  " << method.schema().str() << (method.changes_state() ? "  (changes the module)" : "") << "\n";
    } catch (const Error& error) {
      std::cout << "  " << name << ": " << error.what() << "\n";
    }
  }
}

void print_parameters(const jit::Module& module, bool all) {
  const auto tensors = module.named_tensors();
  std::cout << "tensors (" << tensors.size() << ", " << module.size_bytes() << " bytes)\n";
  size_t count = 0;
  for (const auto& [name, tensor] : tensors) {
    if (!all && ++count > kPageTensors) {
      std::cout << "  … and " << tensors.size() - kPageTensors << " more (--all)\n";
      break;
    }
    std::cout << "  " << name << "  " << describe(tensor) << "  " << tensor.size_bytes()
              << (autograd::requires_grad(tensor) ? "  (requires a gradient)" : "") << "\n";
  }
}

// Unsupported calls that a run may or may not reach.
void print_missing_operators(const jit::Module& module, const jit::Method& method) {
  const std::vector<jit::MissingOperator> missing = jit::missing_operators(method.graph(), module.functions());
  if (missing.empty()) return;
  std::cout << "operators that are missing (a run of " << method.name() << " that comes to one ends UNIMPLEMENTED)\n";
  for (const jit::MissingOperator& at : missing) {
    std::cout << "  " << at.message << "  (" << at.location.str() << ")\n";
  }
}

// What a model on CUDA has no kernels of.
void print_on_host(const jit::Module& module, const jit::Method& method) {
  bool is_first = true;
  for (const ops::Op* const op : jit::called_operators(method.graph(), module.functions())) {
    const auto* const on_host = (op->base ? op->base : op)->attributes.get<ops::RunsOnHost>();
    if (!on_host) continue;
    if (std::exchange(is_first, false))
      std::cout << "operators that CUDA has by a copy to the host and back (" << method.name() << ")\n";
    std::cout << "  " << op->schema.full_name() << ": " << on_host->reason << "\n";
  }
}

void print_source(const std::string& path) {
  for (const jit::SourceFile& file : jit::ModelArchive::open(path).sources()) {
    std::cout << "==== " << file.name << "\n" << file.text << "\n";
  }
}

void print_frequent(const std::map<std::string, size_t>& counts, size_t before) {
  std::vector<std::pair<std::string, size_t>> kinds(counts.begin(), counts.end());
  std::ranges::stable_sort(kinds, std::ranges::greater(), &std::pair<std::string, size_t>::second);
  std::cout << "nodes of the result by kind (" << total(counts) << ", before the passes " << before << ")\n";
  for (size_t i = 0; i < kinds.size() && i < kPageKinds; ++i) {
    std::cout << "  " << std::left << std::setw(40) << kinds[i].first << std::right << std::setw(6) << kinds[i].second
              << "\n";
  }
  if (kinds.size() > kPageKinds) std::cout << "  … and " << kinds.size() - kPageKinds << " more kinds (--all)\n";
}

// Node counts after each pass, then counts by kind; in the one-page summary, only the most frequent kinds.
void print_counts(const std::vector<Snapshot>& snapshots, bool all) {
  if (!all) return print_frequent(snapshots.back().counts, total(snapshots.front().counts));
  std::cout << "nodes\n";
  for (const Snapshot& snapshot : snapshots) {
    std::cout << "  " << std::left << std::setw(28) << (snapshot.pass.empty() ? "(before)" : snapshot.pass)
              << std::right << std::setw(8) << total(snapshot.counts) << "\n";
  }
  std::cout << "nodes of the result by kind\n";
  for (const auto& [name, count] : snapshots.back().counts) {
    std::cout << "  " << std::left << std::setw(40) << name << std::right << std::setw(6) << count << "\n";
  }
}

const Snapshot& find_snapshot(const std::vector<Snapshot>& snapshots, const std::string& pass) {
  for (auto it = snapshots.rbegin(); it != snapshots.rend(); ++it) {
    if (it->pass == pass) return *it;
  }
  std::string changed;
  for (const Snapshot& snapshot : snapshots) {
    if (!snapshot.pass.empty()) changed += (changed.empty() ? "" : ", ") + snapshot.pass;
  }
  fail(ErrorCode::kNotFound, "--after ", pass,
       ": no such pass changed the graph; these did: ", changed.empty() ? "none" : changed);
}

std::vector<ops::Value> inspected_arguments(const InspectOptions& options, const jit::Module& module,
                                            const jit::Method& method) {
  const Device device = parse_device(options.model.device);
  if (!options.arguments_path.empty())
    return ops::to_device(read_arguments(options.arguments_path, method.schema()), device);
  return ops::to_device(read_call("--input", options.inputs, module, method, WholeNumber::kIsSize), device);
}

void inspect(InspectOptions options) {
  std::vector<Snapshot> snapshots;
  bool is_recording = false;
  jit::LoadOptions load = load_options(options.model);
  load.for_training = options.for_training;
  load.passes.observer = [&](const std::string& pass, const jit::Graph& graph) {
    if (is_recording) snapshots.push_back(take_snapshot(pass, graph, options));
  };
  const std::shared_ptr<jit::Module> module = load_model(options.model, load);
  // Compile only this method, so that the observer sees nothing else.
  is_recording = true;
  const std::vector<std::string> names = module->method_names();
  if (options.method.empty())
    options.method = module->has_method("forward") || names.empty() ? "forward" : names.front();
  const jit::Method& method = module->method(options.method);
  std::string plan;
  if (!options.inputs.empty() || !options.arguments_path.empty()) {
    const auto program = method.specialize(inspected_arguments(options, *module, method), load.passes);
    plan = program ? jit::to_string(*program) : "nothing can be planned for these arguments\n";
  }
  is_recording = false;
  if (snapshots.empty()) snapshots.push_back(take_snapshot("", method.graph(), options));
  if (options.dot || !options.after.empty()) {
    std::cout << (options.after.empty() ? snapshots.back() : find_snapshot(snapshots, options.after)).text;
    return;
  }
  print_signature(*module);
  const bool wants_more = options.all || options.source || !plan.empty() || options.for_training;
  print_parameters(*module, options.all || options.summary || options.for_training);
  print_missing_operators(*module, method);
  print_on_host(*module, method);
  if (options.source) print_source(options.model.model);
  print_counts(snapshots, options.all || options.summary || wants_more);
  if (!plan.empty()) std::cout << "==== " << options.method << ", program for these arguments\n" << plan;
  if (options.summary) return;
  if (!options.all && !options.for_training && plan.empty()) {
    std::cout << "(--all: every tensor, and the graph before and after each pass; --source: the code)\n";
    return;
  }
  for (const Snapshot& snapshot : snapshots) {
    const std::string title = snapshot.pass.empty() ? "before the passes" : "after " + snapshot.pass;
    std::cout << "==== " << options.method << ", " << title << "\n" << snapshot.text;
  }
}

}  // namespace

void add_inspect_command(CLI::App& app, int* exit_code) {
  CLI::App* command =
      app.add_subcommand("inspect", "Show a model: signatures, tensors, its graph before and after passes");
  auto options = std::make_shared<InspectOptions>();
  add_model_options(*command, options->model);
  command->add_option("--method", options->method,
                      "The method whose graph is shown; default forward, or the first one");
  command->add_option("--after", options->after, "Show only the graph after the last run of this pass");
  auto* inputs = command
                     ->add_option("--input", options->inputs,
                                  concat("Also show the passes and the plan for these inputs: ", kInputHelp))
                     ->allow_extra_args(false);
  command->add_option("--args", options->arguments_path, "The same, with a tuple of arguments written by torch.save")
      ->excludes(inputs);
  command
      ->add_flag(
          "--train", options->for_training,
          "Show the model as loaded for training: which tensors require gradients, and the graph that autograd records")
      ->excludes(inputs)
      ->excludes("--args");
  command->add_flag("--dot", options->dot, "Write the graph for Graphviz instead of text");
  command->add_flag("--all", options->all,
                    "Show every tensor, and the graph before and after each pass, not only one page");
  command->add_flag("--summary", options->summary, "Omit the graphs, but show all tensors and counts");
  command->add_flag("--source", options->source, "Show the archive's source files too");
  command->callback([options, exit_code] {
    inspect(*options);
    *exit_code = 0;
  });
}

}  // namespace tensord::server
