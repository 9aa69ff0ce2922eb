// `tensord quantize`: writes a model with linear layers of 8 bits, and says how its results differ on given data.
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/base/rename_to_new.h"
#include "core/jit/exporters/torchscript/export.h"
#include "core/jit/exporters/torchscript/quantize.h"
#include "core/jit/runtime/module.h"
#include "ops/view.h"
#include "server/commands/commands.h"
#include "server/executor/model/result.h"
#include "server/training/data/data_file.h"
#include "server/training/jobs/job_spec.h"

namespace tensord::server {
namespace {

struct QuantizeOptions {
  std::string model, out, data;
  std::vector<std::string> inputs, skipped;
  int64_t rows = 1024, batch_size = 32;
  std::optional<double> max_error;
  bool is_static = false, overwrites = false;
};

// The arrays of the data for the arguments of forward.
class QuantizeData {
 public:
  QuantizeData(const QuantizeOptions& options, const ops::Schema& schema)
      : table_(read_data_file(options.data)), rows_(std::min(table_.rows, options.rows)) {
    std::map<std::string, std::string> renamed;
    for (const std::string& text : options.inputs) {
      const size_t equals = text.find('=');
      check(equals != std::string::npos && equals > 0, "--input ", text, ": expected ARGUMENT=ARRAY");
      renamed[text.substr(0, equals)] = text.substr(equals + 1);
    }
    for (const ops::Argument& argument : schema.arguments) {
      const auto found = renamed.find(argument.name);
      const std::string name = found == renamed.end() ? std::string(argument.name) : found->second;
      if (argument.default_value && found == renamed.end() && !table_.find(name)) break;
      arrays_.push_back(table_.at_or_joined(name));
      if (arrays_.back().dtype() == DType::kFloat64) arrays_.back() = arrays_.back().to(DType::kFloat32);
      renamed.erase(argument.name);
    }
    check(renamed.empty(), "--input: the model has no argument '", renamed.empty() ? "" : renamed.begin()->first, "'");
    check(!arrays_.empty(), "forward takes no tensor");
  }
  int64_t rows() const { return rows_; }
  std::vector<ops::Value> batch(int64_t first, int64_t size) const {
    std::vector<ops::Value> out;
    for (const Tensor& array : arrays_)
      out.emplace_back(ops::narrow(array, 0, first, std::min(size, rows_ - first)).clone());
    return out;
  }

 private:
  DataTable table_;
  const int64_t rows_;
  std::vector<Tensor> arrays_;
};

// How an output of the written model differs from the model's.
struct OutputError {
  std::string name;
  double largest = 0, sum = 0, magnitude = 0;
  int64_t count = 0;

