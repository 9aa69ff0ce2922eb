// stft and istft: transforms of overlapping pieces of a signal, and the signal of such transforms.
#include <string>

#include "core/ops/complex.h"
#include "core/tensor/complex.h"
#include "kernels/expr/compose.h"
#include "ops/complex.h"
#include "ops/factory.h"
#include "ops/fft.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using MaybeBool = std::optional<bool>;
using MaybeInt = std::optional<int64_t>;
using MaybeTensor = std::optional<Tensor>;

void check_window(const char* op, const MaybeTensor& window, int64_t length) {
  if (!window) return;
  check(window->ndim() == 1 && window->size(0) == length, op,
        ": expected a 1D window tensor of size equal to win_length=", length, ", but got window with size ",
        window->sizes());
}
// Centers the window in n_fft numbers.
Tensor centered(const Tensor& window, int64_t n_fft) {
  const int64_t length = window.size(0), left = (n_fft - length) / 2;
  if (length == n_fft) return window;
  return ops::constant_pad_nd(window, Dims{left, n_fft - length - left}, ops::Scalar(0));
}

Tensor stft(const Tensor& self, int64_t n_fft, MaybeInt hop_length, MaybeInt win_length, const MaybeTensor& window,
            MaybeBool is_centered, const std::string& pad_mode, bool normalized, MaybeBool onesided,
            MaybeBool return_complex, MaybeBool aligns) {
  const int64_t hop = hop_length.value_or(n_fft / 4), length = win_length.value_or(n_fft);
  const bool has_complex = is_complex(self.dtype()) || (window && is_complex(window->dtype()));
  check(is_floating(self.dtype()) || is_complex(self.dtype()),
        "stft: expected a tensor of floating point or complex values");
  check(self.ndim() == 1 || self.ndim() == 2, "stft: expected a 1D or 2D tensor, but got ", self.ndim(), "-D");
  check(!is_centered.value_or(false) || !aligns, "stft: align_to_window should only be set when center = false.");
  Tensor x = self.ndim() == 1 ? ops::unsqueeze(self, 0) : self;
  if (is_centered.value_or(false)) {
    const int64_t pad = n_fft / 2;
    x = ops::squeeze(ops::pad(ops::unsqueeze(x, 0), Dims{pad, pad}, pad_mode), 0);
  }
  const int64_t samples = x.size(1);
  check(n_fft > 0 && n_fft <= samples, "stft: expected 0 < n_fft < ", samples, ", but got n_fft=", n_fft);
  check(hop > 0, "stft: expected hop_length > 0, but got hop_length=", hop);
  check(length > 0 && length <= n_fft, "stft: expected 0 < win_length <= n_fft, but got win_length=", length);
  check_window("stft", window, length);
  if (aligns.value_or(false)) {
    // A frame begins with the window, not with the transform around it; there are as many frames as windows fit.
    const int64_t count = (samples - length) / hop + 1, left = (n_fft - length) / 2;
    const int64_t right = (count - 1) * hop + n_fft - samples - left;
    x = ops::constant_pad_nd(x, Dims{left, right}, ops::Scalar(0));
  }
  Tensor frames = ops::unfold(x, 1, n_fft, hop);
  if (window || length < n_fft) {
    const DType real = real_dtype(x.dtype());
    frames = ops::mul(
        frames, centered(window ? *window : ops::ones(Dims{length}, {.dtype = real, .device = x.device()}), n_fft));
  }
  const int64_t norm = normalized ? 1 : 0;
  Tensor out;
  if (has_complex) {
    check(!onesided.value_or(false), "stft: Cannot have onesided output if window or input is complex");
    out = ops::_fft_c2c(frames, Dims{2}, norm, true);
  } else {
    out = ops::_fft_r2c(frames, Dims{2}, norm, onesided.value_or(true));
  }
  out = ops::transpose(out, 1, 2);
  if (self.ndim() == 1) out = ops::squeeze(out, 0);
  return return_complex.value_or(has_complex) ? out : ops::view_as_real(out);
}
// The last argument is new in PyTorch 2.7.
OP("aten::stft")
    .impl([](const Tensor& x, int64_t n_fft, MaybeInt hop, MaybeInt length, const MaybeTensor& window, bool normalized,
             MaybeBool onesided, MaybeBool return_complex, MaybeBool aligns) {
      return stft(x, n_fft, hop, length, window, false, "", normalized, onesided, return_complex, aligns);
    })
    .composite();
OP("aten::stft.center")
    .impl([](const Tensor& x, int64_t n_fft, MaybeInt hop, MaybeInt length, const MaybeTensor& window, bool center,
             const std::string& pad_mode, bool normalized, MaybeBool onesided, MaybeBool return_complex,
             MaybeBool aligns) {
      return stft(x, n_fft, hop, length, window, center, pad_mode, normalized, onesided, return_complex, aligns);
    })
    .composite();
