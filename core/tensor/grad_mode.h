#pragma once

#include "core/base/execution_context.h"

namespace tensord {

inline bool is_grad_enabled() { return execution_context().grad_mode.is_enabled; }
inline bool is_inference_mode() { return execution_context().grad_mode.is_inference; }

// Sets the mode of the calling thread until the end of its scope.
using GradModeGuard = ContextPart<&ExecutionContext::grad_mode>;

struct NoGradGuard : GradModeGuard {
  NoGradGuard() : GradModeGuard({false, is_inference_mode()}) {}
};
struct EnableGradGuard : GradModeGuard {
  EnableGradGuard() : GradModeGuard({true, is_inference_mode()}) {}
};
// As torch.inference_mode(is_inference): with false, it leaves an enclosing inference mode.
struct InferenceModeGuard : GradModeGuard {
  explicit InferenceModeGuard(bool is_inference = true)
      : GradModeGuard({is_inference ? false : is_grad_enabled() || is_inference_mode(), is_inference}) {}
};

}  // namespace tensord
