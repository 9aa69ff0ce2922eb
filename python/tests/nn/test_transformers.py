"""Attention and transformers, compared with torch.nn's."""

import pickle

import pytest
import torch

from module_comparison import compare, make
from support import from_torch, same, to_torch
from tensord import engine
from tensord.engine import nn
from tensord.engine.nn import functional as F

N, L, S, E = 2, 4, 5, 6

ATTENTION = [
    ((E, 2), {}), ((E, 3), {"dropout": 0.5}), ((E, 1), {"bias": False}), ((E, 2), {"batch_first": True}), ((E, 2), {"kdim": 3, "vdim": 4}),
    ((E, 2), {"vdim": 4, "bias": False}),
    ((E, 2), {"add_bias_kv": True}), ((E, 2), {"add_zero_attn": True}), ((E, 3), {"add_bias_kv": True, "add_zero_attn": True, "kdim": 3, "dropout": 0.3}),
]


def padding(rows=N, keys=S):
    """A padding mask without fully padded rows."""
    return torch.arange(keys)[None, :] > torch.arange(rows)[:, None] + 1


def random_mask(*shape):
    mask = torch.rand(shape) < 0.4
    mask[..., 0] = False
    return mask


def additive(mask):
    return torch.zeros(mask.shape).masked_fill(mask, -torch.inf)


MASKS = {
    "none": lambda heads: {}, "padding": lambda heads: {"key_padding_mask": padding()}, "steps": lambda heads: {"attn_mask": random_mask(L, S)},
    "heads": lambda heads: {"attn_mask": random_mask(N * heads, L, S)}, "numbers": lambda heads: {"attn_mask": torch.randn(N * heads, L, S)},
    "both": lambda heads: {"attn_mask": random_mask(L, S), "key_padding_mask": padding()},
    "numbers and padding": lambda heads: {"attn_mask": torch.randn(L, S), "key_padding_mask": padding()},
}


def call_with_masks(theirs, mine, **masks):
    """A call with masks of the module that is given."""
    own_masks = {name: from_torch(mask) if isinstance(mask, torch.Tensor) else mask for name, mask in masks.items()}
    return lambda module, *inputs: module(*inputs, **(masks if module is theirs else own_masks))


@pytest.mark.parametrize("weights", [{}, {"need_weights": False}, {"average_attn_weights": False}], ids=str)
@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("arguments,options", ATTENTION, ids=str)
def test_attention(arguments, options, masks, weights):
    theirs, mine = make("MultiheadAttention", *arguments, **options)
    shapes = [(L, N, E), (S, N, options.get("kdim", E)), (S, N, options.get("vdim", E))]
    inputs = [torch.randn((shape[1], shape[0], shape[2]) if theirs.batch_first else shape, requires_grad=True) for shape in shapes]
    compare(theirs, mine, inputs, call_with_masks(theirs, mine, **MASKS[masks](arguments[1]), **weights))


@pytest.mark.parametrize("form", ["self", "memory", "no batch", "no batch with masks"])
@pytest.mark.parametrize("arguments,options", [
    ((E, 2), {}), ((E, 2), {"batch_first": True, "bias": False}), ((E, 3), {"add_zero_attn": True, "add_bias_kv": True})], ids=str)
def test_same_tensors(arguments, options, form):
    """One tensor as query, key and value, or as key and value; unbatched sequences."""
    theirs, mine = make("MultiheadAttention", *arguments, **options)
    shape = (L, E) if "no batch" in form else (L, N, E)
    inputs = [torch.randn(shape, requires_grad=True) for _ in range(2 if form == "memory" else 1)]
    masks = {"attn_mask": random_mask(theirs.num_heads, L, L), "key_padding_mask": padding(1, L)[0]} if "masks" in form else {}
    run = call_with_masks(theirs, mine, **masks)
    compare(theirs, mine, inputs, lambda module, *inputs: run(module, inputs[0], inputs[-1], inputs[-1]))


def test_padding_in_numbers():
    """Padding masks may be additive floats, also together with bool masks."""
    _, mine = make("MultiheadAttention", E, 2)
    x, mask = engine.randn(S, N, E), from_torch(random_mask(S, S))
    want = mine(x, x, x, from_torch(padding()), attn_mask=mask)
    for pads, steps in ((additive(padding()), to_torch(mask)), (padding(), additive(to_torch(mask))), (additive(padding()), additive(to_torch(mask)))):
        got = mine(x, x, x, from_torch(pads), attn_mask=from_torch(steps))
        same(got[0], to_torch(want[0])), same(got[1], to_torch(want[1]))


