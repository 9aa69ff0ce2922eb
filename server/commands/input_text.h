#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tensord::server {

// A parsed value of --input or --example, for all commands. One value gives one input, or all of them (.npz).
struct InputText {
  enum class Kind : uint8_t {
    kJson,      // `value` is JSON
    kJsonFile,  // JSON in the file `value`
    kNpy,       // the file `value`
    kNpz,       // the file `value`, which names its inputs
    kBytes,     // the bytes of the file `value`, as one string
    kText,      // `value` itself, as one string
    kRandom,    // generated, from `shape` and `type`
  };
  std::string name;  // empty: by position
  Kind kind = Kind::kJson;
  std::string value;
  std::optional<std::vector<int64_t>> shape;  // unset: the model's shape
  std::string type;                           // as NumPy has it, "float32"; empty: what the model says
};

// What a bare integer means: a size in commands that generate inputs (bench, convert, inspect), otherwise a value.
enum class WholeNumber : uint8_t { kIsSize, kIsValue };

// `flag` is the prefix of errors: "--input". Throws Error{kInvalidArgument}.
InputText parse_input(const std::string& flag, const std::string& text, WholeNumber number);
// Prefix of errors: "--input a='[1, 2]': ".
std::string input_place(const std::string& flag, const std::string& name, const std::string& value);

// "f32", "float32" or "FP32" → "float32". Throws Error{kInvalidArgument}.
std::string parse_type_name(const std::string& name);

// The grammar, for --help; docs/commands.md has it in full.
inline constexpr const char* kInputHelp =
    "[NAME=]VALUE: JSON, a file (.npy, .json; .npz for all inputs; @FILE for its bytes), random[:SHAPE[:TYPE]] or "
    "SHAPE[:TYPE], such as 1,3,224,224:f32, or text:TEXT; without names they go by position; may be repeated";

}  // namespace tensord::server