IMPL("aten::stft aten::stft.center", ops::kComplexCPU, ops::kSameAsDense);

// Adds every row of frames at the place in the signal that it came from.
Tensor overlapped(const Tensor& frames, int64_t samples, int64_t hop) {
  return ops::unfold_backward(frames, Dims{frames.size(0), samples}, 1, frames.size(2), hop);
}

// stft returned real and imaginary parts side by side before PyTorch had complex numbers.
Tensor complex_spectrum(const Tensor& given) {
  if (is_complex(given.dtype())) return given;
  check(is_floating(given.dtype()) && given.ndim() >= 3 && given.size(-1) == 2,
        "istft requires a complex-valued input tensor matching the output from stft with return_complex=True.");
  return ops::complex(ops::select(given, -1, 0), ops::select(given, -1, 1));
}

Tensor istft(const Tensor& spectrum, int64_t n_fft, MaybeInt hop_length, MaybeInt win_length, const MaybeTensor& given,
             bool center, bool normalized, MaybeBool is_onesided, MaybeInt wanted, bool return_complex) {
  const Tensor self = complex_spectrum(spectrum);
  check(self.numel() != 0, "istft: input tensor cannot be empty.");
  check(self.ndim() == 2 || self.ndim() == 3, "istft: expected a tensor with 2 or 3 dimensions, but got ", self.ndim());
  check(n_fft > 0, "istft: expected n_fft > 0, but got ", n_fft);
  const int64_t hop = hop_length.value_or(n_fft / 4), length = win_length.value_or(n_fft);
  const int64_t frames = self.size(-1), points = self.size(-2);
  const bool onesided = is_onesided.value_or(points != n_fft);
  check(points == (onesided ? n_fft / 2 + 1 : n_fft),
        "istft: expected the frequency dimension (3rd to the last) of the input "
        "tensor to match ",
        onesided ? "n_fft / 2 + 1 when onesided=True" : "n_fft when onesided=False", ", but got ", points);
  check(hop > 0 && hop <= length, "istft: expected 0 < hop_length <= win_length, but got hop_length=", hop);
  check(length <= n_fft, "istft: expected 0 < win_length <= n_fft, but got win_length=", length);
  check_window("istft", given, length);
  check(!return_complex || !onesided, "istft: Cannot have onesided output if window or input is complex");
  check(return_complex || !given || !is_complex(given->dtype()),
        "Complex windows are incompatible with return_complex=False");
  const Tensor window = centered(
      given ? *given : ops::ones(Dims{length}, {.dtype = real_dtype(self.dtype()), .device = self.device()}), n_fft);
  Tensor x = ops::transpose(self.ndim() == 2 ? ops::unsqueeze(self, 0) : self, 1, 2);
  const int64_t norm = normalized ? 1 : 2;
  if (return_complex) {
    x = ops::_fft_c2c(x, Dims{2}, norm, false);
  } else {
    if (!onesided) x = ops::narrow(x, 2, 0, n_fft / 2 + 1);
    x = ops::_fft_c2r(x, Dims{2}, norm, n_fft);
  }
  const int64_t samples = hop * (frames - 1) + n_fft;  // at most the elements of x, as hop is at most n_fft
  const Tensor weights = ops::expand(ops::mul(window, window), Dims{1, frames, n_fft});
  Tensor y = overlapped(ops::mul(x, window), samples, hop), envelope = overlapped(weights, samples, hop);
  const int64_t start = center ? n_fft / 2 : 0;
  const int64_t end = wanted ? start + *wanted : center ? samples - n_fft / 2 : samples, stop = std::min(end, samples);
  check(stop >= start, "istft: nothing is left of a signal of ", samples, " samples");
  y = ops::narrow(y, 1, start, stop - start);
  envelope = ops::narrow(envelope, 1, start, stop - start);
  if (envelope.numel() != 0 && !envelope.is_meta()) {
    const double lowest = ops::min(ops::abs(envelope)).item_double();
    check(lowest > 1e-11, "istft(): window overlap add min: ", lowest);
  }
  y = ops::div(y, envelope);
  if (end > samples) y = ops::constant_pad_nd(y, Dims{0, end - samples}, ops::Scalar(0));
  return self.ndim() == 2 ? ops::squeeze(y, 0) : y;
}
OP("aten::istft").impl(istft).composite();
IMPL("aten::istft", ops::kComplexCPU, ops::kSameAsDense);

}  // namespace
}  // namespace tensord::kernels
