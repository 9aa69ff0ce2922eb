"""Functions of torch.nn.functional that resample images and sequences."""

from __future__ import annotations

import math

from tensord.engine._operators import aten

_MODES = ("nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area")
_OPERATORS = {
    ("nearest", 1): "upsample_nearest1d", ("nearest", 2): "upsample_nearest2d", ("nearest", 3): "upsample_nearest3d",
    ("nearest-exact", 1): "_upsample_nearest_exact1d", ("nearest-exact", 2): "_upsample_nearest_exact2d", ("nearest-exact", 3): "_upsample_nearest_exact3d",
    ("linear", 1): "upsample_linear1d", ("bilinear", 2): "upsample_bilinear2d", ("trilinear", 3): "upsample_trilinear3d", ("bicubic", 2): "upsample_bicubic2d",
}
_ANTIALIAS = {"bilinear": "_upsample_bilinear2d_aa", "bicubic": "_upsample_bicubic2d_aa"}


def _per_dim(value, dims: int, name: str) -> list:
    if not isinstance(value, (tuple, list)):
        return [value] * dims
    if len(value) != dims:
        raise ValueError(f"interpolate: {name} has {len(value)} numbers, the input has {dims} spatial dimensions")
    return list(value)


def interpolate(input, size=None, scale_factor=None, mode: str = "nearest", align_corners=None, recompute_scale_factor=None,
                antialias: bool = False):
    """Resamples the spatial dimensions (all but the first two) to `size`, or by `scale_factor`."""
    dims = input.ndim - 2
    if mode not in _MODES:
        raise NotImplementedError(f"interpolate: mode {mode!r} is not one of {', '.join(_MODES)}")
    is_linear = mode in ("linear", "bilinear", "bicubic", "trilinear")
    if align_corners is not None and not is_linear:
        raise ValueError(f"interpolate: align_corners has no meaning for mode {mode!r}")
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: exactly one of size and scale_factor must be given")
    if recompute_scale_factor and size is not None:
        raise ValueError("interpolate: recompute_scale_factor has no meaning with size")
    factors = None if scale_factor is None else [float(factor) for factor in _per_dim(scale_factor, dims, "scale_factor")]
    sizes = None if size is None else _per_dim(size, dims, "size")
    if factors is not None and (recompute_scale_factor or mode == "area"):
        sizes, factors = [math.floor(float(have) * factor) for have, factor in zip(input.shape[2:], factors)], None
    if mode == "area" and 1 <= dims <= 3:
        return aten(f"adaptive_avg_pool{dims}d")(input, sizes)
    if antialias:
        if mode not in _ANTIALIAS or dims != 2:
            raise ValueError("interpolate: antialias is for bilinear and bicubic on inputs of four dimensions")
        return aten(_ANTIALIAS[mode])(input, sizes, bool(align_corners), factors)
    name = _OPERATORS.get((mode, dims))
    if name is None:
        raise NotImplementedError(f"interpolate: mode {mode!r} is not there for inputs of {input.ndim} dimensions")
    return aten(name)(input, sizes, bool(align_corners), factors) if is_linear else aten(name)(input, sizes, factors)


def upsample(input, size=None, scale_factor=None, mode: str = "nearest", align_corners=None):
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    return interpolate(input, size, scale_factor)


def upsample_bilinear(input, size=None, scale_factor=None):
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


def _index_of(value: str, known: tuple, what: str) -> int:
    if value not in known:
        raise ValueError(f"grid_sample: {what} {value!r} is not one of {', '.join(known)}")
    return known.index(value)


def grid_sample(input, grid, mode: str = "bilinear", padding_mode: str = "zeros", align_corners=None):
    """The input at the places of `grid`, from -1 to 1 along each spatial dimension."""
    return aten("grid_sampler")(input, grid, _index_of(mode, ("bilinear", "nearest", "bicubic"), "mode"),
                                _index_of(padding_mode, ("zeros", "border", "reflection"), "padding_mode"), bool(align_corners))


def affine_grid(theta, size, align_corners=None):
    """The grid of an affine map of images (theta N × 2 × 3) or volumes (N × 3 × 4), for grid_sample."""
    return aten("affine_grid_generator")(theta, list(size), bool(align_corners))
