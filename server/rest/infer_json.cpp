#include "server/rest/infer_json.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/tensor/shape.h"
#include "server/rest/json_data.h"
#include "server/rest/target.h"
#include "server/transport/infer/contents.h"

namespace tensord::server {
namespace {

std::string shape_string(const Dims& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(shape[i]);
  return text + "]";
}

std::string utf8_string(JsonReader& reader) {
  std::string text = reader.string();
  if (!is_utf8(text)) reader.fail_here("Invalid encoding in string.");
  return text;
}

// Longest part of a member's name that an error message shows.
constexpr size_t kMaxPathKey = 64;

// Which sources of data an input names.
struct InputSource {
  std::string_view data;  // the JSON of `data`
  int64_t elements = 0;   // in `data`
  std::optional<uint64_t> binary_bytes;
  bool has_region = false;
};

class RequestReader {
 public:
  RequestReader(std::string_view json, const CallCharge& charge, RestRequest& request)
      : reader_(json, &charge), charge_(charge), request_(request) {}

  // Adds the path of the field to every error.
  std::vector<InputSource> read() {
    try {
      read_request();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidArgument || path_.empty()) throw;
      fail(error.code(), error.what(), " (field '", path_, "')");
    }
    return std::move(sources_);
  }

 private:
  void read_request() {
    bool has_inputs = false;
    members([&](const std::string& key) {
      if (key == "id") {
        request_.message.id = utf8_string(reader_);
        check_request_id(request_.message.id);
      } else if (key == "parameters") {
        read_request_parameters();
      } else if (key == "inputs") {
        has_inputs = true;
        read_tensors(sources_, [this] { read_input(); });
      } else if (key == "outputs") {
        read_tensors(request_.message.outputs, [this] { read_output(); });
      } else {
        reader_.skip();
      }
    });
    reader_.finish();
    check(has_inputs, "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'");
  }

  // Treats null members as absent: some clients serialize every field of their models.
  void members(const std::function<void(const std::string& key)>& member) {
    reader_.object([&](const std::string& key) {
      if (reader_.peek() == JsonReader::Kind::kNull) return reader_.null();
      const size_t outer = path_.size();
      if (outer > 0) path_ += '.';
      path_.append(key, 0, kMaxPathKey);
      member(key);
      path_.resize(outer);
    });
  }

  template <class List, class Read>
  void read_tensors(const List& list, const Read& read) {
    reader_.array([&] {
      check(list.size() < kMaxTensors, "request has more than ", kMaxTensors, " tensors");
      charge_.grow(kTensorBytes);
      const size_t outer = path_.size();
      ((path_ += '[') += std::to_string(list.size())) += ']';
      read();
      path_.resize(outer);
    });
  }

  void add_parameter(ParameterMap& parameters, const std::string& name) {
    check(++parameters_ <= kMaxAllParameters, "request has more than ", kMaxAllParameters, " parameters in all");
    read_json_parameter(reader_, name, charge_, parameters);
  }

  std::string read_name(const char* what) {
    std::string name = utf8_string(reader_);
    check_name(name, what);
    return name;
  }

  void read_request_parameters() {
    members([&](const std::string& name) {
      if (name == "binary_data_output") {
        request_.forms.is_binary = reader_.boolean();
      } else {
        add_parameter(request_.message.parameters, name);
      }
    });
  }

  uint64_t read_size(const char* what) {
    const std::string_view text = reader_.number();
    uint64_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    check(error == std::errc() && end == text.data() + text.size(), "Unable to parse '", what, "'");
    return size;
  }

  void read_shape(Dims& shape) {
    shape = {};
    reader_.array([&] {
      check(shape.size() < kMaxDims, "request has a tensor of more than ", kMaxDims, " dimensions");
      const std::string_view text = reader_.number();
      int64_t size = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
      const bool is_number = error == std::errc() && end == text.data() + text.size();
      if (!is_number || size < 0) {
        fail(ErrorCode::kInvalidArgument,
             "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer");
      }
      shape.push_back(size);
    });
  }

  // The byte size of the input's elements must fit in an int64.
  static void check_bytes(const InferMessage::Input& input) {
    int64_t count = 1;
    bool is_whole = true;
    for (const int64_t size : input.shape) is_whole = is_whole && !__builtin_mul_overflow(count, size, &count);
    if (!is_whole && std::ranges::find(input.shape, 0) == input.shape.end()) {
      fail(ErrorCode::kInvalidArgument, "invalid shape for input '", input.name, "': shape ", shape_string(input.shape),
           " causes total element count to exceed maximum size of ", INT64_MAX);
    }
    const std::optional<DataType> datatype = parse_datatype(input.datatype);
    const auto bytes = static_cast<int64_t>(datatype ? size_of(*datatype) : 1);
    if (is_whole && bytes > 1 && count > INT64_MAX / bytes) {
      fail(ErrorCode::kInvalidArgument, "byte size overflow for input '", input.name, "': element count (", count,
           ") * data type size (", bytes, ") exceeds maximum allowed size (", INT64_MAX, ")");
    }
  }

