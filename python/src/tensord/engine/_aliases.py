"""Operator aliases, which the registry resolves but does not list. The stubs are generated from this table."""

from __future__ import annotations

from tensord.engine import _engine

NAMES = (
    "absolute", "absolute_", "adjoint", "arccos", "arccos_", "arccosh", "arccosh_", "arcsin", "arcsin_", "arcsinh", "arcsinh_", "arctan", "arctan2",
    "arctan2_", "arctan_", "arctanh", "arctanh_", "clip", "clip_", "divide", "divide_", "fix", "fix_", "greater", "greater_", "greater_equal",
    "greater_equal_", "less", "less_", "less_equal", "less_equal_", "linalg_matmul", "multiply", "multiply_", "native_channel_shuffle", "negative",
    "negative_", "not_equal", "not_equal_", "special_digamma", "special_erf", "special_erfc", "special_erfinv", "special_exp2", "special_expit",
    "special_expm1", "special_gammainc", "special_gammaincc", "special_gammaln", "special_i0", "special_log1p", "special_log_softmax",
    "special_logit", "special_logsumexp", "special_multigammaln", "special_polygamma", "special_psi", "special_round", "special_sinc",
    "special_softmax", "special_xlogy", "subtract", "subtract_", "true_divide", "true_divide_",
)
_FUNCTIONS_ONLY = ("linalg_", "special_", "native_")


def methods() -> dict:
    return {name: _engine._operator("aten::" + name) for name in NAMES if not name.startswith(_FUNCTIONS_ONLY)}