  void add(const Tensor& given, const Tensor& expected) {
    check(given.sizes() == expected.sizes(), "output '", name, "' of the written model has the shape ", given.sizes(),
          ", the model's ", expected.sizes());
    const Tensor a = given.to(DType::kFloat64).contiguous(), b = expected.to(DType::kFloat64).contiguous();
    for (int64_t i = 0; i < a.numel(); ++i) {
      const double x = a.data<double>()[i], y = b.data<double>()[i];
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      // An infinite or undefined difference is larger than any limit.
      const double difference = std::abs(x - y);
      largest = std::isfinite(difference) ? std::max(largest, difference) : INFINITY;
      sum += difference;
    }
    for (int64_t i = 0; i < b.numel(); ++i) {
      if (std::isfinite(b.data<double>()[i])) magnitude = std::max(magnitude, std::abs(b.data<double>()[i]));
    }
    count += a.numel();
  }
  double share() const { return largest == 0 ? 0 : largest / magnitude; }
};

bool is_training(const jit::Module& module) {
  const auto trains = [](const auto& named) {
    const int slot = named.second->type->find_attribute("training");
    const ops::Value* value = slot < 0 ? nullptr : &named.second->slots[static_cast<size_t>(slot)];
    return value && value->is_bool() && value->to_bool();
  };
  return std::ranges::any_of(module.named_modules(), trains);
}

// The model as it is served after eval(), however it was saved.
std::shared_ptr<jit::Module> load_for_evaluation(const std::string& model) {
  std::shared_ptr<jit::Module> module = jit::Module::load(model);
  if (!is_training(*module)) return module;
  jit::LoadOptions load;
  load.for_training = true;
  module = jit::Module::load(model, load);
  module->set_training(false);
  return module;
}

std::vector<OutputError> measure_errors(const std::string& model, const std::string& written, const QuantizeData& data,
                                        int64_t batch_size) {
  const std::shared_ptr<jit::Module> before = load_for_evaluation(model), after = jit::Module::load(written);
  const auto frame = jit::make_frame(), other = jit::make_frame();
  const ResultNames names = result_names(before->method("forward"));
  const auto outputs_of = [&](const jit::Module& module, jit::Frame& own, int64_t first) {
    return flatten_result(module.method("forward").run(own, data.batch(first, batch_size)), names.whole, names.own);
  };
  std::vector<OutputError> errors;
  for (int64_t first = 0; first < data.rows(); first += batch_size) {
    const std::vector<InferTensor> expected = outputs_of(*before, *frame, first);
    const std::vector<InferTensor> given = outputs_of(*after, *other, first);
    check(given.size() == expected.size(), "the written model gives ", given.size(), " outputs, the model ",
          expected.size());
    if (errors.empty()) errors.resize(expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      errors[i].name = expected[i].name;
      if (expected[i].tensor.defined()) errors[i].add(given[i].tensor, expected[i].tensor);
    }
  }
  return errors;
}

using Names = std::map<const TensorImpl*, std::string>;

std::shared_ptr<jit::Module> load_with_names(const std::string& model, Names& names) {
  jit::LoadOptions load;
  load.for_training = true;  // keeps the weights' names and the model's own operators in the graph
  const GradModeGuard guard({.is_enabled = true, .is_inference = false});
  const std::shared_ptr<jit::Module> module = jit::Module::load(model, load);
  for (const auto& [name, tensor] : module->named_tensors()) names.emplace(tensor.impl(), name);
  return module;
}

// The ranges of the layers' inputs and outputs on the data. The module that runs may change its state, and is not the
// one that is written.
std::optional<jit::LinearRanges::ByName> measure_ranges(const QuantizeOptions& options) {
  if (!options.is_static) return std::nullopt;
  Names names;
  const std::shared_ptr<jit::Module> module = load_with_names(options.model, names);
  module->set_training(false);
  const jit::Method& forward = module->method("forward");
  const QuantizeData data(options, forward.schema());
  const auto frame = jit::make_frame();
  jit::LinearRanges ranges;
  const NoGradGuard no_grad;
  const ops::ObserverScope scope(Functionality::kTracer, &ranges);
  for (int64_t first = 0; first < data.rows(); first += options.batch_size)
    forward.run(*frame, data.batch(first, options.batch_size));
  return ranges.by_name(names);
}

struct Quantized {
  std::vector<jit::QuantizedLayer> layers;  // what became of each linear layer
  bool was_training = false;                // as it was saved
};

Quantized write_quantized(const QuantizeOptions& options, const std::string& file) {
  const std::optional<jit::LinearRanges::ByName> ranges = measure_ranges(options);
  Names names;
  const std::shared_ptr<jit::Module> module = load_with_names(options.model, names);
  const bool was_training = is_training(*module);
  module->set_training(false);
  const jit::Method& forward = module->method("forward");
  const std::unique_ptr<jit::Graph> graph = forward.graph().clone();
  const NoGradGuard no_grad;
  const auto is_skipped = [&](const std::string& weight) {
    return std::ranges::any_of(options.skipped, [&](const std::string& pattern) {
      return matches_pattern(weight, pattern) || matches_pattern(weight.substr(0, weight.rfind('.')), pattern);
    });
  };
  const jit::QuantizedLinears found =
      jit::quantize_linears(*graph, module->object(), names, is_skipped, ranges ? &*ranges : nullptr);
  const auto is_quantized = [](const jit::QuantizedLayer& layer) { return layer.kept_because.empty(); };
  if (std::ranges::none_of(found.layers, is_quantized)) {
    fail(ErrorCode::kUnimplemented, "no linear layer of the model can have 8 bits",
         found.layers.empty()
             ? ": its forward calls no aten::linear"
             : concat(": '", found.layers.front().weight, "' stays because ", found.layers.front().kept_because));
  }
  jit::export_torchscript(file, module->object(), {{"forward", &forward.schema(), graph.get()}}, {}, found.unused);
  return {found.layers, was_training};
}

void print_report(const QuantizeOptions& options, const Quantized& made, const std::vector<OutputError>& errors,
                  int64_t rows, uintmax_t bytes_before, uintmax_t bytes_after) {
  if (made.was_training) {
    std::cout << options.model << ": was saved in training mode; " << options.out
              << " is in evaluation mode, as after eval(), and compared with that\n";
  }
  size_t quantized = 0;
  std::map<std::string, int> kept;  // calls by layer and reason
  for (const jit::QuantizedLayer& layer : made.layers) {
    if (layer.kept_because.empty()) {
      ++quantized;
    } else {
      ++kept[concat(layer.weight.empty() ? "a linear layer" : layer.weight, ": ", layer.kept_because)];
    }
  }
  for (const auto& [text, calls] : kept)
    std::cout << "stays in float32: " << text << (calls > 1 ? concat(" (", calls, " calls)") : "") << '\n';
  std::cout << options.out << ": " << quantized << " of " << made.layers.size() << " linear layers have 8 bits, "
            << bytes_before << " bytes became " << bytes_after << '\n';
  for (const OutputError& error : errors) {
    if (error.count == 0) continue;
    char text[200];
    std::snprintf(text, sizeof text, "largest difference %.4g, mean %.4g, of values up to %.4g", error.largest,
                  error.sum / static_cast<double>(error.count), error.magnitude);
    std::cout << error.name << ": " << text << ", on " << rows << " rows of " << options.data << '\n';
  }
}

void check_output(const QuantizeOptions& options) {
  const std::filesystem::path out = options.out;
  std::error_code no_file;
  check(out.has_filename() && !std::filesystem::is_directory(out, no_file), "--output: expected the path of a file");
  check(!std::filesystem::equivalent(options.model, out, no_file), "--output: is the model itself");
  check(!std::filesystem::equivalent(options.data, out, no_file), "--output: is the data");
  if (!options.overwrites && std::filesystem::exists(std::filesystem::symlink_status(out))) {
    fail(ErrorCode::kAlreadyExists, options.out, ": is there already; --overwrite replaces it");
  }
}

void quantize(const QuantizeOptions& options) {
  check(options.rows > 0 && options.batch_size > 0, "--rows and --batch-size: must be above 0");
  check_output(options);
  set_thread_budget(available_cores());
  const std::filesystem::path out = options.out;
  const std::string unchecked = out.parent_path() / concat(".", out.filename().string(), ".", getpid(), ".unchecked");
  try {
    const Quantized made = write_quantized(options, unchecked);
    const GradModeGuard guard({.is_enabled = false, .is_inference = true});
    const QuantizeData data(options, jit::Module::load(options.model)->method("forward").schema());
    const std::vector<OutputError> errors = measure_errors(options.model, unchecked, data, options.batch_size);
    for (const OutputError& error : errors) {
      if (!options.max_error || error.share() <= *options.max_error) continue;
      fail(ErrorCode::kFailedPrecondition, "output '", error.name, "' differs by ", error.share(),
           " of its largest value, more than --max-error ", *options.max_error, ", so nothing was written");
    }
    const uintmax_t before = std::filesystem::file_size(options.model), after = std::filesystem::file_size(unchecked);
    options.overwrites ? std::filesystem::rename(unchecked, out) : rename_to_new(unchecked, out);
    print_report(options, made, errors, data.rows(), before, after);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(unchecked, ignored);
    throw;
  }
}

}  // namespace

void add_quantize_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("quantize", "Write a model whose linear layers have 8 bits, for PyTorch too");
  auto options = std::make_shared<QuantizeOptions>();
  command->add_option("MODEL", options->model, "Model in any served format")->required();
  command->add_option("-o,--output", options->out, "The TorchScript archive to write")->required();
  command
      ->add_option("--data", options->data,
                   "Inputs to compare the results on: .npz, .safetensors, .pt, .csv, .requests (of --capture-dir)")
      ->required();
  command->add_option("--input", options->inputs, "ARGUMENT=ARRAY: the array for an argument; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--skip", options->skipped, "Layers that stay in float32: a pattern of names; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--static", options->is_static,
                    "Round inputs by scales that are measured on the data, not when a layer runs");
  command->add_flag("--overwrite", options->overwrites, "Replace the file to write if it is there");
  command->add_option("--rows", options->rows, "Rows of the data that are compared, at most")->capture_default_str();
  command->add_option("--batch-size", options->batch_size, "Rows of a batch")->capture_default_str();
  command->add_option("--max-error", options->max_error,
                      "Write nothing if an output differs by more than this share of its largest value");
  command->footer(
      "Examples:\n"
      "  tensord quantize digits.pt -o dynamic.pt --data data/digits.npz                   inputs rounded when a layer "
      "runs\n"
      "  tensord quantize digits.pt -o static.pt --data data/digits.npz --static --max-error 0.1");
  command->callback([options, exit_code] {
    quantize(*options);
    *exit_code = 0;
  });
}

}  // namespace tensord::server
