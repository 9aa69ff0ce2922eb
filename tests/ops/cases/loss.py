"""Losses. Reductions: 0 none, 1 mean, 2 sum."""

import torch

from tests.ops.case import FULL, INTEGRAL, case, ints, t

CASES = []
UNIT = dict(low=0.05, high=0.95)


for reduction in [0, 1, 2]:
    for name in ["mse_loss", "l1_loss"]:
        CASES.append(case(f"aten::{name}", t(3, 5), t(3, 5), reduction, dtypes=FULL))
    for name in ["smooth_l1_loss", "huber_loss"]:
        CASES.append(case(f"aten::{name}", t(3, 5), t(3, 5), reduction, 0.7, dtypes=FULL))
        CASES.append(case(f"aten::{name}", t(3, 5), t(3, 5), reduction, 2.5, dtypes=FULL))
    CASES.append(case("aten::binary_cross_entropy", t(3, 5, **UNIT), t(3, 5, **UNIT), None, reduction, dtypes=FULL))
    CASES.append(case("aten::binary_cross_entropy", t(3, 5, **UNIT), t(3, 5, **UNIT), t(5, **UNIT), reduction, dtypes=FULL))
    for weight in [None, t(5, **UNIT)]:
        for pos_weight in [None, t(5, **UNIT)]:
            CASES.append(case("aten::binary_cross_entropy_with_logits", t(3, 5), t(3, 5, **UNIT), weight, pos_weight, reduction,
                              dtypes=FULL))
    CASES.append(case("aten::kl_div", t(3, 5), t(3, 5, **UNIT), reduction, dtypes=FULL))
    CASES.append(case("aten::kl_div", t(3, 5), t(3, 5), reduction, log_target=True, dtypes=FULL))
    for log_input in [False, True]:
        for full in [False, True]:
            CASES.append(case("aten::poisson_nll_loss", t(3, 5, **UNIT), t(3, 5, low=0.1, high=4.0), log_input, full, 1e-8,
                              reduction, dtypes=FULL))
    CASES.append(case("aten::soft_margin_loss", t(3, 5), t(3, 5), reduction, dtypes=FULL))
    SIGNS = t(values=[1.0, -1.0, 1.0, -1.0])
    CASES.append(case("aten::hinge_embedding_loss", t(4), SIGNS, 1.0, reduction, dtypes=FULL))
    CASES.append(case("aten::margin_ranking_loss", t(4), t(4), SIGNS, 0.3, reduction, dtypes=FULL))
    CASES.append(case("aten::cosine_embedding_loss", t(4, 6), t(4, 6), SIGNS, 0.1, reduction, dtypes=FULL))
    for swap in [False, True]:
        CASES.append(case("aten::triplet_margin_loss", t(4, 6), t(4, 6), t(4, 6), 2.0, 2.0, 1e-6, swap, reduction, dtypes=FULL))
    for p in [1, 2]:
        for weight in [None, t(5, **UNIT)]:
            CASES.append(case("aten::multi_margin_loss", t(3, 5), ints(0, 4, 2), p, 0.8, weight, reduction, dtypes=FULL,
                              strided=False))
    LISTS = t(values=[[3, 0, -1, 1], [-1, 1, 2, 3], [0, 1, 2, 3]], dtype=torch.int64)
    CASES.append(case("aten::multilabel_margin_loss", t(3, 4), LISTS, reduction, dtypes=FULL))
    CASES.append(case("aten::multilabel_margin_loss_forward", t(3, 4), LISTS, reduction, dtypes=FULL))
CASES.append(case("aten::mse_loss", t(3, 5), t(5), dtypes=FULL, gradient=False))
CASES.append(case("aten::smooth_l1_loss", t(3, 5), t(3, 5), 1, 0.0, dtypes=FULL))
CASES.append(case("aten::smooth_l1_loss", t(3), t(3), 1, -1.0, error="negative values"))
CASES.append(case("aten::huber_loss", t(3), t(3), 1, 0.0, error="non-positive"))
CASES.append(case("aten::binary_cross_entropy", t(3, 5, low=1.5), t(3, 5, **UNIT), error="between 0 and 1"))
CASES.append(case("aten::binary_cross_entropy", t(values=[0.0, 1.0, 0.0, 1.0]), t(values=[0.0, 1.0, 1.0, 0.0]), dtypes=FULL,
                  gradient=False))
CASES.append(case("aten::cosine_embedding_loss", t(6), t(6), t(values=1.0), 0.1, dtypes=FULL))
CASES.append(case("aten::multi_margin_loss", t(5), t(values=3, dtype=torch.int64), dtypes=FULL))
CASES.append(case("aten::multi_margin_loss", t(2, 5), ints(0, 5), error="target out of range"))
CASES.append(case("aten::multilabel_margin_loss", t(2, 3), t(values=[[0, 7, -1], [0, 1, 2]], dtype=torch.int64),
                  error="out of range"))
