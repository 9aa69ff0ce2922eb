"""Fourier transforms, one and several dimensions, every scale; stft and istft."""

import torch

from tests.ops.case import COMPLEX, FULL, case, t

CASES = []
NORMS = [None, "forward", "ortho"]


def rows(op, *args, dtypes, **options):
    CASES.append(case(op, *args, dtypes=dtypes, **options))


for norm in NORMS:
    for name in ["fft", "ifft"]:
        for size in [1, 7, 12, 101]:
            rows(f"aten::fft_{name}", t(3, size), None, -1, norm, dtypes=COMPLEX + FULL, rtol=1e-4, atol=1e-4)
        rows(f"aten::fft_{name}", t(8, 3), 5, 0, norm, dtypes=COMPLEX + FULL, atol=1e-4)
        rows(f"aten::fft_{name}", t(8, 3), 12, 0, norm, dtypes=COMPLEX + FULL, atol=1e-4)
    for name in ["rfft", "ihfft"]:
        for size in [1, 7, 12]:
            rows(f"aten::fft_{name}", t(3, size), None, -1, norm, dtypes=FULL, rtol=1e-4, atol=1e-4)
        rows(f"aten::fft_{name}", t(8, 3), 5, 0, norm, dtypes=FULL, atol=1e-4)
        rows(f"aten::fft_{name}", t(8, 3), 11, 0, norm, dtypes=FULL, atol=1e-4)
    for name in ["irfft", "hfft"]:
        for size in [2, 7, 12]:
            rows(f"aten::fft_{name}", t(3, size), None, -1, norm, dtypes=COMPLEX + FULL, rtol=1e-4, atol=1e-4)
        rows(f"aten::fft_{name}", t(8, 3), 9, 0, norm, dtypes=COMPLEX, atol=1e-4)
        rows(f"aten::fft_{name}", t(8, 3), 22, 0, norm, dtypes=COMPLEX, atol=1e-4)
    for name in ["fft", "ifft"]:
        rows(f"aten::fft_{name}2", t(2, 5, 6), None, [-2, -1], norm, dtypes=COMPLEX + FULL, atol=2e-4)
        rows(f"aten::fft_{name}n", t(2, 5, 6), None, None, norm, dtypes=COMPLEX + FULL, atol=2e-4)
        rows(f"aten::fft_{name}n", t(4, 5, 6), [3, 8], [0, 2], norm, dtypes=COMPLEX, atol=2e-4)
    for name in ["rfft", "ihfft"]:
        rows(f"aten::fft_{name}2", t(2, 5, 6), None, [-2, -1], norm, dtypes=FULL, atol=2e-4)
        rows(f"aten::fft_{name}n", t(2, 5, 7), None, None, norm, dtypes=FULL, atol=2e-4)
        rows(f"aten::fft_{name}n", t(4, 5, 6), [3, 9], [2, 0], norm, dtypes=FULL, atol=2e-4)
    for name in ["irfft", "hfft"]:
        rows(f"aten::fft_{name}2", t(2, 5, 6), None, [-2, -1], norm, dtypes=COMPLEX, atol=4e-4)
        rows(f"aten::fft_{name}n", t(2, 5, 6), None, None, norm, dtypes=COMPLEX, atol=4e-4)
        rows(f"aten::fft_{name}n", t(4, 5, 6), [3, 9], [2, 0], norm, dtypes=COMPLEX, atol=4e-4)
for dtype in [torch.int64, torch.uint8, torch.bool]:
    rows("aten::fft_fft", t(2, 6), dtypes=[dtype], atol=1e-4)
    rows("aten::fft_rfft", t(2, 6), dtypes=[dtype], atol=1e-4)
rows("aten::fft_fft", t(2, 6), dtypes=[torch.float16], error="Unsupported dtype")
rows("aten::fft_fft", t(2, 6), 0, dtypes=FULL, error="Invalid number of data points (0) specified")
rows("aten::fft_fft", t(2, 6), None, -1, "by half", dtypes=FULL, error="Invalid normalization mode")
rows("aten::fft_fft", t(2, 6), None, 2, dtypes=FULL, error="Dimension out of range")
rows("aten::fft_rfft", t(2, 6), dtypes=COMPLEX, error="expects a real input tensor")
rows("aten::fft_irfft", t(2, 1), dtypes=FULL, error="Invalid number of data points (0) specified")
rows("aten::fft_fftn", t(2, 6), None, [0, 0], dtypes=FULL, error="FFT dims must be unique")
rows("aten::fft_fftn", t(2, 6), [3], [0, 1], dtypes=FULL, error="must have the same length")

