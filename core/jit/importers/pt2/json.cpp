#include "core/jit/importers/pt2/json.h"

#include <cmath>
#include <limits>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/error.h"

namespace tensord::jit::pt2 {
namespace {

// A higher-order operator's body is eight levels deeper than its graph. Bounded, because the values are traversed
// recursively.
constexpr size_t kMaxJsonDepth = 200;
// A node has about 2 KB of text, of which 60 values are kept.
constexpr size_t kMaxBytes = size_t{256} << 20;
constexpr size_t kMaxValues = 16'000'000;

// Builds values from parser events. Of a node's member `metadata`, only `stack_trace` is kept.
class Builder {
 public:
  explicit Builder(const std::string& source) : source_(source) {}

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(int64_t value) { return add(value); }
  bool number_unsigned(uint64_t value) { return add(value); }
  bool number_float(double value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(size_t) { return open(Json::object()); }
  bool start_array(size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    if (skipped_ == 0) key_ = std::move(name);
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) {
    fail(ErrorCode::kDataLoss, source_, ": no JSON at byte ", position);
  }
  Json take() { return std::move(root_); }

 private:
  struct Level {
    Json* value;
    bool is_metadata;
  };

  // Whether the next value is dropped.
  bool is_unwanted() const { return !levels_.empty() && levels_.back().is_metadata && key_ != "stack_trace"; }

  void count() {
    check_work_cancelled();
    if (++count_ > kMaxValues) fail(ErrorCode::kResourceExhausted, source_, ": more than ", kMaxValues, " values");
  }

  Json& place(Json value) {
    count();
    if (levels_.empty()) return root_ = std::move(value);
    Json& parent = *levels_.back().value;
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return parent.back();
    }
    return parent[key_] = std::move(value);
  }

  bool add(Json value) {
    if (skipped_ == 0 && !is_unwanted()) place(std::move(value));
    return true;
  }

  bool open(Json value) {
    if (skipped_ > 0 || is_unwanted()) {
      if (++skipped_ > kMaxJsonDepth) fail_depth();
      return true;
    }
    if (levels_.size() >= kMaxJsonDepth) fail_depth();
    // Only the metadata of a node, not a tensor or key of that name.
    const bool is_metadata = !levels_.empty() && key_ == "metadata" && levels_.back().value->is_object() &&
                             levels_.back().value->contains("target");
    Json& placed = place(std::move(value));
    levels_.push_back({&placed, is_metadata});
    return true;
  }

  bool close() {
    if (skipped_ > 0) {
      --skipped_;
    } else {
      levels_.pop_back();
    }
    return true;
  }

  [[noreturn]] void fail_depth() const {
    fail(ErrorCode::kResourceExhausted, source_, ": nested more than ", kMaxJsonDepth, " deep");
  }

  const std::string& source_;
  Json root_;
  std::vector<Level> levels_;
  std::string key_;
  size_t skipped_ = 0;  // levels open inside a dropped value
  size_t count_ = 0;
};

[[noreturn]] void fail_type(const std::string& where, const char* expected, const Json& value) {
  fail(ErrorCode::kDataLoss, where, ": expected ", expected, " but got ", value.type_name());
}

// PyTorch 2.5 wrote infinities and NaN as Python does, which is not JSON; later versions write strings. Converts them
// to strings.
std::string quote_numbers(std::string_view text) {
  constexpr std::string_view kNames[] = {"-Infinity", "Infinity", "NaN"};
  std::string out;
  bool is_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view* found = nullptr;
    for (const std::string_view& name : kNames) {
      if (!is_text && !found && text[i] == name[0] && text.substr(i).starts_with(name)) found = &name;
    }
    if (found) {
      out += concat("\"", *found, "\"");
      i += found->size() - 1;
      continue;
    }
    if (text[i] == '"') is_text = !is_text;
    out += text[i];
    if (is_text && text[i] == '\\' && i + 1 < text.size()) out += text[++i];
  }
  return out;
}

}  // namespace

Json parse_json(std::string_view text, const std::string& source) {
  if (text.size() > kMaxBytes) {
    fail(ErrorCode::kResourceExhausted, source, ": ", text.size(), " bytes of JSON, more than ", kMaxBytes);
  }
  std::string quoted;
  if (text.find("Infinity") != text.npos || text.find("NaN") != text.npos) text = quoted = quote_numbers(text);
  Builder builder(source);
  if (!Json::sax_parse(text, &builder)) fail(ErrorCode::kDataLoss, source, ": no JSON");
  return builder.take();
}

const Json* find_member(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const Json& member(const Json& object, const char* name, const std::string& where) {
  if (!object.is_object()) fail_type(where, "an object", object);
  const auto found = object.find(name);
  if (found == object.end()) fail(ErrorCode::kDataLoss, where, ": '", name, "' is missing");
  return *found;
}

std::string string_member(const Json& object, const char* name, const std::string& where) {
  return to_text(member(object, name, where), concat(where, ": ", name));
}

int64_t int_member(const Json& object, const char* name, const std::string& where) {
  return to_int(member(object, name, where), concat(where, ": ", name));
}

bool bool_member(const Json& object, const char* name, const std::string& where) {
  return to_bool(member(object, name, where), concat(where, ": ", name));
}

const Json& array_member(const Json& object, const char* name, const std::string& where) {
  const Json& value = member(object, name, where);
  if (!value.is_array()) fail_type(concat(where, ": ", name), "a list", value);
  return value;
}

const Json& object_member(const Json& object, const char* name, const std::string& where) {
  const Json& value = member(object, name, where);
  if (!value.is_object()) fail_type(concat(where, ": ", name), "an object", value);
  return value;
}

const std::string& to_text(const Json& value, const std::string& where) {
  if (!value.is_string()) fail_type(where, "a text", value);
  return value.get_ref<const std::string&>();
}

int64_t to_int(const Json& value, const std::string& where) {
  if (!value.is_number_integer()) fail_type(where, "an integer", value);
  if (value.is_number_unsigned() && value.get<uint64_t>() > std::numeric_limits<int64_t>::max()) {
    fail(ErrorCode::kDataLoss, where, ": ", value.get<uint64_t>(), " is too large");
  }
  return value.get<int64_t>();
}

bool to_bool(const Json& value, const std::string& where) {
  if (!value.is_boolean()) fail_type(where, "true or false", value);
  return value.get<bool>();
}

double to_float(const Json& value, const std::string& where) {
  if (value.is_number()) return value.get<double>();
  if (value == "Infinity") return std::numeric_limits<double>::infinity();
  if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  fail_type(where, "a number", value);
}

Case union_case(const Json& value, const std::string& where) {
  if (!value.is_object()) fail_type(where, "an object", value);
  // Fields of other cases may be present as null.
  const Json* found = nullptr;
  const std::string* name = nullptr;
  for (auto it = value.begin(); it != value.end(); ++it) {
    if (it.value().is_null()) continue;
    if (found) fail(ErrorCode::kDataLoss, where, ": two cases of a union, '", *name, "' and '", it.key(), "'");
    found = &it.value();
    name = &it.key();
  }
  if (!found) fail(ErrorCode::kDataLoss, where, ": a union without a case");
  return {*name, *found};
}

}  // namespace tensord::jit::pt2