@pytest.mark.parametrize("options", [{}, {"add_zero_attn": True}], ids=str)
@pytest.mark.parametrize("need_weights", [False, True])
def test_causal(options, need_weights):
    """The hint does not change results."""
    mine = nn.MultiheadAttention(E, 2, **options)
    x, mask, pads = engine.randn(S, N, E), nn.Transformer.generate_square_subsequent_mask(S), from_torch(padding())
    for key_padding_mask in (None, pads):
        want = mine(x, x, x, key_padding_mask, need_weights, mask)[0]
        same(mine(x, x, x, key_padding_mask, need_weights, mask, is_causal=True)[0], to_torch(want))
    with pytest.raises(RuntimeError, match="Need attn_mask"):
        mine(x, x, x, is_causal=True)
    layer = nn.TransformerEncoderLayer(E, 2, 8).eval()
    same(nn.TransformerEncoder(layer, 2)(x, mask, is_causal=True), to_torch(nn.TransformerEncoder(layer, 2)(x, mask)))
    net = nn.Transformer(E, 2, 1, 1, 8).eval()
    want = net(x, x, mask, mask)
    same(net(x, x, mask, mask, src_is_causal=True, tgt_is_causal=True), to_torch(want))


def test_static_keys():
    """Keys and values may be passed precomputed."""
    torch.manual_seed(0)
    theirs, mine = make("MultiheadAttention", E, 2)
    x, keys, values = torch.randn(L, N, E), torch.randn(N * 2, 7, 3), torch.randn(N * 2, 7, 3)

    def run(f, module, x, keys, values):
        return f(x, x, x, E, 2, module.in_proj_weight, module.in_proj_bias, None, None, False, 0.0, module.out_proj.weight,
                 module.out_proj.bias, static_k=keys, static_v=values)

    want = run(torch.nn.functional.multi_head_attention_forward, theirs, x, keys, values)
    got = run(F.multi_head_attention_forward, mine, *map(from_torch, (x, keys, values)))
    same(got[0], want[0], rtol=1e-4, atol=1e-5), same(got[1], want[1])


LAYERS = [((E, 2, 8), {}), ((E, 3, 8, 0.5, "gelu"), {}), ((E, 2, 8), {"norm_first": True, "batch_first": True}), ((E, 1, 8, 0.0), {"layer_norm_eps": 0.1}),
          ((E, 2, 8), {"norm_first": True, "dropout": 0.3})]


@pytest.mark.parametrize("form", ["plain", "masks", "no batch"])
@pytest.mark.parametrize("arguments,options", LAYERS, ids=str)
def test_encoder_layer(arguments, options, form):
    theirs, mine = make("TransformerEncoderLayer", *arguments, **options)
    shape = (S, E) if form == "no batch" else (N, S, E) if options.get("batch_first") else (S, N, E)
    masks = {"src_mask": random_mask(S, S), "src_key_padding_mask": padding()} if form == "masks" else {}
    compare(theirs, mine, [torch.randn(shape, requires_grad=True)], call_with_masks(theirs, mine, **masks))


@pytest.mark.parametrize("form", ["plain", "masks", "no batch"])
@pytest.mark.parametrize("arguments,options", LAYERS, ids=str)
def test_decoder_layer(arguments, options, form):
    theirs, mine = make("TransformerDecoderLayer", *arguments, **options)
    shapes = [(steps, E) if form == "no batch" else (N, steps, E) if options.get("batch_first") else (steps, N, E) for steps in (L, S)]
    masks = {"tgt_mask": random_mask(L, L), "memory_mask": random_mask(L, S), "tgt_key_padding_mask": padding(N, L), "memory_key_padding_mask": padding()}
    compare(theirs, mine, [torch.randn(shape, requires_grad=True) for shape in shapes], call_with_masks(theirs, mine, **(masks if form == "masks" else {})))


@pytest.mark.parametrize("masks", [False, True])
@pytest.mark.parametrize("options", [{}, {"batch_first": True, "norm_first": True, "activation": "gelu"}], ids=str)
def test_transformer(options, masks):
    theirs, mine = make("Transformer", E, 2, 2, 1, 8, **options)
    given = {"src_mask": random_mask(S, S), "tgt_mask": torch.nn.Transformer.generate_square_subsequent_mask(L), "memory_mask": random_mask(L, S),
             "src_key_padding_mask": padding(),
             "tgt_key_padding_mask": padding(N, L), "memory_key_padding_mask": padding()} if masks else {}
    shapes = [(N, steps, E) if options else (steps, N, E) for steps in (S, L)]
    compare(theirs, mine, [torch.randn(shape, requires_grad=True) for shape in shapes], call_with_masks(theirs, mine, **given))


