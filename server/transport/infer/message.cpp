#include "server/transport/infer/message.h"

#include "core/base/error.h"
#include "core/tensor/shape.h"

namespace tensord::server {
namespace {

using WireType = WireReader::WireType;
using Tag = WireReader::Tag;

// Bounds on what a parsed message may cost beyond its own bytes.
constexpr size_t kMaxTensors = 4096;
constexpr size_t kMaxParameters = 1024;       // of one map
constexpr size_t kMaxAllParameters = 32'768;  // of all maps of a message
constexpr size_t kMaxParts = 8192;            // of contents, of all inputs

// What a message has of these so far.
struct Totals {
  size_t parameters = 0;
  size_t parts = 0;
};

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
      key = reader.read_string();
    } else if (tag.field == 2 && tag.type == WireType::kBytes) {
      value = parse_parameter(reader.read_range());
    } else {
      reader.skip(tag);
    }
  }
  into[std::move(key)] = std::move(value);
  check(into.size() <= kMaxParameters, "request has more than ", kMaxParameters, " parameters");
  check(++totals.parameters <= kMaxAllParameters, "request has more than ", kMaxAllParameters, " parameters in all");
}

void add_dimension(Dims& shape, uint64_t size) {
  check(shape.size() < kMaxDims, "request has a tensor of more than ", kMaxDims, " dimensions");
  shape.push_back(static_cast<int64_t>(size));
}

void parse_input(WireReader reader, InferMessage::Input& input, Totals& totals) {
  while (!reader.at_end()) {
    const Tag tag = reader.read_tag();
    const bool is_bytes = tag.type == WireType::kBytes;
    if (tag.field == 1 && is_bytes) {
      input.name = reader.read_string();
    } else if (tag.field == 2 && is_bytes) {
      input.datatype = reader.read_string();
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
  while (!reader.at_end()) {
    const Tag tag = reader.read_tag();
    if (tag.field == 1 && tag.type == WireType::kBytes) {
      output.name = reader.read_string();
    } else if (tag.field == 2 && tag.type == WireType::kBytes) {
      parse_parameter_entry(reader.read_range(), output.parameters, totals);
    } else {
      reader.skip(tag);
    }
  }
  return output;
}

}  // namespace

InferMessage parse_infer_message(const WireMessage& message) {
  InferMessage out;
  Totals totals;
  WireReader reader(message);
  while (!reader.at_end()) {
    const Tag tag = reader.read_tag();
    if (tag.type != WireType::kBytes) {
      reader.skip(tag);
      continue;
    }
    switch (tag.field) {
      case 1: out.model_name = reader.read_string(); break;
      case 2: out.model_version = reader.read_string(); break;
      case 3: out.id = reader.read_string(); break;
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
