#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace tensord::jit {

// A protobuf message, written field by field; for models that no exporter produces.
class Message {
 public:
  Message& number(uint32_t field, uint64_t value) {
    varint(field << 3);
    varint(value);
    return *this;
  }
  Message& bytes(uint32_t field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(uint32_t field, const Message& value) { return bytes(field, value.bytes_); }
  const std::string& str() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

inline Message float_tensor(const std::string& name, const std::vector<int64_t>& dims,
                            const std::vector<float>& values) {
  Message tensor;
  for (const int64_t size : dims) tensor.number(1, static_cast<uint64_t>(size));
  std::string raw(values.size() * sizeof(float), '\0');
  if (!values.empty()) std::memcpy(raw.data(), values.data(), raw.size());
  return tensor.number(2, 1).bytes(8, name).bytes(9, raw);
}

// A float32 value; a negative size is dimension "n".
inline Message value_info(const std::string& name, const std::vector<int64_t>& sizes, uint64_t elem_type = 1) {
  Message shape;
  for (const int64_t size : sizes) {
    shape.message(1, size < 0 ? Message().bytes(2, "n") : Message().number(1, static_cast<uint64_t>(size)));
  }
  return Message().bytes(1, name).message(2, Message().message(1, Message().number(1, elem_type).message(2, shape)));
}

inline Message node(const std::string& op_type, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs, const std::vector<Message>& attributes = {},
                    const std::string& domain = "") {
  Message message;
  for (const std::string& input : inputs) message.bytes(1, input);
  for (const std::string& output : outputs) message.bytes(2, output);
  message.bytes(3, "the_" + op_type).bytes(4, op_type);
  for (const Message& attribute : attributes) message.message(5, attribute);
  return domain.empty() ? message : message.bytes(7, domain);
}

inline Message int_attribute(const std::string& name, int64_t value) {
  return Message().bytes(1, name).number(3, static_cast<uint64_t>(value)).number(20, 2);
}

inline Message text_attribute(const std::string& name, const std::string& value) {
  return Message().bytes(1, name).bytes(4, value).number(20, 3);
}

inline Message ints_attribute(const std::string& name, const std::vector<uint64_t>& values) {
  Message message = Message().bytes(1, name);
  for (const uint64_t value : values) message.number(8, value);
  return message.number(20, 7);
}

inline Message graph_attribute(const std::string& name, const Message& graph) {
  return Message().bytes(1, name).message(6, graph).number(20, 5);
}

// A graph of these nodes; its inputs and outputs are float32 of one dimension "n".
inline Message graph(const std::vector<Message>& nodes, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs, const std::vector<Message>& initializers = {}) {
  Message message;
  for (const Message& each : nodes) message.message(1, each);
  message.bytes(2, "g");
  for (const Message& each : initializers) message.message(5, each);
  for (const std::string& name : inputs) message.message(11, value_info(name, {-1}));
  for (const std::string& name : outputs) message.message(12, value_info(name, {-1}));
  return message;
}

inline Message opset(int64_t version, const std::string& domain = "") {
  return Message().bytes(1, domain).number(2, static_cast<uint64_t>(version));
}

inline Message model(const Message& graph, int64_t version = 17, const std::vector<Message>& functions = {}) {
  Message message;
  message.number(1, 8).message(7, graph).message(8, opset(version));
  for (const Message& each : functions) message.message(25, each);
  return message;
}

}  // namespace tensord::jit
