#include <CLI/CLI.hpp>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/jit/exporters/onnx/export.h"
#include "core/jit/exporters/pt2/export.h"
#include "core/jit/exporters/torchscript/export.h"
#include "core/jit/runtime/module.h"
#include "core/ops/run.h"
#include "ops/view.h"
#include "server/commands/arguments_file.h"
#include "server/commands/commands.h"
#include "server/commands/convert_sizes.h"
#include "server/commands/engine_inputs.h"

namespace tensord::server {

namespace {

struct ConvertOptions {
  std::string model, to = "onnx", out, method = "forward", arguments_path;
  std::vector<std::string> inputs, dynamic;
};

// Number of argument sets that the program must run on; two of them are traced.
constexpr int64_t kSets = 3;
// Limits of the further sets tried: their size relative to the examples, or their number of elements.
constexpr int64_t kMaxTimes = 2, kMaxElements = 20'000;

using Input = ConvertInput;

// Whether the value may become a constant of the file.
bool is_plain(const ops::Value& value) { return value.is_none() || value.is_number() || value.is_string(); }

std::string shown(const ops::Value& value) {
  if (value.is_none()) return "None";
  if (value.is_bool()) return value.to_bool() ? "True" : "False";
  if (value.is_int()) return std::to_string(value.to_int());
  return value.is_string() ? concat("'", value.to_string().substr(0, 60), "'") : concat(value.to_float());
}

// What the file's signature says about an input.
Input known_input(const ops::Argument& argument, const jit::TensorSignature* known) {
  Input input;
  input.name = known ? known->name : argument.name;
  if (!known || !known->shape || !known->dtype) return input;
  input.sizes = *known->shape;
  input.dtype = name_of(*known->dtype);
  input.size_names = known->size_names;
  for (size_t k = 0; k < known->shape->size(); ++k) {
    if ((*known->shape)[k] < 0) input.open.insert(static_cast<int64_t>(k));
  }
  return input;
}

// The value of each argument from --args or --input.
std::vector<GivenArgument> find_examples(const ConvertOptions& options, const jit::Module& module,
                                         const jit::Method& method) {
  if (options.arguments_path.empty()) {
    return read_inputs("--input", options.inputs, module, method, WholeNumber::kIsSize);
  }
  std::vector<GivenArgument> examples;
  for (ops::Value& value : read_arguments(options.arguments_path, method.schema()))
    examples.push_back({std::move(value)});
  return examples;
}

void use_example(const GivenArgument& example, const ConvertOptions& options, Input& input) {
  if (!example.value) return;
  const std::string& place = options.arguments_path.empty() ? "--input" : options.arguments_path;
  if (!example.value->is_strided()) {
    check(is_plain(*example.value), place, ": argument '", input.name, "' is a ", example.value->tag_name(),
          ", and only tensors can be inputs, and numbers, texts and None be fixed");
    input.fixed = *example.value;
  } else if (example.is_made_up) {
    input.sizes = example.value->to_tensor().sizes();
    input.dtype = name_of(example.value->to_tensor().dtype());
  } else {
    input.given = example.value->to_tensor();
  }
}

std::vector<Input> find_inputs(const ConvertOptions& options, const jit::Module& module, const jit::Method& method) {
  std::vector<Input> inputs;
  const jit::MethodSignature* signature = module.signature(options.method);
  const auto& arguments = method.schema().arguments;
  const std::vector<GivenArgument> examples = find_examples(options, module, method);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const GivenArgument example = i < examples.size() ? examples[i] : GivenArgument{};
    // The remaining arguments keep their defaults and become constants.
    if (arguments[i].default_value && !example.value) break;
    Input input =
        known_input(arguments[i], signature && i < signature->inputs.size() ? &signature->inputs[i] : nullptr);
    use_example(example, options, input);
    if (!input.fixed && input.dtype.empty() && !input.given.defined()) {
      fail(ErrorCode::kInvalidArgument, "argument '", input.name,
           "': give an example of it by --input SHAPE:TYPE or --args FILE");
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

// Parses --dynamic NAME:DIM,DIM.
void open_sizes(const std::string& text, std::vector<Input>& inputs) {
  const size_t colon = text.rfind(':');
  check(colon != std::string::npos, "--dynamic ", text, ": expected INPUT:DIMENSION,…");
  const auto found = std::find_if(inputs.begin(), inputs.end(),
                                  [&](const Input& input) { return input.name == text.substr(0, colon); });
  check(found != inputs.end() && !found->fixed, "--dynamic ", text, ": there is no such input");
  for (size_t begin = colon + 1; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    int64_t dim = -1;
    const auto [stop, code] = std::from_chars(text.data() + begin, text.data() + end, dim);
    check(code == std::errc() && stop == text.data() + end && dim >= 0, "--dynamic ", text, ": bad dimension");
    found->open.insert(dim);
    begin = end + 1;
  }
}

void check_open_sizes(const std::vector<Input>& inputs) {
  for (const Input& input : inputs) {
    const int64_t rank = input.given.defined() ? input.given.ndim() : std::ssize(input.sizes);
    for (const int64_t dim : input.open) check(dim < rank, "input '", input.name, "' has no dimension ", dim);
  }
}

// Permutes the elements, so that a constant taken from the examples' data is noticed.
Tensor shuffled(const Tensor& example, int64_t set) {
  Dims dims;
  for (int64_t dim = 0; dim < example.ndim(); ++dim) dims.push_back(dim);
  const Tensor turned = set % 2 == 0 ? ops::flip(example, dims) : example;
  return example.ndim() > 0 ? ops::roll(turned, Dims{set - 1}, Dims{example.ndim() - 1}) : example;
}

// Arguments for a call in which dynamic sizes have the values `open`. `has_fixed` includes non-tensor arguments;
// `shuffle` selects a permutation of the elements, 0 is the original order.
std::vector<ops::Value> arguments_of(const std::vector<Input>& inputs, const SizePlan& plan,
                                     const std::vector<int64_t>& open, bool has_fixed, int64_t shuffle) {
  std::vector<ops::Value> arguments;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].fixed) {
      if (has_fixed) arguments.push_back(*inputs[i].fixed);
      continue;
    }
    const Tensor example = example_of(inputs[i], plan.sizes_of(inputs, i, open));
    arguments.emplace_back((shuffle > 0 ? shuffled(example, shuffle) : example).clone());
  }
  return arguments;
}

int64_t count_elements(const std::vector<Input>& inputs, const SizePlan& plan, const std::vector<int64_t>& open) {
  int64_t count = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].fixed) count += Tensor::meta(plan.sizes_of(inputs, i, open), DType::kUInt8).numel();
  }
  return count;
}

