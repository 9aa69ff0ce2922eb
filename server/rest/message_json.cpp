#include "server/rest/message_json.h"

#include <google/protobuf/descriptor.h>

#include "core/base/error.h"

namespace tensord::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Json = nlohmann::ordered_json;

// The value of a field, or element `index` of a repeated field.
Json value_of(const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& of = *message.GetReflection();
  const bool is_one = index < 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return is_one ? of.GetInt32(message, &field) : of.GetRepeatedInt32(message, &field, index);
    case FieldDescriptor::CPPTYPE_INT64:
      return is_one ? of.GetInt64(message, &field) : of.GetRepeatedInt64(message, &field, index);
    case FieldDescriptor::CPPTYPE_UINT32:
      return is_one ? of.GetUInt32(message, &field) : of.GetRepeatedUInt32(message, &field, index);
    case FieldDescriptor::CPPTYPE_UINT64:
      return is_one ? of.GetUInt64(message, &field) : of.GetRepeatedUInt64(message, &field, index);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return is_one ? of.GetDouble(message, &field) : of.GetRepeatedDouble(message, &field, index);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return is_one ? of.GetFloat(message, &field) : of.GetRepeatedFloat(message, &field, index);
    case FieldDescriptor::CPPTYPE_BOOL:
      return is_one ? of.GetBool(message, &field) : of.GetRepeatedBool(message, &field, index);
    case FieldDescriptor::CPPTYPE_STRING:
      return is_one ? of.GetString(message, &field) : of.GetRepeatedString(message, &field, index);
    case FieldDescriptor::CPPTYPE_ENUM:
      return (is_one ? of.GetEnum(message, &field) : of.GetRepeatedEnum(message, &field, index))->name();
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return to_json(is_one ? of.GetMessage(message, &field) : of.GetRepeatedMessage(message, &field, index));
  }
  check_internal(false, "a field of no type");
  return {};
}

std::string key_of(const Json& key) { return key.is_string() ? key.get<std::string>() : key.dump(); }

Json map_of(const Message& message, const FieldDescriptor& field) {
  Json map = Json::object();
  const Reflection& of = *message.GetReflection();
  for (int i = 0; i < of.FieldSize(message, &field); ++i) {
    const Message& entry = of.GetRepeatedMessage(message, &field, i);
    const auto& type = *field.message_type();
    map[key_of(value_of(entry, *type.map_key(), -1))] = value_of(entry, *type.map_value(), -1);
  }
  return map;
}

}  // namespace

Json to_json(const Message& message) {
  Json json = Json::object();
  const Reflection& of = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (field.is_map()) {
      json[field.name()] = map_of(message, field);
    } else if (field.is_repeated()) {
      Json list = Json::array();
      for (int k = 0; k < of.FieldSize(message, &field); ++k) list.push_back(value_of(message, field, k));
      json[field.name()] = std::move(list);
    } else if (!field.has_presence() || of.HasField(message, &field)) {
      json[field.name()] = value_of(message, field, -1);
    }
  }
  return json;
}

}  // namespace tensord::server