  void read_input() {
    InferMessage::Input& input = request_.message.inputs.emplace_back();
    InputSource& source = sources_.emplace_back();
    bool has_shape = false;
    members([&](const std::string& key) {
      if (key == "name") {
        input.name = read_name("an input");
      } else if (key == "datatype") {
        input.datatype = read_name("a datatype");
      } else if (key == "shape") {
        has_shape = true;
        read_shape(input.shape);
      } else if (key == "data") {
        source.elements = 0;
        source.data = reader_.skip(&source.elements);
      } else if (key == "parameters") {
        members([&](const std::string& name) {
          if (name == "binary_data_size") {
            source.binary_bytes = read_size("binary_data_size");
          } else {
            source.has_region = source.has_region || name == "shared_memory_region";
            add_parameter(input.parameters, name);
          }
        });
      } else {
        reader_.skip();
      }
    });
    check(!input.name.empty(), "Unable to parse 'name': attempt to access non-existing object member 'name'");
    check(!input.datatype.empty(),
          "Unable to parse 'datatype': attempt to access non-existing object member 'datatype'");
    check(has_shape, "Unable to parse 'shape': attempt to access non-existing object member 'shape'");
    check_bytes(input);
    check_source(source);
  }

  static void check_source(const InputSource& source) {
    const int set = (source.data.empty() ? 0 : 1) + (source.binary_bytes ? 1 : 0) + (source.has_region ? 1 : 0);
    if (set == 1) return;
    std::string what = set == 0 ? " no field is set" : " set";
    if (set != 0) {
      if (!source.data.empty()) what += " 'data'";
      if (source.binary_bytes) what += " 'binary_data_size'";
      if (source.has_region) what += " 'shared_memory_region'";
    }
    fail(ErrorCode::kInvalidArgument,
         "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', "
         "'shared_memory_region' in 'parameters'. But",
         what);
  }

  void read_output() {
    InferMessage::RequestedOutput& output = request_.message.outputs.emplace_back();
    bool is_binary = false;
    members([&](const std::string& key) {
      if (key == "name") {
        output.name = read_name("an output");
      } else if (key == "parameters") {
        members([&](const std::string& name) {
          if (name == "binary_data") {
            is_binary = reader_.boolean();
          } else {
            add_parameter(output.parameters, name);
          }
        });
      } else {
        reader_.skip();
      }
    });
    check(!output.name.empty(), "Unable to parse 'name': attempt to access non-existing object member 'name'");
    if (output.parameters.contains("shared_memory_region")) {
      check(!output.parameters.contains("classification"),
            "Output can't set both 'shared_memory_region' and 'classification'");
      check(!is_binary, "Output can't set both 'shared_memory_region' and 'binary_data'");
    }
    // classification=0 means the same as no parameter.
    const auto classes = output.parameters.find("classification");
    if (classes != output.parameters.end() && classes->second == ParameterValue(int64_t{0})) {
      output.parameters.erase(classes);
    }
    request_.forms.listed[output.name] = is_binary;
  }

  JsonReader reader_;
  const CallCharge& charge_;
  RestRequest& request_;
  size_t parameters_ = 0;
  std::string path_;  // of the field that is read: "inputs[0].shape"; where that is refused it stays
  std::vector<InputSource> sources_;
};

// Checks the data against the input's own shape and the size limit. These errors come before any error about the model.
void check_json_input(const InferMessage::Input& input, int64_t elements, uint64_t max_bytes) {
  const std::optional<DataType> datatype = parse_datatype(input.datatype);
  // Datatypes that JSON cannot carry are refused when the data is read. An input of zero elements needs no check.
  if (!datatype || datatype == DataType::kFp16 || datatype == DataType::kBf16) return;
  if (std::ranges::find(input.shape, 0) != input.shape.end()) return;
  const int64_t count = checked_numel(input.shape);
  const uint64_t bytes = static_cast<uint64_t>(count) * std::max<size_t>(1, size_of(*datatype));
  check(max_bytes == 0 || bytes <= max_bytes, "JSON input '", input.name, "' has a byte_size (", bytes,
        " bytes) that exceeds the maximum allowed value of ", max_bytes,
        " bytes. Use --http-max-input-size to increase the limit.");
  check_json_count(elements, count, input.name, input.shape);
}

void write_shape(const Dims& shape, AnswerText& out) { (out += "\"shape\":") += shape_string(shape); }

void write_member(const char* name, std::string_view text, AnswerText& out) {
  (((out += '"') += name) += "\":");
  write_json_string(text, out);
  out += ',';
}

// An output as binary data behind the JSON.
HttpPiece to_piece(const InferTensor& output, const HttpMemoryQuota& quota, uint64_t& copied_bytes) {
  HttpPiece piece;
  const bool is_text = output.datatype == DataType::kBytes;
  std::shared_ptr<const void> hold;
  if (quota) hold = quota(is_text ? raw_strings_bytes(output.strings) : output.tensor.size_bytes());
  piece.is_charged = true;
  if (is_text) {
    append_raw_strings(piece.text, output.strings);
    piece.owner = std::move(hold);
    return piece;
  }
  struct Owner {
    Tensor tensor;
    std::shared_ptr<const void> hold;
  };
  auto owner = std::make_shared<const Owner>(Owner{output.tensor.contiguous(), std::move(hold)});
  const Tensor& tensor = owner->tensor;
  if (!tensor.is_same(output.tensor)) copied_bytes += tensor.size_bytes();
  piece.memory = {static_cast<const uint8_t*>(tensor.raw_data()), tensor.size_bytes()};
  piece.owner = std::move(owner);
  return piece;
}

}  // namespace

