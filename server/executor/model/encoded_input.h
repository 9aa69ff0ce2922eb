#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tensord::server {

// An input of encoded files, such as images, that the model decodes when it runs. Thread-safe.
class EncodedInput {
 public:
  virtual ~EncodedInput() = default;
  // The bytes that the file takes when it is decoded, from its header. Throws Error that starts with `source`:
  // kInvalidArgument if it is none of the supported files, TooLargeError if it is larger than the model takes.
  virtual uint64_t decoded_bytes(std::string_view file, const std::string& source) const = 0;
  // A small file for warm-up; empty if the model does not fix the decoded sizes.
  virtual std::string_view example() const = 0;
};

}  // namespace tensord::server
