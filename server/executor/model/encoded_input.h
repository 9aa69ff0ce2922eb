#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tensord::server {

// An input of encoded files, such as images, that the model decodes when it runs. Thread-safe.
class EncodedInput {
 public:
  virtual ~EncodedInput() = default;
  struct Needs {
    uint64_t decoded_bytes;  // of the decoded file
    uint64_t decoder_bytes;  // besides, while it is decoded
  };
  // What the file takes, from its header, in a time that does not grow with the file. Throws Error that starts with
  // `source`: kInvalidArgument if it is none of the supported files, TooLargeError if it is larger than the model
  // takes.
  virtual Needs needs_of(std::string_view file, const std::string& source) const = 0;
  // A small file for warm-up; empty if the model does not fix the decoded sizes.
  virtual std::string_view example() const = 0;
};

}  // namespace tensord::server
