"""Gradients that are operators in PyTorch and composites here. Reductions: 0 none, 1 mean, 2 sum."""

import torch

from tests.ops.case import FULL, case, t

UNIT = dict(low=0.05, high=0.95)
CASES = []

for reduction in [0, 1, 2]:
    grad = t(3, 5) if reduction == 0 else t()
    for name in ["mse_loss", "soft_margin_loss"]:
        CASES.append(case(f"aten::{name}_backward", grad, t(3, 5), t(3, 5), reduction, dtypes=FULL))
    for name in ["smooth_l1_loss", "huber_loss"]:
        for number in [0.7, 2.5]:
            CASES.append(case(f"aten::{name}_backward", grad, t(3, 5), t(3, 5), reduction, number, dtypes=FULL))
    for weight in [None, t(3, 5, **UNIT)]:
        CASES.append(case("aten::binary_cross_entropy_backward", grad, t(3, 5, **UNIT), t(3, 5, **UNIT), weight, reduction, dtypes=FULL))


def _l1(grad, x, target, reduction):
    return (x - target).sign() * (grad / x.numel() if reduction == 1 else grad)


CASES += [
    case("tensord::l1_loss_backward", t(), t(3, 5), t(3, 5), 1, reference=_l1, dtypes=FULL),
    case("aten::log_sigmoid_backward", t(3, 5), t(3, 5), t(0), dtypes=FULL, strided=False,
         reference=lambda grad, x, buffer: grad * torch.sigmoid(-x)),
    case("aten::mish_backward", t(3, 5), t(3, 5), dtypes=FULL),
    case("aten::glu_backward", t(3, 2), t(3, 4), -1, dtypes=FULL),
    case("aten::glu_backward", t(2, 3, 3), t(2, 6, 3), 1, dtypes=FULL),
    case("aten::glu_backward", t(3, 2), t(3, 5), 1, error="Halving dimension must be even, but dimension 1 is size 5"),
    case("aten::trace_backward", t(), [3, 4], dtypes=FULL),
    # PyTorch 1.13 continues below the diagonal of a tall matrix.
    case("aten::trace_backward", t(), [4, 2], dtypes=FULL, reference=lambda grad, sizes: grad * torch.eye(*sizes, dtype=grad.dtype)),
    case("aten::trace_backward", t(), [4], error="expected matrix input"),
    case("aten::index_select_backward", t(3, 4), [5, 4], 0, t(values=[4, 0, 4], dtype=torch.int64), dtypes=FULL),
    case("aten::index_select_backward", t(2, 3), [2, 5], 1, t(values=[1, 0, 1], dtype=torch.int64), dtypes=FULL),
    case("aten::value_selecting_reduction_backward", t(3), 1, t(values=[3, 0, 1], dtype=torch.int64), [3, 4], False, dtypes=FULL),
    case("aten::value_selecting_reduction_backward", t(1, 4), 0, t(values=[[2, 0, 1, 1]], dtype=torch.int64), [3, 4], True, dtypes=FULL),
    case("aten::masked_select_backward", t(3), t(2, 3), t(values=[[1, 0, 1], [0, 0, 1]], dtype=torch.bool), dtypes=FULL),
    # For a tensor with another layout, PyTorch 1.13 takes the gradients in memory order.
    case("aten::masked_select_backward", t(4), t(2, 3), t(values=[1, 0, 1], dtype=torch.bool), dtypes=FULL, strided=False),
]

# Of activations.
for eps in (None, 0.05, -1.0):
    CASES.append(case("aten::logit_backward", t(2, 6), t(2, 6, low=0.1, high=0.9), eps, dtypes=FULL))
    CASES.append(case("aten::logit_backward", t(6), t(values=[-0.5, 0.0, 0.01, 0.5, 1.0, 1.5]), eps, dtypes=FULL, gradient=False))
for training, lower, upper in ((True, 0.1, 0.3), (True, 0.2, 0.2), (False, 0.1, 0.3)):
    for is_result in (False, True):
        CASES.append(case("aten::rrelu_with_noise_backward", t(3, 4), t(3, 4), t(3, 4), lower, upper, training, is_result, dtypes=FULL))
# PyTorch 1.13 loses the gradient of a tensor with another layout.
for weight in (t(1), t(3)):
    CASES.append(case("aten::prelu_backward", t(2, 3, 4), t(2, 3, 4), weight, dtypes=FULL, strided=False))
CASES.append(case("aten::prelu_backward", t(5), t(5), t(1), dtypes=FULL))
CASES.append(case("aten::prelu_backward", t(2, 3), t(2, 3), t(2), error="Mismatch of parameter numbers"))


def _prelu(x, weight):
    return torch.where(x > 0, x, weight * x)


def _prelu_backward(grad, x, weight):
    return torch.where(x > 0, grad, weight * grad), torch.where(x > 0, torch.zeros_like(x), x * grad)


# PyTorch 2 only.
CASES += [
    case("aten::_prelu_kernel", t(2, 3, 4), t(3, 1), reference=_prelu, dtypes=FULL),
    case("aten::_prelu_kernel_backward", t(2, 3, 4), t(2, 3, 4), t(3, 1), reference=_prelu_backward, dtypes=FULL),
    case("aten::log_sigmoid_forward", t(3, 4), dtypes=FULL, strided=False, gradient="first"),
]


def _masked_scatter_backward(grad, mask, sizes):
    chosen, count = grad.masked_select(mask), torch.Size(sizes).numel()
    return torch.cat([chosen, chosen.new_zeros(max(0, count - len(chosen)))])[:count].view(sizes)


for sizes in ([4], [2, 3]):
    CASES.append(case("aten::masked_scatter_backward", t(2, 3), t(values=[[1, 0, 1], [0, 1, 1]], dtype=torch.bool), sizes, dtypes=FULL,
                      strided=False, reference=_masked_scatter_backward))
