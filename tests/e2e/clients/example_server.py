"""The daemon with equivalents of Triton's example models, and requests for them."""

import pathlib

import numpy as np

from tests.e2e.daemon_process import ROOT, DaemonProcess

EXAMPLES = pathlib.Path(ROOT) / "examples" / "triton"
REPOSITORIES = [EXAMPLES / "model_repository", EXAMPLES / "more_models"]
WAIT_S = 60


def start(*flags, repositories=None, **kwargs):
    return DaemonProcess(repositories or REPOSITORIES, "--allow-client-shm", "true", *flags, **kwargs)


def strings(*values):
    return np.array([[str(value).encode() for value in values]], dtype=np.object_)


def add_sub_terms(dtype=np.int32, batch=1):
    return np.arange(16 * batch, dtype=dtype).reshape(batch, 16), np.ones((batch, 16), dtype=dtype)
