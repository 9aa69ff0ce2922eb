"""Recurrent layers and cells, packed sequences."""

import torch

from tests.ops.case import FULL, case, t

I64 = torch.int64
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def ints(*values):
    return t(values=list(values), dtype=I64)


def small(*sizes):
    bound = 1.6 / sizes[-1] ** 0.5  # so that products neither vanish nor grow from step to step
    return t(*sizes, low=-bound, high=bound)


def weights(kind, inputs, hidden, layers=1, directions=1, biases=True, proj=0):
    """The flat list of parameters."""
    rows, state, out = GATES[kind] * hidden, proj or hidden, []
    for layer in range(layers):
        for _ in range(directions):
            out += [small(rows, inputs if layer == 0 else state * directions), small(rows, state)]
            out += [small(rows), small(rows)] if biases else []
            out += [small(state, hidden)] if proj else []
    return out


def layer(kind, steps=4, batch=3, inputs=5, hidden=6, layers=1, bidirectional=False, biases=True, proj=0, batch_first=False,
          packed=None, dropout=0.0, train=False, **kwargs):
    directions = 2 if bidirectional else 1
    first = [small(layers * directions, batch, proj or hidden)]
    if kind == "lstm":
        first.append(small(layers * directions, batch, hidden))
    states = first if kind == "lstm" else first[0]
    rest = [states, weights(kind, inputs, hidden, layers, directions, biases, proj), biases, layers, dropout, train, bidirectional]
    kwargs.setdefault("dtypes", FULL)
    if packed:
        kwargs["strided"] = False  # PyTorch reads batch_sizes as if they were contiguous
        return case(f"aten::{kind}.data", t(sum(packed), inputs), ints(*packed), *rest, **kwargs)
    sizes = (batch, steps, inputs) if batch_first else (steps, batch, inputs)
    return case(f"aten::{kind}.input", t(*sizes), *rest, batch_first, **kwargs)


def cell(kind, batch=3, inputs=5, hidden=6, biases=True, **kwargs):
    rows = GATES[kind] * hidden
    states = [small(batch, hidden), small(batch, hidden)] if kind == "lstm" else small(batch, hidden)
    parameters = [small(rows, inputs), small(rows, hidden)] + ([small(rows), small(rows)] if biases else [])
    kwargs.setdefault("dtypes", FULL)
    return case(f"aten::{kind}_cell", t(batch, inputs), states, *parameters, **kwargs)


CASES = []
for kind in GATES:
    CASES += [
        layer(kind),
        layer(kind, biases=False),
        layer(kind, batch_first=True),
        layer(kind, layers=3, hidden=17),
        layer(kind, bidirectional=True, batch_first=True),
        layer(kind, layers=2, bidirectional=True, hidden=20, steps=7),
        layer(kind, batch=1, hidden=33, inputs=1, steps=2),
        layer(kind, batch=0),
        layer(kind, steps=1, batch=13),
        layer(kind, hidden=128, steps=3, batch=1, inputs=40),  # enough work for two threads
        layer(kind, layers=2, hidden=64, steps=9, batch=12, inputs=40),
        layer(kind, train=True),
        layer(kind, layers=2, train=True, dropout=0.5, batch_first=True, check="shape"),
        layer(kind, packed=[3, 3, 2, 1]),
        layer(kind, packed=[3, 2, 2, 1], layers=2, bidirectional=True),
        layer(kind, packed=[3, 1], biases=False, bidirectional=True, hidden=40),
        layer(kind, packed=[9, 9, 7, 4, 1], batch=9, layers=2, bidirectional=True, hidden=70),
        cell(kind),
        cell(kind, biases=False),
        cell(kind, batch=1, hidden=40, inputs=17),
        cell(kind, batch=9, hidden=33),
        cell(kind, batch=0),
    ]
CASES += [
    layer("lstm", proj=4),
    layer("lstm", proj=4, biases=False, batch_first=True),
    layer("lstm", proj=5, layers=2, bidirectional=True, hidden=40),
    layer("lstm", proj=5, packed=[3, 3, 1], layers=2, bidirectional=True),
    layer("lstm", proj=48, hidden=128, steps=3, batch=1),
    case("aten::lstm.input", t(3, 2, 5), [small(1, 2, 6)], weights("lstm", 5, 6), True, 1, 0.0, False, False, False,
         error="lstm expects two hidden states"),
    case("aten::lstm.input", t(3, 2, 5), [small(1, 2, 6), small(1, 2, 6)], weights("lstm", 5, 6)[:3], True, 1, 0.0, False,
         False, False, error="got an incorrect number of RNN parameters"),
    case("aten::gru.input", t(0, 2, 5), small(1, 2, 6), weights("gru", 5, 6), True, 1, 0.0, False, False, False,
         error="Expected sequence length to be larger than 0 in RNN"),
    case("aten::lstm_cell", t(2, 5), [small(2, 6)], small(24, 5), small(24, 6), error="lstm_cell expects two hidden states"),
    case("aten::gru_cell", t(2, 5), small(3, 6), small(18, 5), small(18, 6), error="Input batch size 2 doesn't match hidden0 batch size 3"),
    case("aten::gru_cell", t(2, 5), small(2, 6), small(18, 4), small(18, 6), error="input has inconsistent input_size: got 5 expected 4"),
    case("aten::_pack_padded_sequence", t(4, 3, 2), ints(4, 2, 1), False, dtypes=FULL),
    case("aten::_pack_padded_sequence", t(3, 4, 2), ints(3, 3, 1), True),
    case("aten::_pack_padded_sequence", t(4, 3, dtype=I64), ints(3, 3, 1), False),
    case("aten::_pack_padded_sequence", t(4, 2, 2, 3), ints(4, 2), False),
    case("aten::_pack_padded_sequence", t(4, 3, 2), ints(4, 2, 3), False, error="must be sorted in decreasing order"),
    case("aten::_pack_padded_sequence", t(4, 3, 2), ints(4, 2, 0), False, error="Length of all samples has to be greater than 0"),
    case("aten::_pack_padded_sequence", t(4, 3, 2), ints(4, 2), False, error="Expected `len(lengths)` to be equal to batch_size"),
    case("aten::_pack_padded_sequence", t(4, 0, 2), ints(), False, error="Cannot pack empty tensors."),
    case("aten::_pad_packed_sequence", t(6, 2), ints(3, 2, 1), False, 0.0, 0, dtypes=FULL),
    case("aten::_pad_packed_sequence", t(6, 2), ints(3, 2, 1), True, -1.5, 5),
    case("aten::_pad_packed_sequence", t(6, dtype=I64), ints(3, 2, 1), True, 7, -1),
    case("aten::_pad_packed_sequence", t(6, 2, 3), ints(2, 2, 2), False, 1, 3),
    case("aten::_pad_packed_sequence", t(6, 2), ints(3, 2, 1), True, 0.0, 2, error="Expected total_length to be at least"),
]