std::vector<Tensor> leaves_of(const ops::Value& value) {
  std::vector<Tensor> leaves;
  const auto add = [&](const ops::Value& item) {
    for (const Tensor& leaf : leaves_of(item)) leaves.push_back(leaf);
  };
  if (value.is_strided()) leaves.push_back(value.to_tensor());
  if (value.is_tuple()) std::ranges::for_each(value.to_tuple()->items, add);
  if (value.is_list()) std::ranges::for_each(value.to_list()->items, add);
  if (value.is_dict()) {
    for (const auto& [key, item] : value.to_dict()->items()) add(item);
  }
  return leaves;
}

double tolerance_of(DType dtype) {
  return dtype == DType::kFloat64 ? 1e-9 : dtype == DType::kFloat32 ? 1e-4 : is_floating(dtype) ? 3e-2 : 0;
}

// Throws if a result differs from the expected one.
void compare(const Tensor& got, const Tensor& expected, const std::string& what) {
  const auto refuse = [&](const std::string& why) {
    fail(ErrorCode::kUnimplemented, what, " of the written file ", why, ", so it was not kept");
  };
  if (got.sizes() != expected.sizes() || got.dtype() != expected.dtype())
    refuse(concat("is ", describe(got), ", the model's ", describe(expected)));
  const Tensor a = got.to(DType::kFloat64).contiguous(), b = expected.to(DType::kFloat64).contiguous();
  double worst = 0, largest = 0;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double x = a.data<double>()[i], y = b.data<double>()[i];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!std::isfinite(x) || !std::isfinite(y)) refuse("has other infinities or NaN");
    worst = std::max(worst, std::abs(x - y));
  }
  for (int64_t i = 0; i < b.numel(); ++i) {
    if (std::isfinite(b.data<double>()[i])) largest = std::max(largest, std::abs(b.data<double>()[i]));
  }
  if (worst > tolerance_of(expected.dtype()) * (largest + 1e-6)) refuse(concat("differs by ", worst));
}

