"""Recurrent layers over padded or packed sequences."""

from __future__ import annotations

import math
import warnings

from tensord.engine._operators import aten
from tensord.engine.nn import init
from tensord.engine.nn._placement import parameter, placed
from tensord.engine.nn.module import Module
from tensord.engine.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "LSTM", "RNN", "RNNBase"]

# By mode: number of gates, and the operator.
_MODES = {"RNN_TANH": (1, "rnn_tanh"), "RNN_RELU": (1, "rnn_relu"), "LSTM": (4, "lstm"), "GRU": (3, "gru")}


class RNNBase(Module):
    """Weights, checks and calls of RNN, LSTM and GRU. `mode` is one of RNN_TANH, RNN_RELU, LSTM and GRU."""

    @placed
    def __init__(self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device=None, dtype=None):
        super().__init__()
        name = type(self).__name__
        if mode not in _MODES:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
            raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element being zeroed")
        if input_size < 0 or hidden_size <= 0 or num_layers <= 0:
            raise ValueError(f"{name}: input_size, hidden_size and num_layers must be positive, got {input_size}, {hidden_size} and {num_layers}")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if proj_size and mode != "LSTM":
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if dropout > 0 and num_layers == 1:
            warnings.warn("dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers greater "
                          f"than 1, but got dropout={dropout} and num_layers={num_layers}", stacklevel=2)
        self.mode, self.input_size, self.hidden_size, self.num_layers, self.bias = mode, input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional, self.proj_size = batch_first, float(dropout), bidirectional, proj_size
        self._all_weights = [self._make_weights(layer, suffix) for layer in range(num_layers) for suffix in self._suffixes()]
        self.reset_parameters()

    def _suffixes(self):
        return ("", "_reverse") if self.bidirectional else ("",)

    def _make_weights(self, layer: int, suffix: str) -> list:
        """Creates the weights of one direction of a layer, and returns their names in the operators' order."""
        rows, width = _MODES[self.mode][0] * self.hidden_size, self.proj_size or self.hidden_size
        inputs = width * len(self._suffixes()) if layer else self.input_size
        shapes = {"weight_ih": (rows, inputs), "weight_hh": (rows, width)}
        if self.bias:
            shapes.update(bias_ih=(rows,), bias_hh=(rows,))
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        names = {f"{part}_l{layer}{suffix}": shape for part, shape in shapes.items()}
        for name, shape in names.items():
            self.register_parameter(name, parameter(*shape))
        return list(names)

    @property
    def all_weights(self) -> list:
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Does nothing: the engine's kernels do not need contiguous weights."""

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _state_shapes(self, batch: int) -> list:
        count = self.num_layers * len(self._suffixes())
        widths = (self.proj_size or self.hidden_size, self.hidden_size)[:2 if self.mode == "LSTM" else 1]
        return [(count, batch, width) for width in widths]

    def _zeros(self, input, batch: int) -> list:
        return [aten("zeros")(shape, dtype=input.dtype, device=input.device) for shape in self._state_shapes(batch)]

    def _states(self, hx) -> list:
        """The given initial states as a list; LSTM has two."""
        if self.mode != "LSTM":
            return [hx]
        if not isinstance(hx, (tuple, list)) or len(hx) != 2:
            raise ValueError("LSTM: hx must be a tuple of the hidden and the cell state")
        return list(hx)

    def _check(self, input, states, batch: int) -> None:
        if input.shape[-1] != self.input_size:
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}")
        names = ("hidden[0]", "hidden[1]") if len(states) == 2 else ("hidden",)
        for state, shape, name in zip(states, self._state_shapes(batch), names):
            if tuple(state.shape) != shape:
                raise RuntimeError(f"Expected {name} size {shape}, got {list(state.shape)}")

    def forward(self, input, hx=None):
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        name = type(self).__name__
        if input.ndim not in (2, 3):
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.ndim}D instead")
        is_batched, batch_dim = input.ndim == 3, 0 if self.batch_first else 1
        states = None if hx is None else self._states(hx)
        for state in states or ():
            if state.ndim != input.ndim:
                raise RuntimeError(f"{name}: for {'batched 3-D' if is_batched else 'unbatched 2-D'} input, hx should be "
                                   f"{input.ndim}-D but got {state.ndim}-D tensor")
        if not is_batched:
            input = input.unsqueeze(batch_dim)
            states = states and [state.unsqueeze(1) for state in states]
        batch = input.shape[batch_dim]
        states = states or self._zeros(input, batch)
        self._check(input, states, batch)
        output, *states = self._call((input,), states, (self.batch_first,))
        if not is_batched:
            output, states = output.squeeze(batch_dim), [state.squeeze(1) for state in states]
        return output, self._result(states)

    def _forward_packed(self, input: PackedSequence, hx):
        """States are in the original order of sequences; the operators use the order of the packed sequences."""
        data, batch_sizes, sorted_indices, unsorted_indices = input
        if data.ndim != 2:
            raise ValueError(f"{type(self).__name__}: expected packed elements to be 1D, got {data.ndim - 1}D instead")
        batch = int(batch_sizes[0])
        states = self._zeros(data, batch) if hx is None else self._states(hx)
        self._check(data, states, batch)
        if hx is not None and sorted_indices is not None:
            states = [aten("index_select")(state, 1, sorted_indices) for state in states]
        output, *states = self._call((data, batch_sizes), states, ())
        if unsorted_indices is not None:
            states = [aten("index_select")(state, 1, unsorted_indices) for state in states]
        return PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices), self._result(states)

    def _call(self, inputs, states, last):
        weights = [weight for weights in self.all_weights for weight in weights]
        op = aten(_MODES[self.mode][1] + (".input" if len(inputs) == 1 else ".data"))
        return op(*inputs, states if self.mode == "LSTM" else states[0], weights, self.bias, self.num_layers, self.dropout, self.training,
                  self.bidirectional, *last)

    def _result(self, states):
        return tuple(states) if self.mode == "LSTM" else states[0]

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        for option, default in (("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0),
                                ("bidirectional", False)):
            if getattr(self, option) != default:
                parts.append(f"{option}={getattr(self, option)}")
        return ", ".join(parts)


class RNN(RNNBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu, selected by `nonlinearity`. Other arguments are RNNBase's."""

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, *args, nonlinearity: str = "tanh", **kwargs):
        if args and isinstance(args[0], str):  # nonlinearity by position
            nonlinearity, *args = args
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'")
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        self.nonlinearity = nonlinearity
        super().__init__(f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, *args, **kwargs)


class LSTM(RNNBase):
    """Long short-term memory: states are (hidden, cell); with proj_size, the hidden state is projected to that size."""

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)
