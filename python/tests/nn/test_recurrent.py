"""Recurrent layers and cells, packed sequences, compared with torch.nn's."""

import copy
import pickle

import pytest
import torch

from module_comparison import compare, make
from support import from_torch, same, to_torch
from tensord import engine
from tensord.engine import nn
from tensord.engine.nn.utils import rnn

LAYERS = [
    ("RNN", (3, 4), {}), ("RNN", (3, 4, 2), {"nonlinearity": "relu", "bidirectional": True}), ("RNN", (3, 4, 1, False), {}),
    ("LSTM", (3, 4), {}), ("LSTM", (3, 4, 2), {"bidirectional": True}), ("LSTM", (3, 4, 2, False, True), {}), ("LSTM", (3, 4, 2), {"dropout": 0.5}),
    ("LSTM", (3, 4, 2), {"proj_size": 2, "bidirectional": True}), ("LSTM", (3, 4, 2), {"proj_size": 1, "bias": False, "dropout": 0.3}),
    ("GRU", (3, 4), {}), ("GRU", (3, 4, 3), {"bidirectional": True, "dropout": 0.2}), ("GRU", (3, 4, 1, False), {"batch_first": True}),
]


def states(module, batch):
    """Initial states; batch is None for unbatched input."""
    count = module.num_layers * (2 if module.bidirectional else 1)
    shape = (count,) if batch is None else (count, batch)
    hidden = torch.randn(*shape, module.proj_size or module.hidden_size, requires_grad=True)
    return (hidden, torch.randn(*shape, module.hidden_size, requires_grad=True)) if module.mode == "LSTM" else hidden


@pytest.mark.parametrize("form", ["alone", "with states", "no batch", "no batch with states"])
@pytest.mark.parametrize("name,arguments,options", LAYERS, ids=str)
def test_layers(name, arguments, options, form):
    theirs, mine = make(name, *arguments, **options)
    x = torch.randn((5, 3) if "no batch" in form else (2, 5, 3), requires_grad=True)
    batch = None if "no batch" in form else x.shape[0 if theirs.batch_first else 1]
    compare(theirs, mine, [x, states(theirs, batch)] if "states" in form else [x])


def packed(module, utils, x, lengths, hx=None, is_sorted=False, total=None):
    sequence = utils.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=is_sorted)
    y, hx = module(sequence) if hx is None else module(sequence, hx)
    assert type(y) is utils.PackedSequence
    return utils.pad_packed_sequence(y, total_length=total, padding_value=-1.0), hx


@pytest.mark.parametrize("lengths,options", [([5, 3, 1], {"is_sorted": True}), ([2, 5, 4], {}), ([1, 3, 2], {"total": 7}), ([4, 4, 4], {})], ids=str)
@pytest.mark.parametrize("has_states", [False, True])
@pytest.mark.parametrize("name,arguments,layer", LAYERS, ids=str)
def test_packed(name, arguments, layer, has_states, lengths, options):
    theirs, mine = make(name, *arguments, **layer)
    x = torch.randn(3, 5, 3, requires_grad=True)
    hx = [states(theirs, 3)] if has_states else []

    def run(module, x, *hx):
        utils = torch.nn.utils.rnn if module is theirs else rnn
        return packed(module, utils, x, lengths, *hx, **options)

    compare(theirs, mine, [x, *hx], run)


CELLS = [("RNNCell", (3, 4)), ("RNNCell", (3, 4, False, "relu")), ("LSTMCell", (3, 4)), ("LSTMCell", (3, 4, False)),
         ("GRUCell", (3, 4)), ("GRUCell", (3, 4, False))]


@pytest.mark.parametrize("form", ["alone", "with states", "no batch", "no batch with states"])
@pytest.mark.parametrize("name,arguments", CELLS, ids=str)
def test_cells(name, arguments, form):
    theirs, mine = make(name, *arguments)
    shape = () if "no batch" in form else (5,)
    inputs = [torch.randn(*shape, 3, requires_grad=True)]
    if "states" in form:
        hx = tuple(torch.randn(*shape, 4, requires_grad=True) for _ in range(2 if name == "LSTMCell" else 1))
        inputs.append(hx if len(hx) == 2 else hx[0])
    compare(theirs, mine, inputs)


def test_types():
    theirs, mine = make("LSTM", 3, 4, 2, bidirectional=True)
    theirs.double(), mine.double()
    compare(theirs, mine, [torch.randn(5, 2, 3, dtype=torch.float64, requires_grad=True)])
    for weights, want in zip(mine.all_weights, theirs.all_weights, strict=True):
        assert [tuple(weight.shape) for weight in weights] == [tuple(weight.shape) for weight in want]
    other = copy.deepcopy(mine)
    x = engine.randn(4, 2, 3, dtype=engine.float64)
    assert (other(x)[0] == mine(x)[0]).all()
    with engine.no_grad():
        other.weight_hh_l0.zero_()
    assert not (other(x)[0] == mine(x)[0]).all()
    other.load_state_dict(mine.state_dict())
    assert (other(x)[0] == mine(x)[0]).all()
    mine.flatten_parameters()


def test_no_steps_of_a_sequence_go_into_another():
    """The result of a packed batch equals that of each sequence alone."""
    net = nn.GRU(2, 3, bidirectional=True)
    parts = [engine.randn(length, 2) for length in (3, 5, 1)]
    y, h = net(rnn.pack_sequence(parts, enforce_sorted=False))
    for i, (part, got) in enumerate(zip(parts, rnn.unpack_sequence(y))):
        want, state = net(part)
        same(got, to_torch(want)), same(h[:, i], to_torch(state))


