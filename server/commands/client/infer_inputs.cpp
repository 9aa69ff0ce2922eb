#include "server/commands/client/infer_inputs.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "server/commands/client/connection.h"
#include "server/commands/client/tensor_files.h"
#include "server/commands/client/tensor_values.h"

namespace tensord::server {
namespace {

using client::InvalidArgumentError;
using client::Tensor;
using client::TensorMetadata;

constexpr uint64_t kMaxJsonBytes = uint64_t{1} << 28;
constexpr uint64_t kMaxTextBytes = uint64_t{1} << 30;

// The model's shape with 1 for each dynamic size.
std::vector<int64_t> min_shape(const TensorMetadata& spec) {
  std::vector<int64_t> shape = spec.shape;
  for (int64_t& size : shape) size = std::max<int64_t>(size, 1);
  return shape;
}

// Shape and type default to the model's.
Tensor read_random(const InputText& text, const TensorMetadata* spec) {
  if (!text.shape && spec == nullptr) throw InvalidArgumentError("random: takes :SHAPE[:TYPE] here");
  const std::vector<int64_t> shape = text.shape ? *text.shape : min_shape(*spec);
  client::DataType type = client::DataType::kFp32;
  if (!text.type.empty()) {
    type = parse_type(text.type);
  } else if (spec != nullptr && !spec->data_type.empty()) {
    type = client::parse_data_type(spec->data_type);
  }
  return random_tensor(type, shape);
}

Tensor read_json(const std::string& text, const TensorMetadata* spec, const char* otherwise) {
  const nlohmann::json values = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (values.is_discarded()) throw InvalidArgumentError(otherwise);
  return tensor_of_json(values, spec == nullptr ? "" : spec->data_type);
}

// The string is repeated in the smallest shape that the model accepts.
Tensor read_text(const std::string& text, const TensorMetadata* spec) {
  return string_tensor(text, spec == nullptr ? std::vector<int64_t>{1} : min_shape(*spec));
}

// `spec` returns the model's metadata of the input, or null.
template <class Spec>
Tensor read_value(const InputText& text, const Spec& spec) {
  using Kind = InputText::Kind;
  switch (text.kind) {
    case Kind::kRandom: return read_random(text, spec());
    case Kind::kText: return read_text(text.value, spec());
    case Kind::kBytes: return read_text(read_file(text.value, kMaxTextBytes), spec());
    case Kind::kNpy: return read_npy(text.value);
    case Kind::kJsonFile: return read_json(read_file(text.value, kMaxJsonBytes), spec(), "the file is not JSON");
    default:
      return read_json(text.value, spec(),
                       "is neither JSON, a file (.npy, .npz, .json, @FILE), random[:SHAPE[:TYPE]], SHAPE[:TYPE], nor "
                       "text:TEXT");
  }
}

// Adds the input's name to errors.
template <class Read>
Tensor named(const std::string& name, const InputText& text, const Read& read) {
  try {
    return read();
  } catch (const client::Error& error) {
    client::throw_error(error.code(), input_place("--input", name, text.value) + error.what());
  } catch (const Error& error) {
    fail(error.code(), input_place("--input", name, text.value), error.what());
  }
}

}  // namespace

const client::ModelMetadata& ModelSignature::get() {
  if (metadata_) return *metadata_;
  metadata_ = server_.model_metadata(model_, version_);
  for (TensorMetadata& input : metadata_->inputs) {
    if (batch_ > 0 && !input.shape.empty() && input.shape[0] < 0) input.shape[0] = batch_;
  }
  return *metadata_;
}

const TensorMetadata* ModelSignature::input(const std::string& name) {
  const std::vector<TensorMetadata>& inputs = get().inputs;
  const auto found = std::find_if(inputs.begin(), inputs.end(), [&](const auto& input) { return input.name == name; });
  return found == inputs.end() ? nullptr : &*found;
}

std::vector<client::Input> read_inputs(const std::vector<std::string>& texts, bool random_rest,
                                       ModelSignature& signature) {
  std::vector<client::Input> inputs;
  const auto add = [&](const std::string& name, Tensor tensor) {
    for (const client::Input& other : inputs) {
      if (other.name == name) throw InvalidArgumentError("--input: '" + name + "' is given twice");
    }
    inputs.push_back({.name = name, .tensor = std::move(tensor)});
  };
  size_t unnamed = 0;
  for (const std::string& written : texts) {
    const InputText text = parse_input("--input", written, WholeNumber::kIsValue);
    if (text.kind == InputText::Kind::kNpz) {
      for (auto& [name, tensor] : read_npz_tensors(text.value)) add(name, std::move(tensor));
    } else if (!text.name.empty()) {
      add(text.name,
          named(text.name, text, [&] { return read_value(text, [&] { return signature.input(text.name); }); }));
    } else {
      const auto& specs = signature.get().inputs;
      if (unnamed == specs.size()) {
        throw InvalidArgumentError(concat("--input: model '", signature.get().name, "' has ", specs.size(), " inputs"));
      }
      const TensorMetadata& spec = specs[unnamed++];
      add(spec.name, named(spec.name, text, [&] { return read_value(text, [&] { return &spec; }); }));
    }
  }
  if (unnamed > 0 && unnamed < inputs.size()) throw InvalidArgumentError("--input: name all of them, or none");
  if (!random_rest) return inputs;
  for (const TensorMetadata& spec : signature.get().inputs) {
    const bool is_there =
        std::any_of(inputs.begin(), inputs.end(), [&](const auto& input) { return input.name == spec.name; });
    if (is_there) continue;
    if (spec.data_type.empty()) {
      throw InvalidArgumentError("input '" + spec.name + "' is of any type: say which, as --input " + spec.name +
                                 "=random:1,3:f32");
    }
    const InputText random{.name = {}, .kind = InputText::Kind::kRandom, .value = "random", .shape = {}, .type = {}};
    add(spec.name, named(spec.name, random, [&] { return read_random(random, &spec); }));
  }
  return inputs;
}

}  // namespace tensord::server
