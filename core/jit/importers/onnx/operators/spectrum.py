# Fourier transforms (by the matrix of the transform: no complex numbers are needed) and windows.


# cos and sin of 2π·k·n / size for `outputs` values of k and `inputs` of n.
def _angles(outputs: int, inputs: int, size: int) -> Tensor:
    k = torch.arange(outputs, dtype=torch.int64).unsqueeze(1)
    n = torch.arange(inputs, dtype=torch.int64)
    return torch.remainder(k * n, size).to(torch.float64) * (2.0 * 3.141592653589793 / size)


# `x` is [..., n, 1 or 2]; the transform is of dimension -2. `outputs` are the first of `size` numbers.
def _dft(x: Tensor, size: int, outputs: int, inverse: bool) -> Tensor:
    real = torch.select(x, -1, 0)
    inputs = min(size, real.size(-1))
    real = torch.narrow(real, -1, 0, inputs)
    angle = _angles(outputs, inputs, size)
    cos = torch.t(torch.cos(angle)).to(x.dtype)
    sin = torch.t(torch.sin(angle)).to(x.dtype)
    if not inverse:
        sin = -sin
    a = torch.matmul(real, cos)
    b = torch.matmul(real, sin)
    if x.size(-1) == 2:
        imaginary = torch.narrow(torch.select(x, -1, 1), -1, 0, inputs)
        a = a - torch.matmul(imaginary, sin)
        b = b + torch.matmul(imaginary, cos)
    result = torch.stack([a, b], -1)
    return result / size if inverse else result


# The inverse of a real transform: the other half of the spectrum is the conjugate of this one; the result is real.
def _from_one_side(x: Tensor, size: int) -> Tensor:
    half = size // 2 + 1
    if x.size(-2) < half:
        x = torch.constant_pad_nd(x, [0, 0, 0, half - x.size(-2)])
    x = torch.narrow(x, -2, 0, half)
    rest = torch.flip(torch.narrow(x, -2, 1, size - half), [-2])
    if x.size(-1) == 2:
        rest = rest * torch.tensor([1.0, -1.0], dtype=x.dtype)
    return torch.narrow(_dft(torch.cat([x, rest], -2), size, size, True), -1, 0, 1)


def DFT_17(
    input: Tensor, dft_length: Optional[int] = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0
) -> Tensor:
    return DFT_20(input, dft_length, axis, inverse=inverse, onesided=onesided)


def DFT_20(
    input: Tensor, dft_length: Optional[int] = None, axis: int = -2, *, inverse: int = 0, onesided: int = 0
) -> Tensor:
    if input.size(-1) != 1 and input.size(-1) != 2:
        raise RuntimeError("DFT: the last dimension has size {}, not 1 or 2".format(input.size(-1)))
    if __torch__.onnx.shapes._axis(axis, input.dim()) == input.dim() - 1:
        raise RuntimeError("DFT: axis {} is the one of the parts".format(axis))
    if onesided != 0 and inverse == 0 and input.size(-1) == 2:
        raise RuntimeError("DFT: onesided is for real numbers")
    size = input.size(axis)
    if dft_length is not None:
        size = dft_length
    elif inverse != 0 and onesided != 0:
        size = 2 * (input.size(axis) - 1)
    # The sums of the matrix are longer than a fast transform's.
    moved = torch.transpose(input.to(torch.float64), axis, -2)
    if onesided != 0 and inverse != 0:
        result = _from_one_side(moved, size)
    else:
        result = _dft(moved, size, size // 2 + 1 if onesided != 0 else size, inverse != 0)
    return torch.transpose(result, axis, -2).to(input.dtype)


def STFT_17(
    signal: Tensor,
    frame_step: int,
    window: Optional[Tensor] = None,
    frame_length: Optional[int] = None,
    *,
    onesided: int = 1,
) -> Tensor:
    if frame_step <= 0:
        raise RuntimeError("STFT: frame_step is {}".format(frame_step))
    if frame_length is None and window is None:
        raise RuntimeError("STFT: neither window nor frame_length are given")
    if frame_length is not None and (frame_length <= 0 or frame_length > signal.size(1)):
        raise RuntimeError("STFT: frame_length is {} for {} numbers".format(frame_length, signal.size(1)))
    size = signal.size(1)
    if frame_length is not None:
        size = frame_length
    elif window is not None:
        size = window.size(0)
    x = signal if signal.dim() == 3 else signal.unsqueeze(-1)
    frames = torch.transpose(x.unfold(1, size, frame_step), 2, 3)
    if window is not None:
        frames = frames * window.unsqueeze(-1)
    return _dft(frames, size, size // 2 + 1 if onesided != 0 else size, False)


# a0 - a1 · cos(2πn/N) + a2 · cos(4πn/N)
def _window(size: int, periodic: int, dtype: int, a0: float, a1: float, a2: float) -> Tensor:
    if size <= 0:
        raise RuntimeError("a window of size {}".format(size))
    length = size if periodic != 0 else size - 1
    angle = torch.arange(size, dtype=torch.float64) * (2.0 * 3.141592653589793 / max(length, 1))
    if size == 1 and periodic == 0:  # the formula divides by 0
        return torch.ones([1], dtype=dtype)
    return (a0 - a1 * torch.cos(angle) + a2 * torch.cos(angle * 2)).to(dtype)


def HannWindow_17(size: int, *, output_datatype: int = 6, periodic: int = 1) -> Tensor:
    return _window(size, periodic, output_datatype, 0.5, 0.5, 0.0)


def HammingWindow_17(size: int, *, output_datatype: int = 6, periodic: int = 1) -> Tensor:
    return _window(size, periodic, output_datatype, 25.0 / 46.0, 21.0 / 46.0, 0.0)


def BlackmanWindow_17(size: int, *, output_datatype: int = 6, periodic: int = 1) -> Tensor:
    return _window(size, periodic, output_datatype, 0.42, 0.5, 0.08)


def MelWeightMatrix_17(
    num_mel_bins: int,
    dft_length: int,
    sample_rate: int,
    lower_edge_hertz: float,
    upper_edge_hertz: float,
    *,
    output_datatype: int = 6,
) -> Tensor:
    spectrogram = dft_length // 2 + 1
    low = 2595.0 * torch.log10(1.0 + lower_edge_hertz / 700.0)
    high = 2595.0 * torch.log10(1.0 + upper_edge_hertz / 700.0)
    step = (high - low) / (num_mel_bins + 2)
    mel = torch.arange(num_mel_bins + 2, dtype=torch.float64) * step + low
    hertz = (torch.pow(torch.full([], 10.0, dtype=torch.float64), mel / 2595.0) - 1.0) * 700.0
    places = torch.floor(hertz * (dft_length + 1) / sample_rate)
    first = places[:-2]
    center = places[1:-1]
    last = places[2:]
    bin = torch.arange(spectrogram, dtype=torch.float64).unsqueeze(1)
    one = torch.ones_like(first)
    rising = (bin - first) / torch.maximum(center - first, one)
    falling = (last - bin) / torch.maximum(last - center, one)
    zero = torch.zeros([], dtype=torch.float64)
    up = torch.where(torch.logical_and(bin >= first, bin <= center), rising, zero)
    both = torch.where(torch.logical_and(bin >= center, bin < last), falling, up)
    # With no bin between, the center alone counts.
    flat = torch.logical_and(center == first, bin == center)
    return torch.where(flat, torch.ones([], dtype=torch.float64), both).to(output_datatype)
