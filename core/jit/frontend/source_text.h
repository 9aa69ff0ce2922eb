#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/jit/ir/graph.h"

namespace tensord::jit {

// The place in the author's code that a part of a script was compiled from.
struct SourceOrigin {
  uint32_t offset = 0;  // the part of the script from here to the next origin
  int line = 0;         // 0: unknown
  std::shared_ptr<const std::string> file;
};
// Origins by the name of a script file, sorted by offset.
using SourceOrigins = std::map<std::string, std::vector<SourceOrigin>>;

// The name and text of one script file, and the starts of its lines. Immutable.
class SourceText {
 public:
  SourceText(std::string name, std::string text);

  const std::string& name() const { return *name_; }
  std::string_view text() const { return *text_; }
  // The author's line if it is known.
  SourceLocation location(size_t offset) const;
  void set_origins(std::vector<SourceOrigin> origins);
  // Throws Error "FILE:LINE:COLUMN: message" with the line and a caret.
  [[noreturn]] void fail(ErrorCode code, size_t offset, const std::string& message) const;
  [[noreturn]] void fail(size_t offset, const std::string& message) const {
    fail(ErrorCode::kInvalidArgument, offset, message);
  }

 private:
  SourceLocation own_location(size_t offset) const;
  const SourceOrigin* origin(size_t offset) const;

  std::shared_ptr<const std::string> name_, text_;
  std::shared_ptr<const std::vector<SourceOrigin>> origins_;
  std::vector<uint32_t> line_begins_;
};

}  // namespace tensord::jit
