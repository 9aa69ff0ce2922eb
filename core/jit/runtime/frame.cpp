#include "core/jit/runtime/frame.h"

#include "core/jit/runtime/specializations.h"

namespace tensord::jit {

Frame::Frame() : recent_(std::make_unique<std::vector<RecentProgram>>()) {}
Frame::~Frame() = default;

std::vector<RecentProgram>& Frame::recent_programs() { return *recent_; }

}  // namespace tensord::jit
