#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/jit/runtime/module.h"
#include "core/ops/run.h"
#include "ops/pointwise.h"
#include "ops/view.h"
#include "server/commands/commands.h"
#include "server/commands/engine_inputs.h"
#include "server/commands/model_options.h"
#include "server/config/pbtxt/model_config_text.h"
#include "server/executor/model/result.h"
#include "server/executor/model/torchscript_model.h"

namespace tensord::server {
namespace {

constexpr int kDefaultBatch = 8;

struct ConfigOptions {
  std::string model, name, out;
  std::vector<std::string> examples;
  std::optional<int> max_batch_size;
};

using Tensors = std::vector<InferTensor>;

// The name of the repository folder that holds the file, otherwise the file's name.
std::string model_name(const ConfigOptions& options) {
  if (!options.name.empty()) return options.name;
  const std::filesystem::path path = std::filesystem::absolute(options.model);
  const std::string version = path.parent_path().filename().string();
  const bool is_version = !version.empty() && version.find_first_not_of("0123456789") == std::string::npos;
  return is_version ? path.parent_path().parent_path().filename().string() : path.stem().string();
}

// Converts the values of --example to request inputs.
Tensors read_examples(const ConfigOptions& options, bool& has_made_up_integers) {
  Tensors out;
  check_is_there(options.model);
  const auto module = jit::Module::load(options.model);
  const jit::Method& method = module->method("forward");
  const ops::Schema& schema = method.schema();
  const auto given = read_inputs("--example", options.examples, *module, method, WholeNumber::kIsSize);
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i].value || given[i].value->is_none()) continue;
    Tensors parts = flatten_result(*given[i].value);
    check(parts.size() == 1, "--example: '", schema.arguments[i].name, "' is not a single tensor");
    parts.front().name = schema.arguments[i].name;
    const Tensor& tensor = parts.front().tensor;
    has_made_up_integers =
        has_made_up_integers || (given[i].is_made_up && tensor.defined() && !is_floating(tensor.dtype()));
    out.push_back(std::move(parts.front()));
  }
  return out;
}

Tensors run_model(const Model& model, const Tensors& inputs) {
  const Signature& signature = model.signature();
  std::vector<InputHeader> headers;
  std::vector<std::string> datatypes;
  datatypes.reserve(inputs.size());
  for (const InferTensor& input : inputs) {
    datatypes.emplace_back(name_of(input.datatype));
    headers.push_back({input.name, datatypes.back(), input.shape});
  }
  std::vector<const InferTensor*> by_number(signature.inputs.size(), nullptr);
  const std::vector<size_t> indices = match_inputs(signature, "the model", headers);
  for (size_t i = 0; i < inputs.size(); ++i) by_number[indices[i]] = &inputs[i];
  const std::function<bool()> is_cancelled = [] { return false; };
  return model.make_session()->run(by_number, {.is_cancelled = is_cancelled}).outputs;
}

// Concatenates each tensor with itself along the batch dimension.
Tensors doubled(const Tensors& inputs) {
  Tensors out = inputs;
  for (InferTensor& input : out) {
    if (input.tensor.defined()) input.tensor = ops::cat({input.tensor, input.tensor}, 0);
    const size_t count = input.strings.size();
    for (size_t i = 0; i < count; ++i) input.strings.push_back(input.strings[i]);
    input.shape[0] *= 2;
  }
  return out;
}

// Whether the second tensor is the first one concatenated with itself, up to rounding.
bool is_twice(const InferTensor& once, const InferTensor& twice) {
  Dims expected = once.shape;
  if (expected.empty() || twice.shape.empty() || once.name != twice.name) return false;
  expected[0] *= 2;
  if (twice.shape != expected) return false;
  if (!once.tensor.defined()) return true;
  const Tensor rows = ops::cat({once.tensor, once.tensor}, 0);
  return ops::allclose(rows, twice.tensor, 1e-3, 1e-5, true);
}

// Tests whether rows of the first dimension are independent: runs the example with its rows doubled.
bool has_batch(const Model& model, const Tensors& inputs, const Tensors& outputs) {
  const Signature& signature = model.signature();
  if (inputs.empty() || outputs.empty() || signature.keeps_state || !signature.mixing_operator.empty()) return false;
  for (const InferTensor& input : inputs) {
    if (input.shape.empty() || input.shape[0] == 0 || input.shape[0] != inputs[0].shape[0]) return false;
  }
  for (const InferTensor& output : outputs) {
    if (output.shape.empty() || output.shape[0] != inputs[0].shape[0]) return false;
  }
  try {
    const Tensors twice = run_model(model, doubled(inputs));
    return twice.size() == outputs.size() && std::equal(outputs.begin(), outputs.end(), twice.begin(), is_twice);
  } catch (const Error&) {
    return false;
  }
}

// One entry of `input` or `output`.
struct Entry {
  std::string name;
  std::optional<DataType> datatype;
  std::optional<Dims> shape;
  bool is_optional = false;
};

// Combines what the file and its graph say about a tensor with what the example shows.
Entry entry_of(const TensorSpec& spec, const Tensors& seen, bool is_output_of_open) {
  Entry out{spec.name, spec.datatype, spec.shape, spec.is_optional};
  const auto found = std::ranges::find_if(seen, [&](const InferTensor& it) { return spec.answers_to(it.name); });
  if (!out.datatype && found != seen.end()) out.datatype = found->datatype;
  if (!out.datatype && spec.known.dtype) out.datatype = from_dtype(*spec.known.dtype);
  if (!out.shape && found != seen.end()) {
    out.shape = is_output_of_open ? Dims(found->shape.size(), -1) : found->shape;
  }
  if (!out.shape && spec.known.rank) out.shape = spec.known.shape_of_rank(*spec.known.rank);
  return out;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out + "\"";
}

