"""Autograd's properties of tensors, and passes that must fail. The results of passes are tested in
tests/kernels/autograd_test.cpp and in the scripts of tests/jit."""

import torch

from tests.ops.case import case, t

NO_HISTORY = "element 0 of tensors does not require grad and does not have a grad_fn"


def _scalar_backward(tensor, *args):
    tensor.sum().backward(*args)


CASES = [
    case("aten::is_leaf", t(2), reference=lambda x: x.is_leaf),
    case("aten::output_nr", t(2), reference=lambda x: x.output_nr),
    case("aten::_version", t(2), strided=False, reference=lambda x: x._version),
    case("aten::retains_grad", t(2), reference=lambda x: x.retains_grad),
    case("aten::retain_grad", t(2), reference=lambda x: x.retain_grad(),
         error="can't retain_grad on Tensor that has requires_grad=False"),
    case("prim::grad", t(2), reference=lambda x: x.grad),
    case("aten::data", t(2, 3), reference=lambda x: x.data),
    case("aten::backward", t(1), None, None, False, reference=_scalar_backward, error=NO_HISTORY),
    case("aten::backward.TensorList", [t(1)], None, None, False,
         reference=lambda tensors, *rest: torch.autograd.backward(tensors), error=NO_HISTORY),
    case("aten::grad", [t(1)], [t(1)], None, None, False, False,
         reference=lambda outputs, inputs, *rest: torch.autograd.grad(outputs, inputs), error=NO_HISTORY),
]
