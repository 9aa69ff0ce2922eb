"""torchvision's operators: boxes, regions of images, deformable convolutions."""

import torch
import torchvision  # noqa: F401: registers the operators

from tests.ops.case import FULL, case, t

LOOSE = {"rtol": 1e-4, "atol": 1e-4}
# For two images: inside, at the edges, outside, of zero width, ending before the start, far away.
BOXES = t(values=[[0, 0.5, 1.2, 3.6, 4.1], [1, 0, 0, 7, 6], [1, -3, -2.5, 2.5, 9.5], [0, 2, 2, 2, 2], [0, 5, 4, 3, 1], [1, 40, 40, 50, 50]])
INSIDE = t(values=[[0, 0.5, 1.2, 3.6, 4.1], [1, 0, 0, 7, 6], [1, -3, -2.5, 2.5, 9.5]])
# Away from the last row and column, which torchvision's ps_roi_pool omits in the forward but not in the backward.
INNER = t(values=[[0, 0.5, 1.2, 3.6, 4.1], [1, 1, 0, 4, 3], [1, -3, -2.5, 2.5, 2.5]])
REGIONS = {"gradient": "first", "dtypes": FULL, **LOOSE}


def regions():
    for ratio in (-1, 0, 1, 2, 3):
        for aligned in (False, True):
            for scale in (1.0, 0.5):
                yield case("torchvision::roi_align", t(2, 3, 6, 7), BOXES, scale, 2, 3, ratio, aligned, **REGIONS)
        yield case("torchvision::ps_roi_align", t(2, 12, 6, 7), INSIDE, 0.75, 2, 3, ratio, **REGIONS)
    for scale in (1.0, 0.5, 1.7):
        yield case("torchvision::roi_pool", t(2, 3, 6, 7), BOXES, scale, 3, 2, **REGIONS)
        yield case("torchvision::ps_roi_pool", t(2, 12, 6, 7), BOXES, scale, 3, 2, **{**REGIONS, "gradient": False})
    yield case("torchvision::ps_roi_pool", t(2, 12, 6, 7), INNER, 1.0, 3, 2, **REGIONS)
    for name, more in (("roi_align", (2, False)), ("roi_pool", ())):
        op = f"torchvision::{name}"
        yield case(op, t(2, 3, 6, 7), t(0, 5), 1.0, 2, 2, *more, dtypes=FULL, gradient=False)
        yield case(op, t(2, 0, 6, 7), INSIDE, 1.0, 2, 2, *more, dtypes=FULL, gradient=False)
        yield case(op, t(2, 3, 6, 7), t(3, 4), 1.0, 2, 2, *more, reference=_refuse, error=("refused", "rois must have shape as Tensor[K, 5]"))
    yield case("torchvision::ps_roi_pool", t(2, 7, 6, 7), INSIDE, 1.0, 2, 2,
               error="input channels must be a multiple of pooling height * pooling width")
    for name, out, more in (("roi_align", (3, 3, 2, 2), (2, True)), ("roi_align", (3, 3, 2, 2), (-1, False))):
        yield case(f"torchvision::_{name}_backward", t(*out), INSIDE, 1.0, 2, 2, 2, 3, 6, 7, *more, dtypes=FULL, gradient=False, **LOOSE)
    bins = t(values=[[[[0, 1], [2, 3]]]] * 3, dtype=torch.int32)
    yield case("torchvision::_ps_roi_align_backward", t(3, 1, 2, 2), INSIDE, bins, 1.0, 2, 2, 2, 2, 4, 6, 7, dtypes=FULL,
               strided=False, gradient=False, **LOOSE)
    yield case("torchvision::_ps_roi_pool_backward", t(3, 1, 2, 2), INNER, bins, 1.0, 2, 2, 2, 4, 6, 7, dtypes=FULL,
               strided=False, gradient=False, **LOOSE)
    places = t(values=[[[[0, 5], [41, -1]]]] * 3, dtype=torch.int32)
    yield case("torchvision::_roi_pool_backward", t(3, 1, 2, 2), INSIDE, places, 1.0, 2, 2, 2, 1, 6, 7, dtypes=FULL,
               strided=False, gradient=False, **LOOSE)