def test_stacks():
    """Copies start with the layer's values and are trained independently."""
    torch.manual_seed(3), engine.manual_seed(3)
    stacks = []
    for library in (torch.nn, nn):
        stacks.append(library.TransformerEncoder(library.TransformerEncoderLayer(E, 2, 8, activation=library.Tanh()), 3, library.LayerNorm(E)))
    theirs, mine = stacks
    assert list(mine.state_dict()) == list(theirs.state_dict()) and repr(mine) == repr(theirs)
    assert (mine.layers[0].linear1.weight == mine.layers[2].linear1.weight).all() and len(list(mine.parameters())) == 3 * 12 + 2
    compare(theirs, mine, [torch.randn(S, N, E, requires_grad=True)], call_with_masks(theirs, mine, src_key_padding_mask=padding()))
    assert not (mine.layers[0].linear1.weight.grad == mine.layers[2].linear1.weight.grad).all()
    same(nn.Transformer.generate_square_subsequent_mask(4), torch.nn.Transformer.generate_square_subsequent_mask(4))
    assert nn.Transformer.generate_square_subsequent_mask(2, dtype=engine.float64).dtype is engine.float64


def test_own_parts():
    """Custom layers and stacks get no hints unless the caller passes them."""

    class Layer(nn.Module):
        def forward(self, src, src_mask=None, src_key_padding_mask=None):
            return src * 2

    class Decoder(nn.Module):
        def forward(self, tgt, memory, **masks):
            assert set(masks) == {"tgt_mask", "memory_mask", "tgt_key_padding_mask", "memory_key_padding_mask"}
            return tgt + memory

    x = engine.ones(3, 1, E)
    net = nn.Transformer(E, 2, custom_encoder=nn.TransformerEncoder(Layer(), 2), custom_decoder=Decoder())
    assert (net(x, x) == 5).all()


