#pragma once

#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>

namespace tensord::server {

// Converts a protobuf message to JSON as the REST protocol defines it: original field names, default values included,
// 64-bit integers as numbers, enums by name. Unset messages and unset oneof fields are left out.
nlohmann::ordered_json to_json(const google::protobuf::Message& message);

}  // namespace tensord::server
