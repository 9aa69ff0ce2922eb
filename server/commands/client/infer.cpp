#include <tensord/client/stream.h>
#include <CLI/CLI.hpp>

#include <unistd.h>

#include <charconv>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "server/commands/client/classes.h"
#include "server/commands/client/connection.h"
#include "server/commands/client/infer_inputs.h"
#include "server/commands/client/json_line.h"
#include "server/commands/client/table.h"
#include "server/commands/client/tensor_files.h"
#include "server/commands/client/tensor_values.h"
#include "server/commands/commands.h"

namespace tensord::server {
namespace {

using client::InvalidArgumentError;
using nlohmann::ordered_json;

struct InferOptions {
  ConnectionOptions connection;
  std::string model;
  std::vector<std::string> inputs;
  bool random = false;
  std::string version;
  std::vector<std::string> outputs;
  std::vector<std::string> parameters;
  int classes = 0;
  bool stream = false;
  std::string save_path;
};

// Parses JSON booleans and numbers; anything else is a string.
client::Parameter parse_parameter(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_unsigned() && !std::in_range<int64_t>(json.get<uint64_t>())) return json.get<uint64_t>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number_float()) return json.get<double>();
  return text;
}

client::Request request_of(const InferOptions& options, client::Client& server) {
  ModelSignature signature(server, options.model, options.version);
  client::Request request{.model = options.model, .inputs = {}};
  request.version = options.version;
  request.inputs = read_inputs(options.inputs, options.random, signature);
  for (const auto& [name, value] : pairs(options.parameters, "--parameter", "NAME=VALUE")) {
    request.parameters[name] = parse_parameter(value);
  }
  std::vector<std::string> names = options.outputs;
  if (options.classes > 0 && names.empty()) {
    for (const client::TensorMetadata& output : signature.get().outputs) names.push_back(output.name);
  }
  for (const std::string& name : names) request.outputs.push_back({.name = name, .classes = options.classes});
  return request;
}

void print_json(const InferOptions& options, const client::Result& result) {
  ordered_json outputs = ordered_json::object();
  for (const auto& output : result.outputs) {
    outputs[output.name] = options.classes > 0 ? json_of_classes(output.tensor) : json_of_tensor(output.tensor);
  }
  const ordered_json line = {{"model", result.model}, {"version", result.version}, {"outputs", outputs}};
  print_json_line(line);
}

void print_text(const InferOptions& options, const client::Result& result) {
  for (const auto& output : result.outputs) {
    std::cout << printable(output.name);
    if (options.classes > 0) {
      std::cout << "\n";
      print_classes(std::cout, output.tensor);
    } else {
      std::cout << "  " << type_string(output.tensor.type()) << shape_string(output.tensor.shape()) << "\n";
      print_values(std::cout, output.tensor);
      std::cout << "\n";
    }
  }
  std::cout << std::flush;
}

void save(const InferOptions& options, const client::Result& result) {
  if (!options.save_path.ends_with(".npy")) {
    NamedTensors tensors;
    for (const auto& output : result.outputs) tensors.emplace_back(output.name, output.tensor);
    return write_npz(options.save_path, tensors);
  }
  if (result.outputs.size() != 1) {
    throw InvalidArgumentError(concat("--save: a .npy file holds one output, the model has ", result.outputs.size(),
                                      "; choose with --output, or save as .npz"));
  }
  write_npy(options.save_path, result.outputs[0].tensor);
}

// Prints the responses of a stream: generated text continuously, other outputs as one block per response.
class StreamView {
 public:
  explicit StreamView(const InferOptions& options) : options_(options) {}
  ~StreamView() {
    if (has_text_) std::cout << std::endl;
  }

  void show(const client::Result& result) {
    if (options_.connection.json) {
      print_json(options_, result);
    } else if (is_piece_of_text(result)) {
      std::string text = result.outputs[0].tensor.strings()[0];
      // The text may contain escape sequences that control the terminal.
      if (isatty(STDOUT_FILENO) != 0) text = printable_lines(text);
      std::cout << text << std::flush;
      has_text_ = true;
    } else {
      print_text(options_, result);
    }
  }

 private:
  static bool is_piece_of_text(const client::Result& result) {
    return result.outputs.size() == 1 && result.outputs[0].tensor.type() == client::DataType::kBytes &&
           result.outputs[0].tensor.element_count() == 1;
  }

  const InferOptions& options_;
  bool has_text_ = false;
};

void stream(const InferOptions& options, client::Client& server, const client::Request& request) {
  client::CallOptions call;
  if (options.connection.timeout_secs) call = call_options(options.connection, {});
  // Asks for errors that end the stream with their own status codes.
  call.headers["triton_grpc_error"] = "true";
  client::Stream stream = server.open_stream(call);
  stream.send(request);
  stream.finish_sending();
  StreamView view(options);
  while (const auto answer = stream.receive()) {
    if (!answer->is_ok()) throw client::Error(client::StatusCode::kUnknown, answer->error);
    if (!answer->result.outputs.empty()) view.show(answer->result);
  }
}

int infer(const InferOptions& options) {
  client::Client server = connect(options.connection);
  const client::Request request = request_of(options, server);
  if (options.stream) {
    stream(options, server, request);
    return 0;
  }
  const client::Result result = server.infer(request);
  if (!options.save_path.empty()) {
    save(options, result);
  } else if (options.connection.json) {
    print_json(options, result);
  } else {
    print_text(options, result);
  }
  return 0;
}

}  // namespace

void add_infer_command(CLI::App& app, int* exit_code) {
  const auto options = std::make_shared<InferOptions>();
  CLI::App* command = app.add_subcommand("infer", "Call a model of a running server, and print or save its outputs");
  add_client_options(*command, options->connection);
  command->add_option("model", options->model, "The model")->required();
  command->add_option("--input", options->inputs, kInputHelp)->allow_extra_args(false);
  command->add_flag("--random", options->random, "Random values for all other inputs; dynamic sizes become 1");
  command->add_option("--version", options->version, "A number, or a label");
  command->add_option("--output", options->outputs, "Only this output; may be repeated")->allow_extra_args(false);
  command
      ->add_option("--parameter", options->parameters,
                   "NAME=VALUE, a parameter of the request: a number, true, false or a string; may be repeated")
      ->allow_extra_args(false);
  CLI::Option* classes = command->add_option("--classes", options->classes, "Only this many largest values of each row")
                             ->check(CLI::PositiveNumber);
  CLI::Option* streams =
      command->add_flag("--stream", options->stream, "A decoupled model: print each response as it arrives")
          ->excludes(classes);
  command
      ->add_option("--save", options->save_path, "Write the outputs to FILE.npz, or the only one to FILE.npy, instead")
      ->excludes(streams)
      ->excludes(classes);
  command->footer(
      "Examples:\n"
      "  tensord infer resnet50 --random                              does it answer?\n"
      "  tensord infer scale --input '[1, 2, 3]'                      values, of the model's type\n"
      "  tensord infer resnet50 --input x=image.npy --classes 5       the five best classes\n"
      "  tensord infer add --input a='[[1]]' --input b=random:1,1     inputs by name\n"
      "  tensord infer bert --input in.npz --save out.npz             NumPy's files\n"
      "  tensord infer chat --input 'text:Hello' --stream             a text as it is written");
  on_run(*command, exit_code, [=] { return infer(*options); });
}

}  // namespace tensord::server
