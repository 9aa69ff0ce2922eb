"""Random numbers: a seed gives PyTorch's, element by element, at sizes around every block of draws. A tensor with
another memory layout is filled in that order."""

import torch

from tests.ops.case import FULL, case, t

SIZES = [(0,), (1,), (3, 5), (16,), (17,), (31,), (33,), (2047,), (2049,), (3, 1700)]
HALVES = [torch.float16, torch.bfloat16]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
CASES = []


COMPLEX = [torch.complex64, torch.complex128]


def add(op, *arguments, strided=True, **named):
    CASES.append(case(f"aten::{op}", *arguments, check="drawn", gradient=False, strided=strided, **named))


for sizes in SIZES:
    add("uniform_", t(*sizes), -1.0, 2.5, dtypes=FULL + COMPLEX)
    add("bernoulli_.float", t(*sizes), 0.3, dtypes=FULL)
    add("bernoulli", t(*sizes, low=0, high=1), dtypes=FULL)
    add("random_.from", t(*sizes), -3, 11, dtypes=FULL + INTEGERS[1:])
    add("dropout", t(*sizes), 0.3, True, dtypes=FULL)
    if sizes != (0,):  # PyTorch's mask for it is not a bool
        add("native_dropout", t(*sizes), 0.4, True, dtypes=FULL)
    add("rand", list(sizes))
    add("randint.low", -5, 12, list(sizes))
    # Below 16 elements numbers are drawn in pairs, otherwise in blocks.
    add("normal_", t(*sizes), 1.0, 2.0, dtypes=FULL + COMPLEX, atol=1e-5)
    add("randn", list(sizes), atol=1e-5)
    for dtype in COMPLEX:
        add("rand", list(sizes), dtype=dtype)
        add("randn", list(sizes), dtype=dtype, atol=1e-5)

for sizes in [(0,), (3, 5), (40,)]:
    add("uniform_", t(*sizes), -1.0, 2.5, dtypes=HALVES)
    add("random_", t(*sizes), dtypes=FULL + INTEGERS)
    add("random_.to", t(*sizes), 100, dtypes=FULL + INTEGERS)
    add("random_.from", t(*sizes), -(1 << 40), 1 << 40, dtypes=[torch.int64])
    add("random_.from", t(*sizes), 0, 1 << 32, dtypes=[torch.int64])
    add("random_.from", t(*sizes), 0, (1 << 32) - 1, dtypes=[torch.int64])
    add("exponential_", t(*sizes), 1.5, dtypes=FULL)
    add("cauchy_", t(*sizes), 1.0, 2.0, dtypes=FULL)
    add("log_normal_", t(*sizes), 0.5, 0.25, dtypes=FULL)
    add("geometric_", t(*sizes), 0.3, dtypes=FULL + INTEGERS)
    add("poisson", t(*sizes, low=0, high=40), dtypes=FULL)
    add("poisson", t(*sizes, low=9.5, high=10.5), dtypes=FULL)
    add("binomial", t(*sizes, low=0, high=60), t(*sizes, low=0, high=1), dtypes=FULL)
    add("normal.Tensor_float", t(*sizes), 2.0, dtypes=FULL, atol=1e-5)
    add("normal.float_Tensor", 1.0, t(*sizes, low=0), dtypes=FULL, atol=1e-5)
    add("normal.Tensor_Tensor", t(*sizes), t(*sizes, low=0), dtypes=FULL, atol=1e-5)
    add("rrelu", t(*sizes), 0.1, 0.3, True, dtypes=FULL)
    add("rrelu_with_noise", t(*sizes), t(*sizes), 0.1, 0.3, True, dtypes=FULL)
    add("rand_like", t(*sizes), dtypes=FULL + COMPLEX)
    add("randn_like", t(*sizes), dtypes=FULL + COMPLEX, atol=1e-5)
    add("randint_like.low_dtype", t(*sizes), 2, 9, dtypes=FULL)

for n in [0, 1, 2, 30, 1000]:
    add("randperm", n)
for p in [0.0, 0.5, 1.0]:
    add("bernoulli_.float", t(50), p)
    add("dropout", t(50), p, True)
for name in ["feature_dropout", "alpha_dropout", "feature_alpha_dropout"]:
    add(name, t(4, 6, 3), 0.4, True, dtypes=FULL)
for sizes in [(5,), (1,), (3, 6)]:
    add("multinomial", t(*sizes, low=0.1, high=1), 1, dtypes=FULL)
    add("multinomial", t(*sizes, low=0.1, high=1), 20, True, dtypes=FULL)
    add("multinomial", t(*sizes, low=0.1, high=1), sizes[-1], False, dtypes=FULL)
add("multinomial", t(values=[0.0, 1.0, 0.0, 2.0]), 40, True, dtypes=FULL)
add("multinomial", t(0, 3), 2, True, dtypes=FULL)
