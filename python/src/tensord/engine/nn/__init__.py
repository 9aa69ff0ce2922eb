"""Modules, under torch.nn's names. Parameters, buffers and submodules are registered by assigning them to
attributes."""

from tensord.engine.nn import functional, init, parallel, utils
from tensord.engine.nn.activations import *  # noqa: F403
from tensord.engine.nn.containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from tensord.engine.nn.convolutions import *  # noqa: F403
from tensord.engine.nn.layers import *  # noqa: F403
from tensord.engine.nn.norms import *  # noqa: F403
from tensord.engine.nn.losses import *  # noqa: F403
from tensord.engine.nn.padding import *  # noqa: F403
from tensord.engine.nn.regularization import *  # noqa: F403
from tensord.engine.nn.resampling import *  # noqa: F403
from tensord.engine.nn.lazy import *  # noqa: F403
from tensord.engine.nn.module import Module
from tensord.engine.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from tensord.engine.nn.parallel import DataParallel, SyncBatchNorm
from tensord.engine.nn.adaptive_softmax import *  # noqa: F403
from tensord.engine.nn.attention import *  # noqa: F403
from tensord.engine.nn.embeddings import *  # noqa: F403
from tensord.engine.nn.recurrent import *  # noqa: F403
from tensord.engine.nn.recurrent_cells import *  # noqa: F403
from tensord.engine.nn.transformer import *  # noqa: F403
