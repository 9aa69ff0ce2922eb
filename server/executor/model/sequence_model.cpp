#include "server/executor/model/sequence_model.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "core/base/error.h"
#include "core/tensor/lend.h"
#include "core/tensor/shape.h"
#include "server/executor/model/generation_options.h"
#include "server/executor/model/read_exactly.h"

namespace tensord::server {
namespace {

using ControlKind = SequenceBatchingConfig::ControlKind;

// Tensors have no UINT32 and UINT64 elements, so the model gets such IDs as INT64.
std::string control_datatype(const std::string& datatype) {
  return datatype == "UINT64" || datatype == "UINT32" ? "INT64" : datatype;
}

std::set<std::string> server_inputs(const ModelConfig& config) {
  std::set<std::string> names;
  if (!config.sequence_batching) return names;
  for (const auto& control : config.sequence_batching->controls) names.insert(control.name);
  for (const auto& state : config.sequence_batching->states) names.insert(state.input_name);
  const GenerationOptions generation = generation_options(config);
  if (!generation.length_input.empty()) names.insert(generation.length_input);
  return names;
}

bool lists_output(const ModelConfig& config, const std::string& name) {
  return std::any_of(config.outputs.begin(), config.outputs.end(),
                     [&](const ModelConfig::TensorConfig& output) { return output.name == name; });
}

bool is_hidden_output(const ModelConfig& config, const TensorSpec& spec) {
  if (!config.sequence_batching) return false;
  const auto& states = config.sequence_batching->states;
  return std::any_of(states.begin(), states.end(), [&](const SequenceBatchingConfig::State& state) {
    return spec.answers_to(state.output_name) && !lists_output(config, state.output_name);
  });
}

bool is_server_input(const std::set<std::string>& names, const TensorSpec& spec) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return spec.answers_to(name); });
}

}  // namespace

Signature request_signature(const Signature& model, const ModelConfig& config) {
  Signature out = model;
  const std::set<std::string> names = server_inputs(config);
  std::erase_if(out.inputs, [&](const TensorSpec& spec) { return is_server_input(names, spec); });
  std::erase_if(out.outputs, [&](const TensorSpec& spec) { return is_hidden_output(config, spec); });
  return out;
}

ModelConfig server_tensors(const ModelConfig& config) {
  ModelConfig out;
  out.max_batch_size = config.max_batch_size;
  if (!config.sequence_batching) return out;
  for (const auto& control : config.sequence_batching->controls) {
    ModelConfig::TensorConfig input;
    input.name = control.name;
    input.datatype = control_datatype(control.datatype);
    input.has_dims = true;
    input.dims = {1};
    out.inputs.push_back(std::move(input));
  }
  for (const auto& state : config.sequence_batching->states) {
    ModelConfig::TensorConfig tensor;
    tensor.name = state.input_name;
    tensor.datatype = state.datatype;
    tensor.dims = state.dims;
    tensor.has_dims = true;
    out.inputs.push_back(tensor);
    tensor.name = state.output_name;
    if (!lists_output(config, state.output_name)) out.outputs.push_back(std::move(tensor));
  }
  const GenerationOptions generation = generation_options(config);
  if (!generation.length_input.empty()) {
    ModelConfig::TensorConfig length;
    length.name = generation.length_input;
    length.datatype = "INT64";
    length.dims = {1};
    length.has_dims = true;
    out.inputs.push_back(std::move(length));
  }
  return out;
}

SequenceModel::SequenceModel(std::string model, const ModelConfig& config, const Signature& signature)
    : model_(std::move(model)),
      signature_(signature),
      request_signature_(server::request_signature(signature, config)) {
  const std::set<std::string> names = server_inputs(config);
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    if (!is_server_input(names, signature.inputs[i])) model_inputs_.push_back(i);
  }
  for (const auto& control : config.sequence_batching->controls) {
    const std::optional<DataType> datatype = parse_datatype(control_datatype(control.datatype));
    check(datatype.has_value(), "control_input '", control.name, "': data_type ", control.datatype,
          " is not supported");
    controls_.push_back({.config = control, .datatype = *datatype, .input = input_named(control.name)});
  }
  for (const auto& state : config.sequence_batching->states) add_state(state, config);
}