CASES.append(case("aten::multi_margin_loss_backward", t(), t(3, 5), ints(0, 4, 2), 2, 0.8, t(5, **UNIT), 1, dtypes=FULL,
                  gradient=False))
CASES.append(case("aten::multilabel_margin_loss_backward", t(), t(2, 3), t(values=[[2, -1, 0], [1, 0, -1]], dtype=torch.int64), 1,
                  t(values=[[0.0, 0.0, 1.0], [1.0, 1.0, 0.0]]), dtypes=FULL, gradient=False))

CASES.append(case("aten::cosine_similarity", t(3, 40), t(3, 40), 1, 1e-8, dtypes=FULL))
for a, b, dim in [((1, 2, 3), (2, 1, 3), -2), ((1, 2, 3), (2, 1, 3), 0), ((3,), (2, 3), -1), ((), (3,), 0), ((), (), 0)]:
    CASES.append(case("aten::cosine_similarity", t(*a), t(*b), dim, 1e-8, dtypes=FULL))
    CASES.append(case("aten::cosine_similarity", t(*b), t(*a), dim, 1e-8, dtypes=FULL))
for small in [0.0, 1e-10]:  # below eps
    CASES.append(case("aten::cosine_similarity", t(values=[small] * 3), t(3), 0, 1e-8, dtypes=FULL, gradient="no differences"))
CASES.append(case("aten::cosine_similarity", t(3), t(3), 0, dtypes=INTEGRAL, error="expected common dtype to be floating point"))
CASES.append(case("aten::hinge_embedding_loss", t(4), t(values=[1, -1, 1, -1]), 2.6, 0, dtypes=INTEGRAL[1:]))
for name, like in [("huber_loss", 0), ("soft_margin_loss", 0), ("binary_cross_entropy_with_logits", 1)]:
    for dtypes in [(torch.float32, torch.float64), (torch.float64, torch.float32)]:
        CASES.append(case(f"aten::{name}", t(3, dtype=dtypes[0]), t(3, dtype=dtypes[1], **UNIT), dtypes=[dtypes[like]], rtol=1e-5,
                          gradient=False))
for name in ["huber_loss", "soft_margin_loss"]:
    CASES.append(case(f"aten::{name}", t(3, dtype=torch.int64), t(3), error="can't be cast"))
CASES.append(case("aten::binary_cross_entropy_with_logits", t(3), t(3, dtype=torch.int64), error="can't be cast"))
CASES.append(case("aten::pairwise_distance", t(3, 5), t(3, 5), dtypes=FULL))
CASES.append(case("aten::pairwise_distance", t(3, 5), t(5), 1.0, 1e-6, True, dtypes=FULL))
for p in [1, 2, 3.5]:
    CASES.append(case("aten::dist", t(3, 5), t(3, 5), p, dtypes=FULL))

# Labels.
SPATIAL = t(values=[[[0, 3, 2], [1, 1, -100]], [[2, 2, 0], [3, -100, 1]]], dtype=torch.int64)
for reduction in [0, 1, 2]:
    for weight in [None, t(5, **UNIT)]:
        for name in ["nll_loss", "nll_loss_nd", "cross_entropy_loss"]:
            CASES.append(case(f"aten::{name}", t(4, 5), ints(0, 4, 2, 2), weight, reduction, dtypes=FULL))
            CASES.append(case(f"aten::{name}", t(4, 5), ints(0, 4, 2, 2), weight, reduction, 2, dtypes=FULL))
            CASES.append(case(f"aten::{name}", t(5), t(values=3, dtype=torch.int64), weight, reduction, dtypes=FULL))
        CASES.append(case("aten::nll_loss_forward", t(4, 5), ints(0, 4, 2, 2), weight, reduction, 4, dtypes=FULL))
    for weight in [None, t(4, **UNIT)]:
        for name in ["nll_loss2d", "nll_loss_nd", "cross_entropy_loss"]:
            CASES.append(case(f"aten::{name}", t(2, 4, 2, 3), SPATIAL, weight, reduction, dtypes=FULL))
        CASES.append(case("aten::nll_loss2d_forward", t(2, 4, 2, 3), SPATIAL, weight, reduction, -100, dtypes=FULL))
    CASES.append(case("aten::cross_entropy_loss", t(2, 3, 4), t(values=[[0, 1, 2, 0], [2, 2, 1, -100]], dtype=torch.int64), None,
                      reduction, dtypes=FULL))
    CASES.append(case("aten::nll_loss_nd", t(2, 3, 4), t(values=[[0, 1, 2, 0], [2, 2, 1, -100]], dtype=torch.int64), None, reduction,
                      dtypes=FULL))
    for weight in [None, t(5, **UNIT)]:
        CASES.append(case("aten::cross_entropy_loss", t(4, 5), ints(0, 4, -100, 2), weight, reduction, -100, 0.2, dtypes=FULL))
        for smoothing in [0.0, 0.2]:
            CASES.append(case("aten::cross_entropy_loss", t(4, 5), t(4, 5, **UNIT), weight, reduction, -100, smoothing, dtypes=FULL))
    CASES.append(case("aten::cross_entropy_loss", t(2, 4, 2, 3), SPATIAL, t(4, **UNIT), reduction, -100, 0.3, dtypes=FULL))
    CASES.append(case("aten::cross_entropy_loss", t(2, 4, 3), t(2, 4, 3, **UNIT), t(4, **UNIT), reduction, dtypes=FULL))