namespace {

ParameterValue parameter_value(JsonReader& reader, const std::string& name) {
  switch (reader.peek()) {
    case JsonReader::Kind::kString: return utf8_string(reader);
    case JsonReader::Kind::kBool: return reader.boolean();
    case JsonReader::Kind::kNumber: {
      const std::string_view text = reader.number();
      const char *begin = text.data(), *end = text.data() + text.size();
      int64_t number = 0;
      uint64_t large = 0;
      double floating = 0;
      if (const auto parsed = std::from_chars(begin, end, number); parsed.ec == std::errc() && parsed.ptr == end) {
        return number;
      }
      if (const auto parsed = std::from_chars(begin, end, large); parsed.ec == std::errc() && parsed.ptr == end) {
        return large;
      }
      if (const auto parsed = std::from_chars(begin, end, floating); parsed.ec == std::errc() && parsed.ptr == end) {
        return floating;
      }
      break;
    }
    default: break;
  }
  fail(ErrorCode::kInvalidArgument, "parameter '", name,
       "' has invalid type. It should be either 'int', 'bool', or 'string'.");
}

}  // namespace

void read_json_parameter(JsonReader& reader, const std::string& name, const CallCharge& charge,
                         ParameterMap& parameters) {
  check(parameters.size() < kMaxParameters, "request has more than ", kMaxParameters, " parameters");
  check_name(name, "a parameter");
  ParameterValue value = parameter_value(reader, name);
  charge.grow(parameter_bytes(name, value));
  parameters[name] = std::move(value);
}

RestRequest parse_infer_json(std::string model, std::string version, std::string_view json, const WireMessage& wire,
                             size_t tensors_at, uint64_t max_input_bytes, const CallCharge& charge) {
  RestRequest request;
  InferMessage& message = request.message;
  message.model_name = std::move(model);
  message.model_version = std::move(version);
  const std::vector<InputSource> sources = RequestReader(json, charge, request).read();
  WireReader tensors(wire);
  tensors.advance(tensors_at);
  for (size_t i = 0; i < sources.size(); ++i) {
    InferMessage::Input& input = message.inputs[i];
    if (const auto& bytes = sources[i].binary_bytes) {
      const uint64_t left = tensors.remaining();
      check(*bytes <= left, "unexpected size for input '", input.name, "', expecting ", *bytes - left,
            " additional bytes for model '", message.model_name, "'");
      message.raw_contents.push_back(tensors.read_part(*bytes));
    } else if (!sources[i].data.empty()) {
      check_json_input(input, sources[i].elements, max_input_bytes);
      input.fill = [data = sources[i].data, name = message.model_name, &charge](int64_t count, InferTensor& out) {
        read_json_data(data, count, name, charge, out);
      };
    }
  }
  check(tensors.at_end(), "unexpected additional input data for model '", message.model_name,
        "': ", tensors.remaining(), " bytes more than its inputs' binary_data_size");
  return request;
}