void SequenceModel::add_state(const SequenceBatchingConfig::State& config, const ModelConfig& model) {
  const std::string what = concat("sequence_batching.state '", config.input_name, "'");
  const std::optional<DataType> datatype = parse_datatype(config.datatype);
  const std::optional<DType> dtype = datatype ? to_dtype(*datatype) : std::nullopt;
  check(dtype.has_value(), what, ": data_type ", config.datatype, " is not supported: no tensor has it");
  State state;
  state.input_name = config.input_name;
  state.output_name = config.output_name;
  state.input = input_named(config.input_name);
  state.dtype = *dtype;
  state.is_sent = lists_output(model, config.output_name);
  Dims first;
  if (has_batch_dimension()) {
    state.dims.push_back(1);
    first.push_back(1);
  }
  const std::vector<int64_t>& dims = config.has_initial_state ? config.initial_dims : config.dims;
  for (const int64_t dim : config.dims) state.dims.push_back(dim);
  for (const int64_t dim : dims) first.push_back(dim < 0 ? 1 : dim);
  const Tensor initial = Tensor::empty(first, *dtype);
  auto* const bytes = static_cast<char*>(initial.raw_data());
  if (config.has_initial_state && !config.initial_is_zero) {
    read_exactly(config.initial_file, bytes, initial.size_bytes(), concat(what, ": initial_state"));
  } else {
    std::fill_n(bytes, initial.size_bytes(), 0);
  }
  state.initial = read_only(initial);
  states_.push_back(std::move(state));
}

bool SequenceModel::has_ready_control() const {
  return std::any_of(controls_.begin(), controls_.end(),
                     [](const Control& control) { return control.config.kind == ControlKind::kReady; });
}

SequenceState SequenceModel::initial_state() const {
  SequenceState out;
  for (const State& state : states_) out.push_back(state.initial);
  return out;
}

size_t SequenceModel::input_named(const std::string& name) const {
  const auto& inputs = signature_.inputs;
  const auto found =
      std::find_if(inputs.begin(), inputs.end(), [&](const TensorSpec& spec) { return spec.answers_to(name); });
  check(found != inputs.end(), "model '", model_, "' has no input '", name, "', which config.pbtxt names");
  return static_cast<size_t>(found - inputs.begin());
}

void SequenceModel::check_correlation_id(const CorrelationId& id) const {
  for (const Control& control : controls_) {
    if (control.config.kind != ControlKind::kCorrelationId) continue;
    const bool is_text = !id.text.empty(), wants_text = control.datatype == DataType::kBytes;
    check(is_text == wants_text, "sequence batching control '", control.config.name, "' data-type is '",
          is_text ? "BYTES" : "UINT64", "', but model '", model_, "' expects '", control.config.datatype, "'");
    if (wants_text) continue;
    uint64_t largest = std::numeric_limits<uint64_t>::max();
    if (control.config.datatype == "INT64") largest = std::numeric_limits<int64_t>::max();
    if (control.config.datatype == "UINT32") largest = std::numeric_limits<uint32_t>::max();
    if (control.config.datatype == "INT32") largest = std::numeric_limits<int32_t>::max();
    check(id.number <= largest, "inference request for sequence ", id.number, " to model '", model_,
          "': the correlation ID does not fit into data_type ", control.config.datatype);
  }
}

InferTensor SequenceModel::control_tensor(const Control& control, std::span<const RowControls> rows) const {
  InferTensor out;
  out.name = control.config.name;
  out.datatype = control.datatype;
  const auto count = static_cast<int64_t>(rows.size());
  out.shape = has_batch_dimension() ? Dims{count, 1} : Dims{1};
  if (control.datatype == DataType::kBytes) {
    for (const RowControls& row : rows) {
      const bool has_number = row.sequence != nullptr && row.sequence->text.empty();
      out.strings.push_back(row.sequence == nullptr ? ""
                            : has_number            ? std::to_string(row.sequence->number)
                                                    : row.sequence->text);
    }
    return out;
  }
  out.tensor = Tensor::empty(out.shape, *to_dtype(control.datatype));
  dispatch_all(out.tensor.dtype(), "control input", [&]<class T>() {
    T* data = out.tensor.data<T>();
    for (size_t i = 0; i < rows.size(); ++i) {
      const RowControls& row = rows[i];
      const auto flag = [&](bool is_on) -> T {
        const double value = is_on ? control.config.on : control.config.off;
        if constexpr (std::is_integral_v<T>) return static_cast<T>(value);
        return static_cast<T>(static_cast<float>(value));
      };
      switch (control.config.kind) {
        case ControlKind::kStart: data[i] = flag(row.is_start); break;
        case ControlKind::kEnd: data[i] = flag(row.is_end); break;
        case ControlKind::kReady: data[i] = flag(row.is_ready); break;
        case ControlKind::kCorrelationId:
          if constexpr (std::is_integral_v<T>) data[i] = static_cast<T>(row.sequence ? row.sequence->number : 0);
          break;
      }
    }
  });
  return out;
}

