#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace tensord::jit::pt2 {

using Json = nlohmann::json;

// Reads JSON. Of the notes that a graph's nodes carry only the trace of the stack is kept: they are three quarters of a
// program's text. Nesting, size and count of values are bounded. Throws Error, which starts with `source`:
// kDataLoss (no JSON), kResourceExhausted (a bound).
Json parse_json(std::string_view text, const std::string& source);

// Members of objects, checked; every error names the member. `where` is what messages start with.
const Json& member(const Json& object, const char* name, const std::string& where);
const Json* find_member(const Json& object, const char* name);  // null when absent or null
std::string string_member(const Json& object, const char* name, const std::string& where);
int64_t int_member(const Json& object, const char* name, const std::string& where);
bool bool_member(const Json& object, const char* name, const std::string& where);
const Json& array_member(const Json& object, const char* name, const std::string& where);
const Json& object_member(const Json& object, const char* name, const std::string& where);

const std::string& to_text(const Json& value, const std::string& where);
int64_t to_int(const Json& value, const std::string& where);
bool to_bool(const Json& value, const std::string& where);
// A number, or the texts "Infinity", "-Infinity" and "NaN".
double to_float(const Json& value, const std::string& where);

// A union is an object with one member, whose name is the case.
struct Case {
  const std::string& name;
  const Json& value;
};
Case union_case(const Json& value, const std::string& where);

}  // namespace tensord::jit::pt2
