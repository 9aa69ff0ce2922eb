#include "server/rest/generate_json.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "server/rest/json_data.h"
#include "server/rest/json_reader.h"

namespace tensord::server {
namespace {

// Number of elements in a value: the length of a list, or 1 for a scalar.
int64_t count_elements(std::string_view json, const CallCharge& charge) {
  JsonReader reader(json, &charge);
  if (reader.peek() != JsonReader::Kind::kArray) return 1;
  int64_t count = 0;
  reader.array([&] {
    reader.skip();
    ++count;
  });
  return count;
}

// Shape of an input with `count` elements: the innermost dynamic dimension takes what the fixed dimensions leave.
Dims shape_for(const TensorSpec& spec, int64_t count) {
  if (!spec.shape) return {count};
  Dims shape = *spec.shape;
  int64_t left = count;
  bool is_fit = true;
  for (const int64_t size : shape) {
    if (size < 0) continue;
    is_fit = is_fit && size > 0 && left % size == 0;
    if (size > 0) left /= size;
  }
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] >= 0) continue;
    shape[i] = left;
    left = 1;
  }
  check(is_fit && left == 1, "The schema can not convert input '", spec.name, "' to tensor with proper shape");
  return shape;
}

class GenerateReader {
 public:
  GenerateReader(const GenerateTarget& target, std::string_view json, uint64_t max_input_bytes,
                 const CallCharge& charge)
      : target_(target), reader_(json, &charge), max_input_bytes_(max_input_bytes), charge_(charge) {}

  RestRequest read() {
    InferMessage& message = request_.message;
    message.model_name = target_.name;
    message.model_version = target_.version;
    reader_.object([&](const std::string& key) {
      if (key == "id") {
        message.id = reader_.string();
        check(is_utf8(message.id), "Unable to parse 'id'");
        check_request_id(message.id);
      } else if (key == "parameters") {
        read_parameters();
      } else {
        take(key);
      }
    });
    reader_.finish();
    return std::move(request_);
  }

 private:
  void read_parameters() {
    check(reader_.peek() == JsonReader::Kind::kObject, "Expected JSON object for keyword: 'parameters'");
    reader_.object([&](const std::string& name) {
      try {
        take(name);
      } catch (const Error& error) {
        fail(error.code(), "Converting keyword: 'parameters': ", error.what());
      }
    });
  }

  // A member is an input if the model has one of that name; otherwise it is a parameter.
  void take(const std::string& key) {
    const std::vector<TensorSpec>& specs = target_.signature.inputs;
    const auto spec =
        std::find_if(specs.begin(), specs.end(), [&](const TensorSpec& it) { return it.answers_to(key); });
    if (spec == specs.end()) {
      read_json_parameter(reader_, key, charge_, request_.message.parameters);
    } else {
      take_input(*spec, key);
    }
  }

  void take_input(const TensorSpec& spec, const std::string& key) {
    std::vector<InferMessage::Input>& inputs = request_.message.inputs;
    const auto is_same = [&](const InferMessage::Input& it) { return spec.answers_to(it.name); };
    check(std::none_of(inputs.begin(), inputs.end(), is_same), "input '", key, "' already exists in request");
    const std::string_view data = reader_.skip();
    check(spec.datatype.has_value(), "the datatype of input '", key, "' is not known: the model needs a configuration");
    charge_.grow(kTensorBytes);
    InferMessage::Input& input = inputs.emplace_back();
    input.name = key;
    input.datatype = name_of(*spec.datatype);
    const int64_t count = count_elements(data, charge_);
    input.shape = shape_for(spec, count);
    input_bytes_ += std::max<uint64_t>(data.size(), static_cast<uint64_t>(count) * size_of(*spec.datatype));
    check(max_input_bytes_ == 0 || input_bytes_ <= max_input_bytes_, "request size with input '", input.name,
          "' exceeds the maximum allowed input size of ", max_input_bytes_,
          ". Use --http-max-input-size to increase the limit.");
    input.fill = [data, name = target_.name, &charge = charge_](int64_t elements, InferTensor& out) {
      read_json_data(data, elements, name, charge, out);
    };
  }

  const GenerateTarget& target_;
  JsonReader reader_;
  const uint64_t max_input_bytes_;
  const CallCharge& charge_;
  RestRequest request_;
  uint64_t input_bytes_ = 0;
};

}  // namespace

RestRequest parse_generate_json(const GenerateTarget& target, std::string_view json, uint64_t max_input_bytes,
                                const CallCharge& charge) {
  return GenerateReader(target, json, max_input_bytes, charge).read();
}

void write_generated_json(const ResponseHead& head, const std::vector<InferTensor>& outputs,
                          const HttpMemoryQuota& quota, AnswerText& out) {
  out += '{';
  auto add_name = [&out, is_first = true](std::string_view name) mutable {
    if (!std::exchange(is_first, false)) out += ',';
    write_json_string(name, out);
    out += ':';
  };
  const auto add = [&](std::string_view name, std::string_view text) {
    add_name(name);
    write_json_string(text, out);
  };
  if (!head.id.empty()) add("id", head.id);
  add("model_name", head.model_name);
  add("model_version", head.model_version);
  for (const InferTensor& output : outputs) {
    add_name(output.name);
    // A single element is written as a scalar, without brackets.
    const bool is_one = (output.tensor.defined() ? output.tensor.numel() : std::ssize(output.strings)) == 1;
    write_json_output(output, quota, out, /*has_brackets=*/!is_one);
  }
  if (!head.parameters.empty()) {
    out += ',';
    write_json_parameters(head.parameters, out);
  }
  out += '}';
}

}  // namespace tensord::server