for normalization in [0, 1, 2]:
    rows("aten::_fft_c2c", t(4, 5, 6), [0, 2], normalization, True, dtypes=COMPLEX, atol=1e-4)
    rows("aten::_fft_c2c", t(4, 5), [1], normalization, False, dtypes=COMPLEX, atol=1e-4)
    for onesided in [True, False]:
        rows("aten::_fft_r2c", t(4, 5, 6), [0, 2], normalization, onesided, dtypes=FULL, atol=1e-4)
        rows("aten::_fft_r2c", t(4, 5, 7), [2, 1, 0], normalization, onesided, dtypes=FULL, atol=1e-4)
    rows("aten::_fft_c2r", t(4, 5, 4), [0, 2], normalization, 6, dtypes=COMPLEX, atol=2e-4, gradient="no differences")
    rows("aten::_fft_c2r", t(4, 5), [1], normalization, 9, dtypes=COMPLEX, atol=2e-4, gradient="no differences")

# Large enough for several threads, and prime lengths.
rows("aten::fft_fft", t(70, 509), dtypes=[torch.complex64], rtol=1e-3, atol=1e-3, gradient=False)
rows("aten::fft_rfft", t(300, 400), dtypes=[torch.float32], rtol=1e-3, atol=1e-3, gradient=False)
rows("aten::fft_fft2", t(4, 90, 77), dtypes=[torch.complex128], gradient=False)

for n, d in [(8, 1.0), (7, 0.5), (1, 2.0)]:
    rows("aten::fft_fftfreq", n, d, dtypes=[torch.float32])
    rows("aten::fft_rfftfreq", n, d, dtypes=[torch.float32])

WINDOW = t(6, low=0.5, high=1.5)
for normalized in [False, True]:
    rows("aten::stft", t(2, 30), 8, 3, 6, WINDOW, normalized, True, True, dtypes=FULL, atol=1e-4)
    rows("aten::stft", t(30), 8, None, None, None, normalized, False, True, dtypes=FULL, atol=1e-4)
    rows("aten::stft", t(30), 8, 2, None, None, normalized, None, False, dtypes=FULL, atol=1e-4)
    rows("aten::stft", t(2, 30), 8, 3, None, None, normalized, None, True, dtypes=COMPLEX, atol=1e-4)
    rows("aten::stft.center", t(2, 30), 8, 3, 6, WINDOW, True, "reflect", normalized, True, True, dtypes=FULL, atol=1e-4)
    for dtype, real in [(torch.complex64, torch.float32), (torch.complex128, torch.float64)]:
        window = t(6, dtype=real, low=0.5, high=1.5)
        rows("aten::istft", t(5, 9), 8, 2, 6, window, True, normalized, None, None, False, dtypes=[dtype], atol=1e-4)
    rows("aten::istft", t(2, 5, 9), 8, 2, None, None, True, normalized, True, 20, False, dtypes=COMPLEX, atol=1e-4)
    rows("aten::istft", t(8, 9), 8, 2, 6, WINDOW, True, normalized, False, None, True, dtypes=COMPLEX, atol=1e-4)
rows("aten::istft", t(2, 5, 9, 2), 8, 2, None, None, True, False, True, 20, False, dtypes=FULL, atol=1e-4)  # pairs of real numbers
rows("aten::istft", t(2, 5, 9), 8, 2, dtypes=FULL, error=("", "complex-valued"))
rows("aten::stft", t(2, 30), 8, 0, dtypes=FULL, error="hop_length")
rows("aten::stft", t(2, 30), 31, dtypes=FULL, error="n_fft")
rows("aten::istft", t(2, 5, 9), 8, 8, 8, t(8, dtype=torch.float32, low=0.0, high=0.0), False, dtypes=[torch.complex64], error="window overlap add min")
rows("aten::istft", t(4, 9), 8, dtypes=COMPLEX, error="to match")
# A 0-dimensional tensor has no dimension to transform.
for name in ["fft", "rfft", "irfft"]:
    rows(f"aten::fft_{name}", t(), None, -1, None, dtypes=COMPLEX if name == "irfft" else FULL,
         error=("Invalid number of data points", "tensor has no dimensions"))
rows("aten::_fft_c2c", t(), [0], 0, True, dtypes=COMPLEX, error=("ndim must be", "tensor has no dimensions"))
rows("aten::_fft_r2c", t(), [0], 0, True, dtypes=FULL, error=("ndim must be", "tensor has no dimensions"))


def _of_nothing(*_):
    """PyTorch 1.13 returns uninitialized memory."""
    raise RuntimeError("Invalid number of data points (0)")


rows("aten::_fft_r2c", t(4, 0), [1], 0, True, dtypes=FULL, reference=_of_nothing, error="Invalid number of data points (0)")
