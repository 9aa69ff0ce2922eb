#include "server/commands/client/infer_inputs.h"

#include <algorithm>
#include <charconv>
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

// NAME= at the beginning of a text; a path, JSON or text:… has other characters before a mark.
size_t name_size(const std::string& text) {
  const size_t mark = text.find('=');
  if (mark == std::string::npos || mark == 0) return 0;
  const bool is_name = std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(mark), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-';
  });
  return is_name ? mark : 0;
}

// The model's shape, 1 where a size is any.
std::vector<int64_t> min_shape(const TensorMetadata& spec) {
  std::vector<int64_t> shape = spec.shape;
  for (int64_t& size : shape) size = std::max<int64_t>(size, 1);
  return shape;
}

std::vector<int64_t> parse_shape(const std::string& text) {
  std::vector<int64_t> shape;
  const char *at = text.data(), *end = at + text.size();
  while (at != end) {
    int64_t size = 0;
    const auto [next, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 0 || (next != end && (*next != ',' || next + 1 == end))) {
      throw InvalidArgumentError("random: a shape is numbers with commas between them, got '" + text + "'");
    }
    shape.push_back(size);
    at = next == end ? end : next + 1;
  }
  return shape;
}

// random[:SHAPE[:TYPE]]; what is left out is as the model has it.
Tensor read_random(const std::string& text, const TensorMetadata* spec) {
  const size_t shape_at = text.find(':'), type_at = text.find(':', std::min(shape_at, text.size() - 1) + 1);
  if (shape_at == std::string::npos && spec == nullptr) throw InvalidArgumentError("random: takes :SHAPE[:TYPE] here");
  const std::vector<int64_t> shape =
      shape_at == std::string::npos ? min_shape(*spec) : parse_shape(text.substr(shape_at + 1, type_at - shape_at - 1));
  client::DataType type = client::DataType::kFp32;
  if (type_at != std::string::npos) {
    type = parse_type(text.substr(type_at + 1));
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

// Text goes into the smallest shape that the model takes.
Tensor read_text(const std::string& text, const TensorMetadata* spec) {
  return text_tensor(text, spec == nullptr ? std::vector<int64_t>{1} : min_shape(*spec));
}

bool is_random(const std::string& text) { return text == "random" || text.starts_with("random:"); }

// `spec` gives what the model says of the input, or null.
template <class Spec>
Tensor read_value(const std::string& text, const Spec& spec) {
  if (is_random(text)) return read_random(text, spec());
  if (text.starts_with("text:")) return read_text(text.substr(5), spec());
  if (text.starts_with("@")) return read_text(read_file(text.substr(1), kMaxTextBytes), spec());
  if (text.ends_with(".npy")) return read_npy(text);
  if (text.ends_with(".json")) return read_json(read_file(text, kMaxJsonBytes), spec(), "the file is not JSON");
  return read_json(text, spec(),
                   "is neither JSON, a file (.npy, .npz, .json, @FILE), random[:SHAPE[:TYPE]], nor text:TEXT");
}

// What goes wrong with an input names it.
template <class Read>
Tensor named(const std::string& name, const std::string& text, const Read& read) {
  const auto where = [&] {
    return concat("--input ", name, "='", text.substr(0, 64), text.size() > 64 ? "…" : "", "': ");
  };
  try {
    return read();
  } catch (const client::Error& error) {
    client::throw_error(error.code(), where() + error.what());
  } catch (const Error& error) {
    fail(error.code(), where(), error.what());
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
  for (const std::string& text : texts) {
    if (const size_t size = name_size(text); size > 0) {
      const std::string name = text.substr(0, size), value = text.substr(size + 1);
      add(name, named(name, value, [&] { return read_value(value, [&] { return signature.input(name); }); }));
    } else if (text.ends_with(".npz")) {
      for (auto& [name, tensor] : read_npz_tensors(text)) add(name, std::move(tensor));
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
    add(spec.name, named(spec.name, "random", [&] { return read_random("random", &spec); }));
  }
  return inputs;
}

}  // namespace tensord::server
