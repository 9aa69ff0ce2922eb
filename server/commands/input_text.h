#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tensord::server {

// What --input and --example of all commands take. One text says what one input is, or all of them (.npz).
struct InputText {
  enum class Kind : uint8_t {
    kJson,      // `value` is JSON
    kJsonFile,  // … in the file `value`
    kNpy,       // the file `value`
    kNpz,       // the file `value`: inputs by its names
    kBytes,     // the bytes of the file `value`, as one text
    kText,      // `value` is one text
    kRandom,    // made up, of `shape` and `type`
  };
  std::string name;  // empty: by position
  Kind kind = Kind::kJson;
  std::string value;
  std::optional<std::vector<int64_t>> shape;  // none: what the model says
  std::string type;                           // as NumPy has it, "float32"; empty: what the model says
};

// What a whole number alone is: a size where inputs are made up (bench, convert, inspect), else a value.
enum class WholeNumber : uint8_t { kIsSize, kIsValue };

// `flag` is what errors begin with: "--input". Throws Error{kInvalidArgument}.
InputText parse_input(const std::string& flag, const std::string& text, WholeNumber number);
// "--input a='[1, 2]': ", with which errors begin.
std::string input_place(const std::string& flag, const std::string& name, const std::string& value);

// "f32", "float32" or "FP32" → "float32". Throws Error{kInvalidArgument}.
std::string parse_type_name(const std::string& name);

// The grammar, for the help of the commands; docs/commands.md has it in full.
inline constexpr const char* kInputHelp =
    "[NAME=]VALUE: JSON, a file (.npy, .json; .npz for all inputs; @FILE for its bytes), random[:SHAPE[:TYPE]] or "
    "SHAPE[:TYPE], such as 1,3,224,224:f32, or text:TEXT; without names they go by position; may be repeated";

}  // namespace tensord::server
