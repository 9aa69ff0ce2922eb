#include "server/transport/infer/message.h"

#include "core/base/error.h"
#include "core/tensor/shape.h"

namespace tensord::server {
namespace {

using WireType = WireReader::WireType;
using Tag = WireReader::Tag;

constexpr size_t kMaxParts = 8192;  // pieces of tensor contents over all inputs

// Running totals of a message. Charged in steps, because most messages have little.
struct Totals {
  RequestLimits::Admission* admission = nullptr;
  size_t parameters = 0;
  size_t parts = 0;
  uint64_t uncounted_bytes = 0;

  void add(uint64_t bytes) {
    constexpr uint64_t kStepBytes = 4096;
    uncounted_bytes += bytes;
    if (uncounted_bytes < kStepBytes || admission == nullptr) return;
    admission->grow(uncounted_bytes);
    uncounted_bytes = 0;
  }
};

std::string read_name(WireReader& reader, const char* what) {
  std::string name = reader.read_string();
  check_name(name, what);
  return name;
}

template <class T>
T bit_cast_from(uint64_t bits) {
  return __builtin_bit_cast(T, bits);
}

ParameterValue parse_parameter(WireReader reader) {
  ParameterValue value;
  while (!reader.at_end()) {
    const Tag tag = reader.read_tag();
    if (tag.field == 1 && tag.type == WireType::kVarint) {
      value = reader.read_varint() != 0;
    } else if (tag.field == 2 && tag.type == WireType::kVarint) {
      value = static_cast<int64_t>(reader.read_varint());
    } else if (tag.field == 3 && tag.type == WireType::kBytes) {
      value = reader.read_string();
    } else if (tag.field == 4 && tag.type == WireType::kFixed64) {
      value = bit_cast_from<double>(reader.read_fixed64());
    } else if (tag.field == 5 && tag.type == WireType::kVarint) {
      value = reader.read_varint();
    } else {
      reader.skip(tag);
    }
  }
  return value;
}

// One entry of a map field: key = 1, value = 2.
void parse_parameter_entry(WireReader reader, ParameterMap& into, Totals& totals) {
  std::string key;
  ParameterValue value;
  while (!reader.at_end()) {
    const Tag tag = reader.read_tag();
    if (tag.field == 1 && tag.type == WireType::kBytes) {
      key = read_name(reader, "a parameter");
    } else if (tag.field == 2 && tag.type == WireType::kBytes) {
      value = parse_parameter(reader.read_range());
    } else {
      reader.skip(tag);
    }
  }
  totals.add(parameter_bytes(key, value));
  into[std::move(key)] = std::move(value);
  check(into.size() <= kMaxParameters, "request has more than ", kMaxParameters, " parameters");
  check(++totals.parameters <= kMaxAllParameters, "request has more than ", kMaxAllParameters, " parameters in all");
}

void add_dimension(Dims& shape, uint64_t size) {
  check(shape.size() < kMaxDims, "request has a tensor of more than ", kMaxDims, " dimensions");
  shape.push_back(static_cast<int64_t>(size));
}

void parse_input(WireReader reader, InferMessage::Input& input, Totals& totals) {
  totals.add(kTensorBytes);
  while (!reader.at_end()) {
    const Tag tag = reader.read_tag();
    const bool is_bytes = tag.type == WireType::kBytes;
    if (tag.field == 1 && is_bytes) {
      input.name = read_name(reader, "an input");
    } else if (tag.field == 2 && is_bytes) {
      input.datatype = read_name(reader, "a datatype");
    } else if (tag.field == 3 && is_bytes) {
      WireReader packed = reader.read_range();
      while (!packed.at_end()) add_dimension(input.shape, packed.read_varint());
    } else if (tag.field == 3 && tag.type == WireType::kVarint) {
      add_dimension(input.shape, reader.read_varint());
    } else if (tag.field == 4 && is_bytes) {
      parse_parameter_entry(reader.read_range(), input.parameters, totals);
    } else if (tag.field == 5 && is_bytes) {
      check(input.contents.size() < kMaxTensors, "input has contents in more than ", kMaxTensors, " parts");
      check(++totals.parts <= kMaxParts, "request has contents in more than ", kMaxParts, " parts");
      input.contents.push_back(reader.read_range());
    } else {
      reader.skip(tag);
    }
  }
}

InferMessage::RequestedOutput parse_requested_output(WireReader reader, Totals& totals) {
  InferMessage::RequestedOutput output;
  totals.add(kTensorBytes);
  while (!reader.at_end()) {
    const Tag tag = reader.read_tag();
    if (tag.field == 1 && tag.type == WireType::kBytes) {
      output.name = read_name(reader, "an output");
    } else if (tag.field == 2 && tag.type == WireType::kBytes) {
      parse_parameter_entry(reader.read_range(), output.parameters, totals);
    } else {
      reader.skip(tag);
    }
  }
  return output;
}

}  // namespace

void check_name(std::string_view name, const char* what) {
  check(name.size() <= kMaxNameBytes, "the name of ", what, " has ", name.size(), " bytes, at most ", kMaxNameBytes);
}

void check_request_id(std::string_view id) {
  check(id.size() <= kMaxIdBytes, "the request's id has ", id.size(), " bytes, at most ", kMaxIdBytes);
}

uint64_t parameter_bytes(const std::string& name, const ParameterValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return kParameterBytes + 2 * (name.size() + (text ? text->size() : 0));
}

InferMessage parse_infer_message(const WireMessage& message, RequestLimits::Admission* admission) {
  InferMessage out;
  Totals totals{.admission = admission};
  WireReader reader(message);
  while (!reader.at_end()) {
    const Tag tag = reader.read_tag();
    if (tag.type != WireType::kBytes) {
      reader.skip(tag);
      continue;
    }
    switch (tag.field) {
      case 1: out.model_name = read_name(reader, "a model"); break;
      case 2: out.model_version = read_name(reader, "a version"); break;
      case 3:
        out.id = reader.read_string();
        check_request_id(out.id);
        break;
      case 4: parse_parameter_entry(reader.read_range(), out.parameters, totals); break;
      case 5: parse_input(reader.read_range(), out.inputs.emplace_back(), totals); break;
      case 6: out.outputs.push_back(parse_requested_output(reader.read_range(), totals)); break;
      case 7: out.raw_contents.push_back(reader.read_range()); break;
      default: reader.skip(tag);
    }
    check(
        out.inputs.size() <= kMaxTensors && out.outputs.size() <= kMaxTensors && out.raw_contents.size() <= kMaxTensors,
        "request has more than ", kMaxTensors, " tensors");
  }
  return out;
}

}  // namespace tensord::server