CASES.append(case("aten::cross_entropy_loss", t(3, 3000, low=-80.0, high=80.0), ints(0, 1999, 77), dtypes=FULL))
CASES.append(case("aten::cross_entropy_loss", t(700, 3), t(700, dtype=torch.int64, low=0, high=2), dtypes=FULL))
CASES.append(case("aten::cross_entropy_loss", t(2, 3), ints(-100, -100), dtypes=FULL, gradient=False))
CASES.append(case("aten::cross_entropy_loss", t(0, 3), t(0, dtype=torch.int64), dtypes=FULL, gradient=False))
CASES.append(case("aten::cross_entropy_loss", t(0, 3), t(0, dtype=torch.int64), None, 2, dtypes=FULL))
CASES.append(case("aten::cross_entropy_loss", t(2, 10), ints(3, 10), error="Target 10 is out of bounds."))
CASES.append(case("aten::cross_entropy_loss", t(2, 10), ints(3, -1), error="Target -1 is out of bounds."))
CASES.append(case("aten::nll_loss", t(2, 10), ints(3, 11), error="Target 11 is out of bounds."))
CASES.append(case("aten::nll_loss2d", t(1, 2, 1, 2), t(values=[[[0, 2]]], dtype=torch.int64), error="Target 2 is out of bounds."))
CASES.append(case("aten::cross_entropy_loss", t(2, 10), ints(3, 1, 2), error="to match target batch_size (3)."))
CASES.append(case("aten::cross_entropy_loss", t(2, 10), t(2, dtype=torch.float32), error="expected scalar type Long but found"))
CASES.append(case("aten::cross_entropy_loss", t(2, 10), ints(3, 1), t(9), error="weight tensor should be defined either for all"))
CASES.append(case("aten::cross_entropy_loss", t(2, 10), ints(3, 1), None, 1, -100, 1.5, error="label_smoothing must be between"))
CASES.append(case("aten::cross_entropy_loss", t(2, 3), t(2, 3, dtype=torch.int64), error="Expected floating point type for target"))
for reduction in [0, 1, 2]:
    CASES.append(case("aten::nll_loss_backward", t(3) if reduction == 0 else t(), t(3, 4), ints(0, 3, 1), t(4, **UNIT), reduction,
                      1, t(values=1.7), dtypes=FULL, gradient=False))
CASES.append(case("aten::nll_loss2d_backward", t(), t(1, 3, 1, 2), t(values=[[[0, 2]]], dtype=torch.int64), t(3, **UNIT), 1, -100,
                  t(values=1.7), dtypes=FULL, gradient=False, strided=False))

# Connectionist temporal classification: log_probs of steps, samples, classes. PyTorch's gradient is that of the scores
# before log_softmax. It does not allow steps between flat targets.
CTC = dict(dtypes=FULL, gradient="no differences")
TARGETS = t(values=[[1, 2, 2, 0], [3, 1, 0, 0]], dtype=torch.int64)
FLAT_TARGETS = ints(1, 2, 2, 3, 1)
for reduction in [0, 1, 2]:
    CASES.append(case("aten::ctc_loss.IntList", t(6, 2, 4), TARGETS, [6, 5], [3, 2], 0, reduction, **CTC))
    CASES.append(case("aten::ctc_loss.IntList", t(6, 2, 4), FLAT_TARGETS, [6, 5], [3, 2], 0, reduction, strided=False, **CTC))
    CASES.append(case("aten::ctc_loss.Tensor", t(6, 2, 4), TARGETS, ints(6, 4), ints(3, 0), 0, reduction, **CTC))
    CASES.append(case("aten::ctc_loss.IntList", t(3, 2, 4), TARGETS, [3, 2], [3, 2], 0, reduction, True, **CTC))
CASES.append(case("aten::ctc_loss.IntList", t(6, 4), ints(1, 2), [6], [2], 0, 0, strided=False, **CTC))
CASES.append(case("aten::ctc_loss.IntList", t(6, 2, 4), TARGETS, [7, 5], [3, 2], error="Expected input_lengths to have value at most"))
CASES.append(case("aten::ctc_loss.IntList", t(6, 2, 4), TARGETS, [6, 5], [3, 2], 4, error="blank must be in label range"))
CASES.append(case("aten::_ctc_loss", t(5, 1, 4), t(values=[[1, 2]], dtype=torch.int64), [5], [2], dtypes=FULL, gradient=False))
CASES.append(case("aten::_ctc_loss_backward", t(1), t(5, 1, 4), t(values=[[1, 2]], dtype=torch.int64), [5], [2],
                  t(1), t(1, 5, 5), 0, dtypes=FULL, gradient=False, strided=False))