def suppression():
    corners = torch.rand(40, 2, generator=torch.Generator().manual_seed(3)) * 8
    sizes = torch.rand(40, 2, generator=torch.Generator().manual_seed(4)) * 6
    boxes = torch.cat([corners, corners + sizes], 1).tolist()
    for threshold in (0.0, 0.3, 0.5, 1.0):
        yield case("torchvision::nms", t(values=boxes), t(40), threshold, dtypes=FULL)
    equal = [[0.0, 0, 2, 2], [0, 0, 2, 2], [1, 1, 3, 3], [5, 5, 5, 5], [5, 5, 5, 5]]
    yield case("torchvision::nms", t(values=equal), t(values=[0.5, 0.5, 0.9, 0.1, 0.1]), 0.5, dtypes=FULL)
    yield case("torchvision::nms", t(0, 4), t(0), 0.5, dtypes=FULL)
    yield case("torchvision::nms", t(3, 5), t(3), 0.5, error="boxes should have 4 elements in dimension 1")
    yield case("torchvision::nms", t(3, 4), t(2), 0.5, error="boxes and scores should have same number of elements")


def columns_by_convolution(x, offset, mask, use_mask, kernel, stride, padding, dilation, offset_groups):
    """The columns are the result of a convolution with identity weights."""
    rows = x.shape[1] * kernel[0] * kernel[1]
    weight = torch.eye(rows, dtype=x.dtype).reshape(rows, x.shape[1], *kernel)
    out = torch.ops.torchvision.deform_conv2d(x, weight, offset, mask, torch.zeros(rows, dtype=x.dtype), *stride, *padding, *dilation,
                                              1, offset_groups, use_mask)
    return out.flatten(2)


def deformable():
    for groups, offset_groups, stride, padding, dilation in ((1, 1, (1, 1), (0, 0), (1, 1)), (2, 2, (2, 1), (1, 2), (1, 2)),
                                                             (1, 4, (1, 2), (2, 1), (2, 1)), (4, 1, (3, 3), (1, 1), (1, 1))):
        out = [(size + 2 * p - d * (k - 1) - 1) // s + 1 for size, p, d, k, s in zip((6, 7), padding, dilation, (3, 2), stride)]
        offset, mask = t(2, offset_groups * 12, *out), t(2, offset_groups * 6, *out)
        for use_mask in (True, False):
            yield case("torchvision::deform_conv2d", t(2, 4, 6, 7), t(8, 4 // groups, 3, 2), offset, mask if use_mask else t(2, 1), t(8),
                       *stride, *padding, *dilation, groups, offset_groups, use_mask, dtypes=FULL, gradient="first", **LOOSE)
        yield case("tensord::deform_columns", t(2, 4, 6, 7), offset, mask, True, [3, 2], list(stride), list(padding), list(dilation),
                   offset_groups, reference=columns_by_convolution, dtypes=FULL, gradient="first", **LOOSE)
    yield case("torchvision::deform_conv2d", t(1, 4, 6, 7), t(8, 3, 3, 2), t(1, 12, 4, 6), t(1, 1), t(8), 1, 1, 0, 0, 1, 1, 1, 1, False,
               error=("", "does not fit a weight of shape"))
    yield case("torchvision::deform_conv2d", t(1, 4, 6, 7), t(8, 4, 3, 2), t(1, 11, 4, 6), t(1, 1), t(8), 1, 1, 0, 0, 1, 1, 1, 1, False,
               error=("", "expected offset of shape"))


def hostile():
    """Arguments for which torchvision reads out of bounds, or never ends."""
    for box, message in (([2, 0, 0, 1, 1], "there is no image 2"), ([-1, 0, 0, 1, 1], "there is no image -1"),
                         ([float("nan"), 0, 0, 1, 1], "there is no image"), ([0, float("inf"), 0, 1, 1], "must be finite")):
        for name, more in (("roi_align", (2, False)), ("roi_pool", ()), ("ps_roi_pool", ()), ("ps_roi_align", (2,))):
            yield case(f"torchvision::{name}", t(2, 4, 3, 3), t(values=[box]), 1.0, 2, 2, *more, reference=_refuse, error=("refused", message))
    yield case("torchvision::roi_align", t(1, 1, 3, 3), t(values=[[0, 0, 0, 1e30, 1e30]]), 1.0, 2, 2, -1, False, reference=_refuse,
               error=("refused", "needs more than"))


def _refuse(*_):
    raise RuntimeError("refused")


CASES = [*regions(), *suppression(), *deformable(), *hostile()]
