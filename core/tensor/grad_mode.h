#pragma once

namespace tensord {

// Whether the calling thread records what it computes for autograd, as PyTorch's grad mode and
// inference mode. In inference mode nothing is recorded, not even what a view is a view of, and
// tensors made in it never take part in autograd: it costs nothing. Serving runs in it.
struct GradMode {
  bool is_enabled = true;
  bool is_inference = false;
};

inline thread_local GradMode current_grad_mode;

inline bool is_grad_enabled() { return current_grad_mode.is_enabled; }
inline bool is_inference_mode() { return current_grad_mode.is_inference; }

// Sets the mode of the calling thread until the end of its scope.
class GradModeGuard {
 public:
  explicit GradModeGuard(GradMode mode) : before_(current_grad_mode) { current_grad_mode = mode; }
  ~GradModeGuard() { current_grad_mode = before_; }
  GradModeGuard(const GradModeGuard&) = delete;
  GradModeGuard& operator=(const GradModeGuard&) = delete;

 private:
  GradMode before_;
};

struct NoGradGuard : GradModeGuard {
  NoGradGuard() : GradModeGuard({false, current_grad_mode.is_inference}) {}
};
struct EnableGradGuard : GradModeGuard {
  EnableGradGuard() : GradModeGuard({true, current_grad_mode.is_inference}) {}
};
// As torch.inference_mode(is_inference): false inside of an inference mode leaves it.
struct InferenceModeGuard : GradModeGuard {
  explicit InferenceModeGuard(bool is_inference = true)
      : GradModeGuard(
            {is_inference ? false : current_grad_mode.is_enabled || current_grad_mode.is_inference, is_inference}) {}
};

}  // namespace tensord