RestRequest raw_request(std::string model, std::string version, const WireMessage& wire, const Signature& signature,
                        std::string& prefix) {
  check(signature.inputs.size() == 1, "Raw request must only have 1 input (found 1) to be deduced but got ",
        signature.inputs.size(), " inputs in '", model, "' model configuration");
  const TensorSpec& spec = signature.inputs.front();
  check(spec.datatype.has_value() && spec.shape.has_value(), "the datatype and shape of input '", spec.name,
        "' are not known: a raw request is not possible");
  RestRequest request;
  request.forms.is_binary = true;
  InferMessage& message = request.message;
  message.model_name = std::move(model);
  message.model_version = std::move(version);
  InferMessage::Input& input = message.inputs.emplace_back();
  input.name = spec.name;
  input.datatype = name_of(*spec.datatype);
  input.shape = *spec.shape;
  const bool has_batch = signature.max_batch_size > 0 && !input.shape.empty();
  if (has_batch) input.shape[0] = 1;
  int64_t* open_size = nullptr;
  int64_t fixed = 1;
  for (int64_t& size : input.shape) {
    if (size >= 0) {
      check(!__builtin_mul_overflow(fixed, size, &fixed), "the shape of input '", spec.name, "' is too large");
      continue;
    }
    check(open_size == nullptr, "The shape of the raw input '", spec.name,
          "' can not be deduced because there are more "
          "than one variable-sized dimension");
    open_size = &size;
  }
  if (*spec.datatype == DataType::kBytes) {
    if (open_size != nullptr && spec.encoded) *open_size = 1;  // one image
    check(fixed == 1 && (open_size == nullptr || spec.encoded), "For BYTE datatype raw input '", spec.name,
          "', the model must have input shape [1]");
    const auto size = static_cast<uint32_t>(wire.size_bytes);
    prefix.assign(reinterpret_cast<const char*>(&size), sizeof(size));
  } else if (open_size != nullptr) {
    const auto element_bytes = static_cast<int64_t>(size_of(*spec.datatype)) * std::max<int64_t>(fixed, 1);
    *open_size = static_cast<int64_t>(wire.size_bytes) / element_bytes;
  }
  return request;
}

void write_json_parameters(const ParameterMap& parameters, AnswerText& out) {
  bool is_first = true;
  for (const auto& [name, value] : parameters) {
    if (!std::exchange(is_first, false)) out += ',';
    write_json_string(name, out);
    out += ':';
    if (const auto* flag = std::get_if<bool>(&value)) {
      out += *flag ? "true" : "false";
    } else if (const auto* number = std::get_if<int64_t>(&value)) {
      out += std::to_string(*number);
    } else if (const auto* large = std::get_if<uint64_t>(&value)) {
      out += std::to_string(*large);
    } else if (const auto* floating = std::get_if<double>(&value)) {
      char text[40];
      const char* end = std::to_chars(text, text + sizeof(text), *floating).ptr;
      out.append({text, static_cast<size_t>(end - text)});
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      write_json_string(*text, out);
    } else {
      out += "null";
    }
  }
}

void write_json_output(const InferTensor& output, const HttpMemoryQuota& quota, AnswerText& out, bool has_brackets) {
  if (!output.tensor.defined() || output.tensor.is_contiguous()) return write_json_data(output, out, has_brackets);
  const std::shared_ptr<const void> hold = quota ? quota(output.tensor.size_bytes()) : nullptr;
  InferTensor flat;
  flat.name = output.name;
  flat.datatype = output.datatype;
  flat.tensor = output.tensor.contiguous();
  write_json_data(flat, out, has_brackets);
}

InferAnswer encode_infer_json(const ResponseHead& head, const std::vector<InferTensor>& outputs,
                              const std::vector<bool>& is_elsewhere, const OutputForms& forms,
                              const HttpMemoryQuota& quota, std::function<bool()> is_gone) {
  InferAnswer encoded;
  std::vector<HttpPiece> tensors;
  uint64_t tensor_bytes = 0;
  AnswerText json(quota, std::move(is_gone));
  json += '{';
  if (!head.id.empty()) write_member("id", head.id, json);
  write_member("model_name", head.model_name, json);
  write_member("model_version", head.model_version, json);
  if (!head.parameters.empty()) {
    json += "\"parameters\":{";
    write_json_parameters(head.parameters, json);
    json += "},";
  }
  json += "\"outputs\":[";
  for (size_t i = 0; i < outputs.size(); ++i) {
    const InferTensor& output = outputs[i];
    json += i == 0 ? "{" : ",{";
    write_member("name", output.name, json);
    write_member("datatype", name_of(output.datatype), json);
    write_shape(output.shape, json);
    if (!is_elsewhere.empty() && is_elsewhere[i]) {
      json += '}';
    } else if (forms.wants_binary(output.name)) {
      tensors.push_back(to_piece(output, quota, encoded.copied_bytes));
      tensor_bytes += tensors.back().size_bytes();
      json += ",\"parameters\":{\"binary_data_size\":";
      (json += std::to_string(tensors.back().size_bytes())) += "}}";
    } else {
      json += ",\"data\":";
      write_json_output(output, quota, json);
      json += '}';
    }
  }
  json += "]}";
  encoded.answer.type = tensor_bytes == 0 ? "application/json" : "application/octet-stream";
  if (tensor_bytes != 0) encoded.answer.headers.push_back({kJsonLengthHeader, std::to_string(json.size_bytes())});
  encoded.answer.body = json.take();
  for (HttpPiece& piece : tensors) encoded.answer.body.push_back(std::move(piece));
  return encoded;
}

}  // namespace tensord::server