std::string block(const char* field, const Entry& entry, bool has_batch) {
  const std::string type = *entry.datatype == DataType::kBytes ? "STRING" : name_of(*entry.datatype);
  std::string dims;
  for (size_t i = has_batch ? 1 : 0; i < entry.shape->size(); ++i) {
    dims += concat(dims.empty() ? " " : ", ", (*entry.shape)[i]);
  }
  return concat(field, " [\n  {\n    name: ", quoted(entry.name), "\n    data_type: TYPE_", type, "\n    dims: [", dims,
                " ]\n", entry.is_optional ? "    optional: true\n" : "", "  }\n]\n");
}

void check_known(const Entry& entry) {
  if (entry.datatype && entry.shape) return;
  const std::optional<DType> dtype = entry.datatype ? to_dtype(*entry.datatype) : std::nullopt;
  std::string example = dtype ? "1,3,224,224 or a file (.npy)" : "1,3,224,224:f32 or a file (.npy)";
  if (dtype && !is_floating(*dtype)) example = "1,16 or a file (.npy)";
  if (entry.datatype == DataType::kBytes) example = R"('["a text"]')";
  fail(ErrorCode::kInvalidArgument, "input '", entry.name, "': the file does not tell its ",
       entry.datatype ? "dimensions" : "type", "; give an example, such as --example ", entry.name, "=", example);
}

std::string config_text(const ConfigOptions& options, const Model& model, const Tensors& inputs) {
  const Signature& signature = model.signature();
  const Tensors outputs = inputs.empty() ? Tensors{} : run_model(model, inputs);
  int batch = options.max_batch_size.value_or(0);
  if (!options.max_batch_size && has_batch(model, inputs, outputs)) batch = kDefaultBatch;
  std::string out = concat("name: ", quoted(model_name(options)), "\nplatform: ", quoted(signature.platform),
                           "\nmax_batch_size: ", batch, "\n");
  bool has_open = false;
  for (const TensorSpec& spec : signature.inputs) {
    const Entry entry = entry_of(spec, inputs, false);
    if (spec.is_optional && (!entry.datatype || !entry.shape)) continue;
    check_known(entry);
    const auto first = entry.shape->begin() + std::min<ptrdiff_t>(batch > 0 ? 1 : 0, std::ssize(*entry.shape));
    has_open = has_open || std::any_of(first, entry.shape->end(), [](int64_t size) { return size < 0; });
    out += block("input", entry, batch > 0);
  }
  for (const TensorSpec& spec : signature.outputs) {
    const Entry entry = entry_of(spec, outputs, has_open);
    // An output that is left out gets the model's own type and shape.
    if (!entry.datatype || !entry.shape) return out;
  }
  for (const TensorSpec& spec : signature.outputs) out += block("output", entry_of(spec, outputs, has_open), batch > 0);
  return out;
}

int write_config(const ConfigOptions& options) {
  const ModelFiles files{.model = options.model};
  bool has_made_up_integers = false;
  const Tensors inputs = read_examples(options, has_made_up_integers);
  const std::unique_ptr<const Model> model = load_torchscript_model(files, ModelConfig{}, EngineOptions{});
  const std::string text = [&] {
    try {
      return config_text(options, *model, inputs);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kOutOfRange || !has_made_up_integers) throw;
      throw Error(error.code(), concat(error.what(), "; the integers of a shape are made up, 0 to 15: give real ones, ",
                                       "such as --example ", inputs.front().name, "='[1, 2]'"));
    }
  }();
  // Checks the written configuration: parses it, loads the model with it and runs the example.
  const ModelConfig config = parse_model_config(text, "config.pbtxt");
  const std::unique_ptr<const Model> configured = load_torchscript_model(files, config, EngineOptions{});
  if (!inputs.empty()) run_model(*configured, inputs);
  if (options.out.empty()) {
    std::cout << text;
    return 0;
  }
  check(!std::filesystem::exists(options.out), options.out, ": is there already, and is not written over");
  AtomicFile file(options.out);
  file.write(text);
  file.commit();
  return 0;
}

}  // namespace

void add_config_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("config", "Write a first config.pbtxt for a model");
  auto options = std::make_shared<ConfigOptions>();
  command->add_option("MODEL", options->model, "The model's file")->required();
  command
      ->add_option("--example", options->examples,
                   concat("An example input, if the file lacks types and sizes: the model runs with it, and the run "
                          "determines the outputs. ",
                          kInputHelp))
      ->allow_extra_args(false);
  command->add_option("--name", options->name,
                      "The model's name; default: that of its folder in a repository, or of the file");
  command
      ->add_option(
          "--max-batch-size", options->max_batch_size,
          "Rows of a batch, 0 for no batching; default: 8 if a run shows that rows are independent, otherwise 0")
      ->check(CLI::NonNegativeNumber);
  command->add_option("-o,--output", options->out, "The file to write, which must not exist; default: stdout");
  command->footer(
      "Examples:\n"
      "  tensord config repository/bert/1/model.onnx\n"
      "  tensord config resnet50.pt --example 1,3,224,224:f32 -o repository/resnet50/config.pbtxt\n"
      "  tensord config add.pt --example a=a.npy --example b='[[1.5]]'");
  command->callback([options, exit_code] { *exit_code = write_config(*options); });
}

}  // namespace tensord::server