def test_training():
    """The same losses as PyTorch's, with dropout."""
    theirs, mine = make("Transformer", 8, 2, 1, 1, 16)
    optimizers = torch.optim.Adam(theirs.parameters(), lr=0.01), engine.optim.Adam(mine.parameters(), lr=0.01)
    source, target = torch.randn(5, 3, 8), torch.randn(4, 3, 8)
    torch.manual_seed(4), engine.manual_seed(4)
    losses = []
    for _ in range(10):
        for module, optimizer, make_own in ((theirs, optimizers[0], lambda x: x), (mine, optimizers[1], from_torch)):
            optimizer.zero_grad()
            loss = ((module(make_own(source), make_own(target)) - make_own(target)) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses[1::2] == pytest.approx(losses[::2], rel=1e-3) and losses[-1] < losses[1]


x = engine.ones(L, N, E)
attention, layer = nn.MultiheadAttention(E, 2), nn.TransformerEncoderLayer(E, 2, 8)
WRONG = [
    (lambda: nn.MultiheadAttention(E, 4), ValueError, "divisible by num_heads"), (lambda: nn.MultiheadAttention(E, 0), ValueError, "greater than 0"),
    (lambda: attention(x[None], x, x), ValueError, "unbatched 2D or batched 3D tensor"),
    (lambda: attention(x, x[0], x), ValueError, "expected key and value to be 3-D"),
    (lambda: attention(x, x, x, engine.ones(L, dtype=engine.bool)), ValueError, "expected key_padding_mask to be 2-D but found 1-D"),
    (lambda: attention(x, x, x, engine.ones(N, L + 1, dtype=engine.bool)), ValueError, r"expecting key_padding_mask shape of \(2, 4\), but got \(2, 5\)"),
    (lambda: attention(x, x, x, engine.ones(N, L, dtype=engine.int64)), ValueError, "bool and floating types of key_padding_mask"),
    (lambda: attention(x, x, x, attn_mask=engine.ones(L, L, dtype=engine.uint8)), ValueError, "bool and floating types of attn_mask"),
    (lambda: attention(x, x, x, attn_mask=engine.ones(L, L + 1)), RuntimeError, r"2D attn_mask is \(4, 5\), but should be \(4, 4\)"),
    (lambda: attention(x, x, x, attn_mask=engine.ones(3, L, L)), RuntimeError, r"3D attn_mask is \(3, 4, 4\), but should be \(4, 4, 4\)"),
    (lambda: attention(x, x, x, attn_mask=engine.ones(L)), RuntimeError, "dimension 1 is not supported"),
    (lambda: attention(x, x, x[1:]), ValueError, "does not match value shape"),
    (lambda: attention(x, x[:, :1], x[:, :1]), ValueError, "does not match"),
    (lambda: attention(x[..., :4], x, x), ValueError, "expecting embedding dimension of 6, but got 4"),
    (lambda: nn.TransformerEncoderLayer(E, 2, activation="tanh"), RuntimeError, "activation should be relu/gelu, not tanh"),
    (lambda: layer(x, is_causal=True), RuntimeError, "Need attn_mask"),
    (lambda: nn.Transformer(E, 2, 1, 1, 8)(x, x[:, :1]), RuntimeError, "batch number of src and tgt"),
    (lambda: nn.Transformer(E, 2, 1, 1, 8)(x, x[..., 1:]), RuntimeError, "feature number of src and tgt"),
]


@pytest.mark.parametrize("call,kind,message", WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_wrong(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


FORWARD = [
    ({"bias_k": engine.ones(1, 1, E)}, ValueError, "bias_k and bias_v go together"),
    ({"bias_k": engine.ones(1, 1, E), "bias_v": engine.ones(1, 1, E), "static_k": engine.ones(4, 3, 3)}, ValueError, "cannot be added to static_k"),
    ({"static_k": engine.ones(4, 3, 2)}, ValueError, r"static_k of shape \(4, keys, 3\), but got \(4, 3, 2\)"),
    ({"static_v": engine.ones(3, 3, 3)}, ValueError, r"static_v of shape \(4, keys, 3\)"), ({"num_heads": 4}, ValueError, "6 not divisible by num_heads 4"),
    ({"use_separate_proj_weight": True, "q_proj_weight": engine.ones(E, E)}, ValueError, "needs q_proj_weight, k_proj_weight"),
    ({"in_proj_weight": None}, ValueError, "in_proj_weight is needed"),
]


@pytest.mark.parametrize("options,kind,message", FORWARD, ids=lambda value: value if isinstance(value, str) else "")
def test_wrong_forward(options, kind, message):
    given = {"num_heads": 2, "in_proj_weight": attention.in_proj_weight, "in_proj_bias": attention.in_proj_bias, "bias_k": None, "bias_v": None,
             "add_zero_attn": False,
             "dropout_p": 0.0, "out_proj_weight": attention.out_proj.weight, "out_proj_bias": attention.out_proj.bias, "embed_dim_to_check": E}
    with pytest.raises(kind, match=message):
        F.multi_head_attention_forward(x, x, x, **{**given, **options})


@pytest.mark.parametrize("make_own,inputs", [
    (lambda: nn.Transformer(E, 2, 1, 1, 8), (x, x)), (lambda: nn.MultiheadAttention(E, 2), (x, x, x)), (lambda: nn.LSTM(E, 3, 2), (x,)),
    (lambda: nn.GRUCell(E, 3), (x[0],)),
    (lambda: nn.EmbeddingBag(5, 2), (engine.tensor([[1, 2]]),)),
], ids=["Transformer", "MultiheadAttention", "LSTM", "GRUCell", "EmbeddingBag"])
def test_copies(make_own, inputs):
    """Pickled and traced modules give the same results."""
    module = make_own().eval()

    def first(result):
        return first(result[0]) if isinstance(result, (tuple, list)) else result

    want = to_torch(first(module(*inputs)))
    same(first(pickle.loads(pickle.dumps(module))(*inputs)), want)
    same(first(engine.jit.trace(module, inputs)(*inputs)), want)


def test_double():
    theirs, mine = make("Transformer", E, 2, 1, 1, 8)
    theirs.double(), mine.double()
    compare(theirs, mine, [torch.randn(S, N, E, dtype=torch.float64, requires_grad=True) for _ in range(2)])


def test_queries_that_may_look_nowhere():
    """As in newer PyTorch: zeros before the last layer, NaN if weights are needed."""
    mask = engine.zeros(L, L, dtype=engine.bool)
    mask[1] = True
    same(attention(x, x, x, attn_mask=mask, need_weights=False)[0][1, 0], to_torch(attention.out_proj.bias))
    output, weights = attention(x, x, x, attn_mask=mask)
    assert output[1].isnan().all() and weights[:, 1].isnan().all() and not output[0].isnan().any()