// Compares the written file with the original model and returns the number of argument sets tried: those of the plan,
// and smaller and larger ones as far as the model accepts them.
int64_t try_file(const std::string& file, const ConvertOptions& options, const std::vector<Input>& inputs,
                 const SizePlan& plan) {
  const std::shared_ptr<jit::Module> model = jit::Module::load(options.model), written = jit::Module::load(file);
  const auto frame = jit::make_frame(), other = jit::make_frame();
  std::vector<std::vector<int64_t>> sets;
  for (int64_t set = 1; set <= kSets; ++set) sets.push_back(plan.example(set));
  const int64_t max = std::max(kMaxElements, kMaxTimes * count_elements(inputs, plan, sets[1]));
  for (const std::vector<int64_t>& probe : plan.probes()) {
    const bool is_small = !probe.empty() && std::ranges::all_of(probe, [](int64_t size) { return size < 10'000; });
    if (is_small && count_elements(inputs, plan, probe) <= max) sets.push_back(probe);
  }
  int64_t tried = 0;
  for (size_t set = 0; set < sets.size(); ++set) {
    const auto shuffle = static_cast<int64_t>(set) + 1;
    const std::vector<ops::Value> first = arguments_of(inputs, plan, sets[set], true, shuffle);
    const std::vector<ops::Value> second = arguments_of(inputs, plan, sets[set], options.to == "torchscript", shuffle);
    std::vector<Tensor> expected;
    try {
      expected = leaves_of(model->method(options.method).run(*frame, first));
    } catch (const Error&) {
      if (set < static_cast<size_t>(kSets)) throw;
      continue;
    }
    const std::vector<Tensor> got = leaves_of(written->method("forward").run(*other, second));
    check_internal(expected.size() == got.size(), "the written file has another number of outputs");
    for (size_t i = 0; i < got.size(); ++i) compare(got[i], expected[i], concat("output ", i));
    ++tried;
  }
  return tried;
}

void write_torchscript(const jit::Module& module, const std::string& method, const std::string& file) {
  const jit::Method& one = module.method(method);
  jit::export_torchscript(file, module.object(), {{"forward", &one.schema(), &one.graph()}});
}

// The first plan with which the model runs. Rethrows the last plan's error if there is none.
SizePlan find_plan(const ConvertOptions& options, const jit::Module& module, const std::vector<Input>& inputs) {
  const auto frame = jit::make_frame();
  const std::vector<SizePlan> plans = size_plans(inputs);
  for (const SizePlan& plan : plans) {
    try {
      for (int64_t set = 1; set <= kSets; ++set) {
        module.method(options.method).run(*frame, arguments_of(inputs, plan, plan.example(set), true, 0));
      }
      return plan;
    } catch (const Error&) {
      if (&plan == &plans.back()) throw;
    }
  }
  return plans.front();
}

// One exported input with its examples and probes.
jit::tracing::ExportArgument export_argument(const std::vector<Input>& inputs, size_t index, const SizePlan& plan) {
  const Input& input = inputs[index];
  if (input.fixed) return {input.name, Tensor(), Tensor(), *input.fixed};
  jit::tracing::ExportArgument out{input.name,
                                   example_of(input, plan.sizes_of(inputs, index, plan.example(1))),
                                   example_of(input, plan.sizes_of(inputs, index, plan.example(2))),
                                   {}};
  for (int64_t dim = 0; dim < out.first.ndim(); ++dim) {
    const auto place = plan.places.find({index, dim});
    out.size_names.push_back(place == plan.places.end() ? "" : concat("size ", place->second));
  }
  for (const std::vector<int64_t>& probe : plan.probes()) out.probes.push_back(plan.sizes_of(inputs, index, probe));
  return out;
}

// Traces the method and writes it as ONNX or as an exported program.
void write_traced(const ConvertOptions& options, const jit::Module& module, const std::vector<Input>& inputs,
                  const SizePlan& plan, const std::string& file) {
  const jit::Method& method = module.method(options.method);
  std::vector<jit::tracing::ExportArgument> arguments;
  for (size_t i = 0; i < inputs.size(); ++i) arguments.push_back(export_argument(inputs, i, plan));
  for (size_t i = inputs.size(); i < method.schema().arguments.size(); ++i) {
    const auto& argument = method.schema().arguments[i];
    check(argument.default_value.has_value(), "argument '", argument.name, "': give an example of it");
    arguments.push_back({argument.name, Tensor(), Tensor(), *argument.default_value});
  }
  if (options.to == "pt2") return jit::pt2::export_program(file, method.graph(), module.object(), arguments);
  std::vector<std::string> outputs;
  if (const jit::MethodSignature* signature = module.signature(options.method)) {
    for (const jit::TensorSignature& output : signature->outputs) outputs.push_back(output.name);
  }
  jit::onnx::export_model(file, method.graph(), module.object(), arguments, outputs);
}

// Writes the file, checks it and returns the summary: "written for flag = True, and equal to model.pt for 6 sets of
// examples".
std::string write_checked(const ConvertOptions& options, const std::string& file) {
  jit::LoadOptions load;
  load.for_training = true;  // keeps the weights' names and the model's own operators in the graph
  std::vector<Input> inputs;
  SizePlan plan{};
  {
    // With grad mode on, scripted code does not use operators that only PyTorch's inference mode has.
    const GradModeGuard guard({.is_enabled = true, .is_inference = false});
    std::shared_ptr<jit::Module> module = jit::Module::load(options.model, load);
    inputs = find_inputs(options, *module, module->method(options.method));
    for (const std::string& text : options.dynamic) open_sizes(text, inputs);
    check_open_sizes(inputs);
    plan = find_plan(options, *module, inputs);
    module = jit::Module::load(options.model, load);  // a fresh copy, because running may change the model
    if (options.to == "torchscript") {
      write_torchscript(*module, options.method, file);
    } else {
      write_traced(options, *module, inputs, plan, file);
    }
  }
  const GradModeGuard guard({.is_enabled = false, .is_inference = true});
  const int64_t tried = try_file(file, options, inputs, plan);
  std::string fixed;
  for (const Input& input : inputs) {
    if (input.fixed && options.to != "torchscript")
      fixed += concat(fixed.empty() ? " for " : ", ", input.name, " = ", shown(*input.fixed));
  }
  return concat("written", fixed, ", and equal to ", options.model, " for ", tried, " sets of examples");
}

void convert(const ConvertOptions& options) {
  set_thread_budget(available_cores());
  const std::string unchecked = options.out + ".unchecked";
  std::string said;
  try {
    said = write_checked(options, unchecked);
    std::filesystem::rename(unchecked, options.out);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(unchecked, ignored);
    throw;
  }
  std::cout << options.out << ": " << said << '\n';
}

}  // namespace

void add_convert_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("convert", "Write a model in another format");
  auto options = std::make_shared<ConvertOptions>();
  command->add_option("MODEL", options->model, "Model in any served format")->required();
  command->add_option("--to", options->to, "The format")
      ->check(CLI::IsMember({"onnx", "torchscript", "pt2"}))
      ->capture_default_str();
  command->add_option("-o,--output", options->out, "The file to write")->required();
  command->add_option("--method", options->method, "The method to write")->capture_default_str();
  command
      ->add_option("--input", options->inputs,
                   concat("An example argument; exported programs and ONNX models contain their own: ", kInputHelp))
      ->allow_extra_args(false);
  command->add_option("--args", options->arguments_path,
                      "A tuple of example arguments written by torch.save; non-tensors become constants in the file");
  command
      ->add_option("--dynamic", options->dynamic,
                   "INPUT:DIMENSION,…: sizes that stay open in the file; may be repeated")
      ->allow_extra_args(false);
  command->callback([options, exit_code] {
    convert(*options);
    *exit_code = 0;
  });
}

}  // namespace tensord::server
