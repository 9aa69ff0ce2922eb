"""Functions of torch.nn.functional: LP and fractional pooling, unpooling, local response norm."""

from __future__ import annotations

from tensord.engine._operators import aten


def _each(value, dims: int) -> list:
    return [value] * dims if isinstance(value, int) else list(value)


def _lp_pool(dims: int):
    def call(input, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False):
        sizes = _each(kernel_size, dims)
        count = 1
        for size in sizes:
            count *= size
        options = (sizes, [] if stride is None else _each(stride, dims), [0] * dims, ceil_mode)
        mean = aten(f"avg_pool{dims}d")(input.pow(norm_type), *options)
        return (mean.sign() * mean.abs().relu()).mul(count).pow(1.0 / norm_type)

    call.__name__ = call.__qualname__ = f"lp_pool{dims}d"
    return call


lp_pool1d, lp_pool2d, lp_pool3d = _lp_pool(1), _lp_pool(2), _lp_pool(3)


def local_response_norm(input, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
    if input.ndim < 3:
        raise ValueError(f"local_response_norm: expected a tensor of at least three dimensions, got {input.ndim}")
    if input.numel() == 0:
        return input
    squares = input.mul(input).unsqueeze(1)
    if input.ndim == 3:
        padded = aten("pad")(squares, [0, 0, size // 2, (size - 1) // 2])
        sums = aten("avg_pool2d")(padded, [size, 1], [1, 1]).squeeze(1)
    else:
        shape = tuple(input.shape)
        volumes = squares.reshape(shape[0], 1, shape[1], shape[2], -1)
        padded = aten("pad")(volumes, [0, 0, 0, 0, size // 2, (size - 1) // 2])
        sums = aten("avg_pool3d")(padded, [size, 1, 1], [1, 1, 1]).squeeze(1).reshape(shape)
    return input / sums.mul(alpha).add(k).pow(beta)


def _unpooled_size(input, kernel_size, stride, padding, output_size, dims: int) -> list:
    natural = [(have - 1) * step + window - 2 * edge
               for have, step, window, edge in zip(input.shape[-dims:], stride, kernel_size, padding)]
    if output_size is None:
        return natural
    wanted = list(output_size)[-dims:] if len(output_size) in (dims, input.ndim) else None
    if wanted is None:
        raise ValueError(f"max_unpool{dims}d: output_size has {len(output_size)} numbers, expected {dims} or {input.ndim}")
    for size, usual, step in zip(wanted, natural, stride):
        if not usual - step < size < usual + step:
            raise ValueError(f"max_unpool{dims}d: output_size {wanted} is further than the stride from {natural}")
    return wanted


def _max_unpool(dims: int):
    def call(input, indices, kernel_size, stride=None, padding=0, output_size=None):
        windows = _each(kernel_size, dims)
        steps = windows if stride is None else _each(stride, dims)
        edges = _each(padding, dims)
        size = _unpooled_size(input, windows, steps, edges, output_size, dims)
        if dims == 1:
            return aten("max_unpool2d")(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1]).squeeze(-1)
        if dims == 2:
            return aten("max_unpool2d")(input, indices, size)
        return aten("max_unpool3d")(input, indices, size, steps, edges)

    call.__name__ = call.__qualname__ = f"max_unpool{dims}d"
    return call


max_unpool1d, max_unpool2d, max_unpool3d = _max_unpool(1), _max_unpool(2), _max_unpool(3)


def _fractional(dims: int):
    def with_indices(input, kernel_size, output_size=None, output_ratio=None, return_indices: bool = False, _random_samples=None):
        if (output_size is None) == (output_ratio is None):
            raise ValueError(f"fractional_max_pool{dims}d: exactly one of output_size and output_ratio must be given")
        if output_size is None:
            ratios = [output_ratio] * dims if isinstance(output_ratio, float) else list(output_ratio)
            output_size = [int(have * ratio) for have, ratio in zip(input.shape[-dims:], ratios)]
        if _random_samples is None:
            batch = 1 if input.ndim == dims + 1 else input.shape[0]
            _random_samples = aten("rand")((batch, input.shape[-dims - 1], dims), dtype=input.dtype, device=input.device)
        return aten(f"fractional_max_pool{dims}d")(input, _each(kernel_size, dims), _each(output_size, dims), _random_samples)

    def call(input, kernel_size, output_size=None, output_ratio=None, return_indices: bool = False, _random_samples=None):
        found = with_indices(input, kernel_size, output_size, output_ratio, True, _random_samples)
        return found if return_indices else found[0]

    with_indices.__name__ = with_indices.__qualname__ = f"fractional_max_pool{dims}d_with_indices"
    call.__name__ = call.__qualname__ = f"fractional_max_pool{dims}d"
    return call, with_indices


fractional_max_pool2d, fractional_max_pool2d_with_indices = _fractional(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _fractional(3)
