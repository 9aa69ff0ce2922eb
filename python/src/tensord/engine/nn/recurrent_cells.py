"""Single steps of recurrent layers."""

from __future__ import annotations

import math

from tensord.engine._operators import aten
from tensord.engine.nn import init
from tensord.engine.nn._placement import optional_parameter, parameter, placed
from tensord.engine.nn.module import Module

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


class RNNCellBase(Module):
    @placed
    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        self.weight_ih = parameter(rows, input_size)
        self.weight_hh = parameter(rows, hidden_size)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, optional_parameter(bias, rows))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _step(self, op: str, input, states, count: int) -> list:
        """The next states, op(input, states, weights). A batch dimension is added temporarily if the input has none."""
        name = type(self).__name__
        if input.ndim not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        if states is None:
            zeros = aten("zeros")((*input.shape[:-1], self.hidden_size), dtype=input.dtype, device=input.device)
            states = [zeros] * count
        for state in states:
            if state.ndim != input.ndim:
                raise ValueError(f"{name}: Expected hx to be {input.ndim}D as the input, got {state.ndim}D instead")
        is_batched = input.ndim == 2
        if not is_batched:
            input, states = input.unsqueeze(0), [state.unsqueeze(0) for state in states]
        found = aten(op)(input, states if count == 2 else states[0], self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        found = list(found) if count == 2 else [found]
        return found if is_batched else [state.squeeze(0) for state in found]

    def extra_repr(self) -> str:
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return (f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else f", bias={self.bias}")
                + ("" if nonlinearity == "tanh" else f", nonlinearity={nonlinearity}"))


class RNNCell(RNNCellBase):
    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(f"rnn_{self.nonlinearity}_cell", input, None if hx is None else [hx], 1)[0]


class LSTMCell(RNNCellBase):
    """States are (hidden, cell)."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input, hx=None):
        if hx is not None and (not isinstance(hx, (tuple, list)) or len(hx) != 2):
            raise ValueError("LSTMCell: hx must be a tuple of the hidden and the cell state")
        return tuple(self._step("lstm_cell", input, None if hx is None else list(hx), 2))


class GRUCell(RNNCellBase):
    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input, hx=None):
        return self._step("gru_cell", input, None if hx is None else [hx], 1)[0]
