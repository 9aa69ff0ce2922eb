#pragma once

#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>

namespace tensord::server {

// A message as the REST protocol has it: fields by their names, those without a value with their defaults, numbers of
// 64 bits as numbers, enums by name. Messages that are not set, and fields of a oneof that is not, are left out.
nlohmann::ordered_json to_json(const google::protobuf::Message& message);

}  // namespace tensord::server