def test_packing():
    parts = [torch.randn(length, 2) for length in (4, 2, 2, 1)]
    own_parts = [from_torch(part) for part in parts]
    for order in ([0, 1, 2, 3], [2, 0, 3, 1]):
        is_sorted = order[0] == 0
        want = torch.nn.utils.rnn.pack_sequence([parts[i] for i in order], enforce_sorted=is_sorted)
        got = rnn.pack_sequence([own_parts[i] for i in order], enforce_sorted=is_sorted)
        same(got.data, want.data), same(got.batch_sizes, want.batch_sizes)
        assert (got.sorted_indices is None) == (want.sorted_indices is None)
        if not is_sorted:
            assert (got.sorted_indices.argsort() == got.unsorted_indices).all()
        for y, x in zip(rnn.unpack_sequence(got), [parts[i] for i in order]):
            same(y, x)
    for batch_first in (False, True):
        want = torch.nn.utils.rnn.pad_sequence(parts, batch_first, 7.0)
        got = rnn.pad_sequence(own_parts, batch_first, 7.0)
        same(got, want)
        for lengths in (engine.tensor([4, 2, 2, 1]), [4, 2, 2, 1]):
            for y, x in zip(rnn.unpad_sequence(got, lengths, batch_first), parts):
                same(y, x)
    assert rnn.pad_sequence(engine.ones(2, 3)).shape == (3, 2)
    again = pickle.loads(pickle.dumps(got := rnn.pack_sequence(own_parts[::-1], enforce_sorted=False)))
    assert type(again) is rnn.PackedSequence and (again.data == got.data).all() and (again.unsorted_indices == got.unsorted_indices).all()
    assert got.double().data.dtype is engine.float64 and got.float() is got and got.to(engine.float16).data.dtype is engine.float16
    assert type(got.long()) is rnn.PackedSequence and not got.is_cuda
    assert rnn.PackedSequence((got.data, got.batch_sizes)).sorted_indices is None
    same(rnn.invert_permutation(engine.tensor([2, 0, 1])), torch.nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1])))


x = engine.ones(5, 2, 3)
WRONG = [
    (lambda: nn.LSTM(3, 4, dropout=2.0), ValueError, "dropout should be a number"),
    (lambda: nn.LSTM(3, 4, proj_size=4), ValueError, "proj_size has to be smaller"),
    (lambda: nn.LSTM(3, 4, proj_size=-1), ValueError, "proj_size should be a positive"),
    (lambda: nn.GRU(3, 4, proj_size=2), ValueError, "only supported for LSTM"),
    (lambda: nn.RNN(3, 4, proj_size=2), ValueError, "only supported for LSTM"),
    (lambda: nn.RNN(3, 4, nonlinearity="sin"), ValueError, "Unknown nonlinearity 'sin'"),
    (lambda: nn.RNNBase("SRU", 3, 4), ValueError, "Unrecognized RNN mode: SRU"), (lambda: nn.GRU(3, 0), ValueError, "must be positive"),
    (lambda: nn.LSTM(3, 4)(x, x), ValueError, "hx must be a tuple"), (lambda: nn.LSTM(2, 4)(x), RuntimeError, "Expected 2, got 3"),
    (lambda: nn.GRU(3, 4)(x, engine.ones(1, 5, 4)), RuntimeError, r"Expected hidden size \(1, 2, 4\), got \[1, 5, 4\]"),
    (lambda: nn.LSTM(3, 4)(x, (engine.ones(1, 2, 4), engine.ones(2, 2, 4))), RuntimeError, r"Expected hidden\[1\] size"),
    (lambda: nn.GRU(3, 4)(x, engine.ones(1, 4)), RuntimeError, "hx should be 3-D but got 2-D"),
    (lambda: nn.GRU(3, 4)(x[0], engine.ones(1, 2, 4)), RuntimeError, "hx should be 2-D but got 3-D"),
    (lambda: nn.GRU(3, 4)(x[0, 0]), ValueError, "Expected input to be 2D or 3D, got 1D"), (lambda: nn.GRUCell(3, 4)(x), ValueError, "1D or 2D, got 3D"),
    (lambda: nn.GRUCell(3, 4)(x[0], engine.ones(4)), ValueError, "Expected hx to be 2D"),
    (lambda: nn.LSTMCell(3, 4)(x[0], x[0]), ValueError, "hx must be a tuple"),
    (lambda: nn.GRUCell(3, 4)(x[0], engine.ones(5, 4)), RuntimeError, ""),
    (lambda: nn.RNNCell(3, 4, True, "sin")(x[0]), RuntimeError, "Unknown nonlinearity: sin"),
    (lambda: rnn.pack_padded_sequence(x, [1, 2]), RuntimeError, "enforce_sorted=False"),
    (lambda: rnn.pack_padded_sequence(x, [2, 0]), RuntimeError, "greater than 0"),
    (lambda: rnn.pack_padded_sequence(x, [2]), RuntimeError, "batch_size"), (lambda: rnn.pack_padded_sequence(x, [6, 1]), RuntimeError, "a length of 6"),
    (lambda: rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [5, 1]), total_length=4), ValueError, "total_length=4"),
    (lambda: rnn.pad_sequence(3), RuntimeError, "iterable"),
    (lambda: nn.GRU(3, 4)(rnn.pack_padded_sequence(engine.ones(5, 2, 3, 1), [5, 1])), ValueError, "expected packed elements to be 1D"),
    (lambda: rnn.PackedSequence(x), ValueError, "expected data and batch_sizes"),
]


@pytest.mark.parametrize("call,kind,message", WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_wrong(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_dropout_of_one_layer_is_told():
    with pytest.warns(UserWarning, match="num_layers greater than 1"):
        nn.LSTM(3, 4, dropout=0.5)
