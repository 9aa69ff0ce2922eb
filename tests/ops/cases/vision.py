"""Operators on images: sampling by grids, windows as columns, max unpooling."""

import torch

from tests.ops.case import FULL, case, t

LOOSE = {"rtol": 1e-4, "atol": 1e-4}
GRID = {"low": -1.3, "high": 1.3}


def grids():
    for padding in (0, 1, 2):
        for align in (False, True):
            for mode in (0, 1, 2):
                yield case("aten::grid_sampler_2d", t(2, 3, 4, 5), t(2, 6, 3, 2, **GRID), mode, padding, align, dtypes=FULL,
                           gradient=True if mode != 1 else "no differences", **LOOSE)
            for mode in (0, 1):
                yield case("aten::grid_sampler_3d", t(2, 2, 3, 4, 3), t(2, 3, 2, 4, 3, **GRID), mode, padding, align, dtypes=FULL,
                           gradient=True if mode != 1 else "no differences", **LOOSE)
    yield case("aten::grid_sampler", t(1, 2, 3, 3), t(1, 2, 2, 2, **GRID), 0, 0, False, dtypes=FULL, **LOOSE)
    yield case("aten::grid_sampler", t(1, 2, 3, 3, 2), t(1, 2, 2, 2, 3, **GRID), 0, 1, True, dtypes=FULL, **LOOSE)
    yield case("aten::grid_sampler_2d", t(1, 1, 1, 1), t(1, 2, 2, 2, **GRID), 0, 2, True, dtypes=FULL, gradient="no differences")
    yield case("aten::grid_sampler_2d", t(0, 3, 4, 5), t(0, 6, 3, 2), 0, 0, False, dtypes=FULL)
    yield case("aten::grid_sampler_2d", t(2, 0, 4, 5), t(2, 6, 3, 2), 0, 0, False, dtypes=FULL)
    far = t(values=[[[[1e30, 0.0], [-1e30, 0.5], [3e9, -3e9]]]])
    for padding in (0, 1):
        yield case("aten::grid_sampler_2d", t(1, 1, 3, 4), far, 0, padding, False, gradient=False)
    yield case("aten::grid_sampler", t(2, 3, 4, 5), t(1, 6, 3, 2), 0, 0, False, error="expected grid and input to have same batch size")
    yield case("aten::grid_sampler", t(2, 3, 4, 5), t(2, 6, 3, 3), 0, 0, False, error="expected grid to have size 2 in last dimension")
    yield case("aten::grid_sampler", t(2, 3, 0, 5), t(2, 6, 3, 2), 0, 0, False, error="expected input to have non-empty spatial dimensions")
    for backward, x, g, grid in (("2d", (2, 3, 4, 5), (2, 3, 6, 3), (2, 6, 3, 2)), ("3d", (1, 2, 3, 4, 3), (1, 2, 3, 2, 4), (1, 3, 2, 4, 3))):
        for mask in ([True, True], [True, False], [False, True]):
            yield case(f"aten::grid_sampler_{backward}_backward", t(*g), t(*x), t(*grid, **GRID), 0, 0, False, mask, dtypes=FULL,
                       gradient=False, **LOOSE)
    for align in (False, True):
        yield case("aten::affine_grid_generator", t(2, 2, 3), [2, 3, 4, 5], align, dtypes=FULL, **LOOSE)
        yield case("aten::affine_grid_generator", t(2, 3, 4), [2, 3, 2, 4, 5], align, dtypes=FULL, **LOOSE)
    yield case("aten::affine_grid_generator", t(1, 2, 3), [1, 1, 1, 3], False, dtypes=FULL, **LOOSE)
    yield case("aten::affine_grid_generator", t(2, 2, 3), [2, 3, 4], False, error="AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")


def columns():
    for kernel, dilation, padding, stride in (([2, 3], [1, 1], [0, 0], [1, 1]), ([3, 3], [1, 2], [2, 1], [2, 1]),
                                              ([1, 2], [3, 1], [1, 4], [3, 5]), ([3, 1], [2, 1], [1, 0], [1, 2])):
        yield case("aten::im2col", t(2, 3, 6, 7), kernel, dilation, padding, stride, dtypes=FULL)
        yield case("aten::im2col", t(3, 6, 7), kernel, dilation, padding, stride, dtypes=FULL)
        places = 1
        for size, k, d, p, s in zip((6, 7), kernel, dilation, padding, stride):
            places *= (size + 2 * p - d * (k - 1) - 1) // s + 1
        rows = 3 * kernel[0] * kernel[1]
        yield case("aten::col2im", t(2, rows, places), [6, 7], kernel, dilation, padding, stride, dtypes=FULL, **LOOSE)
        yield case("aten::col2im", t(rows, places), [6, 7], kernel, dilation, padding, stride, dtypes=FULL, **LOOSE)
    yield case("aten::im2col", t(1, 1, 1, 1), [1, 1], [1, 1], [5, 5], [8, 8], dtypes=FULL)
    yield case("aten::im2col", t(1, 1, 2, 2), [3, 3], [1, 1], [0, 0], [1, 1], error=("calculated shape of the array of sliding blocks", "calculated shape of the array of sliding blocks"))
    yield case("aten::im2col", t(1, 1, 4, 4), [3, 3], [1, 1], [0, 0], [0, 1], error="stride should be greater than zero")
    yield case("aten::col2im", t(2, 7, 4), [4, 4], [2, 2], [1, 1], [0, 0], [1, 1], error="to be divisible by the product of kernel_size")


def unpools():
    places = t(values=[[[[0, 3], [9, 11]]]], dtype=torch.int64)
    yield case("aten::max_unpool2d", t(1, 1, 2, 2), places, [4, 3], dtypes=FULL)
    yield case("aten::max_unpool2d", t(1, 1, 2, 2), places, [3, 3], error="Found an invalid max index")
    cube = t(values=[[[[0, 3], [9, 11]]]], dtype=torch.int64)
    yield case("aten::max_unpool3d", t(1, 1, 2, 2), cube, [2, 3, 2], [1, 1, 1], [0, 0, 0], dtypes=FULL)


CASES = [*grids(), *columns(), *unpools()]
