#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace tensord::jit::pt2 {

using Json = nlohmann::json;

// Parses JSON. Of a node's metadata only the stack trace is kept, because metadata is three quarters of a program's
// text. Nesting, size and number of values are limited. Throws Error that starts with `source`: kDataLoss for invalid
// JSON, kResourceExhausted beyond a limit.
Json parse_json(std::string_view text, const std::string& source);

// Checked access to members of objects; every error names the member. `where` is the prefix of messages.
const Json& member(const Json& object, const char* name, const std::string& where);
const Json* find_member(const Json& object, const char* name);  // null if absent or null
std::string string_member(const Json& object, const char* name, const std::string& where);
int64_t int_member(const Json& object, const char* name, const std::string& where);
bool bool_member(const Json& object, const char* name, const std::string& where);
const Json& array_member(const Json& object, const char* name, const std::string& where);
const Json& object_member(const Json& object, const char* name, const std::string& where);

const std::string& to_text(const Json& value, const std::string& where);
int64_t to_int(const Json& value, const std::string& where);
bool to_bool(const Json& value, const std::string& where);
// A number, or one of the strings "Infinity", "-Infinity" and "NaN".
double to_float(const Json& value, const std::string& where);

// A union is an object with one member, whose name is the case.
struct Case {
  const std::string& name;
  const Json& value;
};
Case union_case(const Json& value, const std::string& where);

}  // namespace tensord::jit::pt2
