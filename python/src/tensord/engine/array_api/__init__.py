"""The array API standard (data-apis.org/array-api) for the engine's tensors, for libraries written against it.

    from tensord.engine import array_api as xp

    x = xp.linspace(0, 1, 5)
    assert x.__array_namespace__() is xp

Arrays are `engine.Tensor`s. Functions promote by dtype only, as the standard requires; the operators `+ - * /` of
tensors follow PyTorch, where tensors without dimensions rank below others. docs/engine.md lists the other differences.
"""

from math import e, inf, nan, pi

from tensord.engine import _engine
from tensord.engine import Tensor as Array
from tensord.engine import bool, complex64, complex128, device, dtype, float32, float64, int8, int16, int32, int64, uint8
from tensord.engine.array_api import fft, linalg
from tensord.engine.array_api._creation import *  # noqa: F403
from tensord.engine.array_api._elementwise import *  # noqa: F403
from tensord.engine.array_api._info import *  # noqa: F403
from tensord.engine.array_api._info import __array_namespace_info__
from tensord.engine.array_api._manipulation import *  # noqa: F403
from tensord.engine.array_api._searching import *  # noqa: F403
from tensord.engine.array_api._statistics import *  # noqa: F403
from tensord.engine.array_api.linalg import matmul, matrix_transpose, tensordot, vecdot

newaxis = None
__array_api_version__ = "2025.12"