void SequenceModel::add_controls(std::span<const RowControls> rows, std::vector<InferTensor>& inputs,
                                 std::vector<size_t>& indices) const {
  for (const Control& control : controls_) {
    inputs.push_back(control_tensor(control, rows));
    indices.push_back(control.input);
  }
}

void SequenceModel::check_state(const State& state, const InferTensor& output, size_t rows) const {
  bool fits = output.tensor.defined() && output.tensor.dtype() == state.dtype &&
              output.tensor.ndim() == static_cast<int64_t>(state.dims.size());
  for (size_t i = 0; fits && i < state.dims.size(); ++i) {
    const bool is_batch = i == 0 && has_batch_dimension();
    const int64_t expected = is_batch ? static_cast<int64_t>(rows) : state.dims[i];
    fits = expected == -1 || expected == output.tensor.size(static_cast<int64_t>(i));
  }
  if (fits) return;
  Dims expected = state.dims;
  if (has_batch_dimension()) expected[0] = static_cast<int64_t>(rows);
  fail(ErrorCode::kFailedPrecondition, "model '", model_, "' returned state '", state.output_name, "' of ",
       output.tensor.defined() ? describe(output.tensor) : "BYTES", ", expected ", tensord::name_of(state.dtype), " ",
       to_string(expected));
}

namespace {

bool shares_memory(const Tensor& a, const Tensor& b) { return a.storage().get() == b.storage().get(); }

bool is_own_input(const Tensor& tensor, std::span<const InferTensor> inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [&](const InferTensor& input) {
    return input.is_own && input.tensor.defined() && shares_memory(input.tensor, tensor);
  });
}

}  // namespace

void SequenceModel::set_apart(std::vector<Tensor>& states, std::vector<InferTensor>& outputs,
                              std::span<const InferTensor> inputs, uint64_t* copied_bytes) const {
  for (size_t k = 0; k < states.size(); ++k) {
    if (!signature_.inputs[states_[k].input].is_written) continue;
    const auto is_shared = [&](const Tensor& other) { return &other != &states[k] && shares_memory(other, states[k]); };
    if (is_own_input(states[k], inputs) && std::none_of(states.begin(), states.end(), is_shared)) {
      // The next run overwrites the state, while an output in the same memory is still being sent.
      for (InferTensor& output : outputs) {
        if (!output.tensor.defined() || !shares_memory(output.tensor, states[k])) continue;
        output.tensor = output.tensor.clone();
        *copied_bytes += output.tensor.size_bytes();
      }
      continue;
    }
    states[k] = states[k].clone();
    *copied_bytes += states[k].size_bytes();
  }
}

std::vector<Tensor> SequenceModel::take_states(std::vector<InferTensor>& outputs, size_t rows,
                                               std::span<const InferTensor> inputs, uint64_t* copied_bytes) const {
  std::vector<Tensor> out;
  for (const State& state : states_) {
    const auto found = std::find_if(outputs.begin(), outputs.end(),
                                    [&](const InferTensor& output) { return output.name == state.output_name; });
    if (found == outputs.end()) {
      fail(ErrorCode::kFailedPrecondition, "model '", model_, "' did not return state '", state.output_name, "'");
    }
    check_state(state, *found, rows);
    out.push_back(found->tensor.contiguous());
    if (!state.is_sent) outputs.erase(found);
  }
  set_apart(out, outputs, inputs, copied_bytes);
  return out;
}

}  // namespace tensord::server
