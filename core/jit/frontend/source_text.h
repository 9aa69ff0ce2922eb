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

// Where the author's code is that a place of a script was made from.
struct SourceOrigin {
  uint32_t offset = 0;  // the place: from there to the next one
  int line = 0;         // 0: nobody knows
  std::shared_ptr<const std::string> file;
};
// By the name of a script file; ascending by offset.
using SourceOrigins = std::map<std::string, std::vector<SourceOrigin>>;

// One script file: its name, its text, and where its lines begin. Immutable.
class SourceText {
 public:
  SourceText(std::string name, std::string text);

  const std::string& name() const { return *name_; }
  std::string_view text() const { return *text_; }
  // The author's line, where that is known.
  SourceLocation location(size_t offset) const;
  void set_origins(std::vector<SourceOrigin> origins);
  // Throws Error "FILE:LINE:COLUMN: message", then the line and a caret below the place.
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
