#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/jit/ir/graph.h"

namespace tensord::jit {

// One script file: its name, its text, and where its lines begin. Immutable.
class SourceText {
 public:
  SourceText(std::string name, std::string text);

  const std::string& name() const { return *name_; }
  std::string_view text() const { return *text_; }
  SourceLocation location(size_t offset) const;
  // Throws Error "FILE:LINE:COLUMN: message", then the line and a caret below the place.
  [[noreturn]] void fail(ErrorCode code, size_t offset, const std::string& message) const;
  [[noreturn]] void fail(size_t offset, const std::string& message) const {
    fail(ErrorCode::kInvalidArgument, offset, message);
  }

 private:
  std::shared_ptr<const std::string> name_, text_;
  std::vector<uint32_t> line_begins_;
};

}  // namespace tensord::jit
