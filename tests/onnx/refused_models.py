"""Models that fail for every request, each in one node that make_runtime_cases.py names "bad": rows of a name, the
node, the shapes and types of the inputs, and the weights. ONNX Runtime refuses all of them when they are loaded or run."""
import numpy as np
from onnx import helper, numpy_helper

# These fail because of their first size, even if a request chooses it.
OF_THE_REQUEST = ("Attention_mask", "MaxUnpool")
MICROSOFT = {"domain": "com.microsoft"}
make_node = helper.make_node
IMAGE = (2, 4, 8, 8)


def f(*shape):
    return np.full(shape, 0.5, np.float32)


def i(*values):
    return np.array(values, np.int64)


def u8(*shape):
    return np.full(shape, 7, np.uint8)


def windows():
    w = f(4, 4, 3, 3)
    quantized = {"w": u8(4, 4, 3, 3), "s": np.float32(0.1), "z": np.uint8(3)}
    for name, attributes in {
        "group_0": {"group": 0}, "group_3": {"group": 3}, "strides_0": {"strides": [0, 1]}, "strides_1": {"strides": [2]},
        "dilations_0": {"dilations": [1, 0]}, "dilations_1": {"dilations": [1]}, "pads_3": {"pads": [1, 1, 1]},
        "auto_and_pads": {"auto_pad": "SAME_UPPER", "pads": [1, 1, 1, 1]}, "kernel": {"kernel_shape": [2, 2]},
    }.items():
        yield f"Conv_{name}", make_node("Conv", ["x", "w"], ["y"], **attributes), {"x": f(*IMAGE)}, {"w": w}
        yield f"ConvTranspose_{name}", make_node("ConvTranspose", ["x", "w"], ["y"], **attributes), {"x": f(*IMAGE)}, {"w": w}
        yield (f"ConvInteger_{name}", make_node("ConvInteger", ["x", "w"], ["y"], **attributes), {"x": u8(*IMAGE)},
               {"w": quantized["w"]})
        yield (f"QLinearConv_{name}", make_node("QLinearConv", ["x", "s", "z", "w", "s", "z", "s", "z"], ["y"], **attributes),
               {"x": u8(*IMAGE)}, quantized)
        yield (f"FusedConv_{name}", make_node("FusedConv", ["x", "w"], ["y"], activation="Relu", **attributes, **MICROSOFT),
               {"x": f(*IMAGE)}, {"w": w})
    yield "Conv_channels", make_node("Conv", ["x", "w"], ["y"]), {"x": f(2, 3, 8, 8)}, {"w": w}
    yield "Conv_bias", make_node("Conv", ["x", "w", "b"], ["y"]), {"x": f(*IMAGE)}, {"w": w, "b": f(5)}
    yield "Conv_rank", make_node("Conv", ["x", "w"], ["y"]), {"x": f(2, 4, 8)}, {"w": w}
    for name, attributes in {
        "output_padding": {"output_padding": [2, 2], "strides": [2, 2]}, "output_padding_1": {"output_padding": [1]},
        "output_padding_of_1": {"output_padding": [1, 1]}, "output_shape": {"output_shape": [20], "strides": [2, 2]},
        "output_shape_is_far": {"output_shape": [20, 20], "strides": [2, 2]},
    }.items():
        yield f"ConvTranspose_{name}", make_node("ConvTranspose", ["x", "w"], ["y"], **attributes), {"x": f(*IMAGE)}, {"w": w}
    for name, attributes in {
        "kernel_1": {"kernel_shape": [2]}, "kernel_3": {"kernel_shape": [2, 2, 2]}, "kernel_0": {"kernel_shape": [0, 2]},
        "strides_0": {"kernel_shape": [2, 2], "strides": [0, 1]}, "strides_1": {"kernel_shape": [2, 2], "strides": [1]},
        "pads_3": {"kernel_shape": [3, 3], "pads": [1, 1, 1]}, "pads": {"kernel_shape": [2, 2], "pads": [2, 2, 2, 2]},
        "pads_at_the_end": {"kernel_shape": [2, 2], "pads": [0, 0, 2, 0]},
        "pads_below_0": {"kernel_shape": [3, 3], "pads": [-1, 0, 0, 0]},
    }.items():
        for op in ("MaxPool", "AveragePool", "LpPool"):
            yield f"{op}_{name}", make_node(op, ["x"], ["y"], **attributes), {"x": f(*IMAGE)}, {}
        yield (f"QLinearAveragePool_{name}",
               make_node("QLinearAveragePool", ["x", "s", "z", "s", "z"], ["y"], **attributes, **MICROSOFT),
               {"x": u8(*IMAGE)}, {"s": np.float32(0.1), "z": np.uint8(3)})
    yield "MaxPool_dilations", make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], dilations=[2]), {"x": f(*IMAGE)}, {}
    yield "MaxPool_rank", make_node("MaxPool", ["x"], ["y"], kernel_shape=[2]), {"x": f(4, 4)}, {}
    yield "GlobalAveragePool", make_node("GlobalAveragePool", ["x"], ["y"]), {"x": f(2, 3)}, {}
    unpool = make_node("MaxUnpool", ["x", "i"], ["y"], kernel_shape=[2, 2])
    yield "MaxUnpool", unpool, {"x": f(1, 1, 2, 2)}, {"i": np.zeros((1, 1, 1, 3), np.int64)}


def axes():
    x = {"x": f(*IMAGE)}
    for axis in (4, -5):
        for op in ("Softmax", "LogSoftmax", "Hardmax", "ArgMax", "LpNormalization", "Unique"):
            yield f"{op}_{axis}", make_node(op, ["x"], ["y"], axis=axis), x, {}
        yield f"Concat_{axis}", make_node("Concat", ["x", "x"], ["y"], axis=axis), x, {}
        yield f"Gather_{axis}", make_node("Gather", ["x", "i"], ["y"], axis=axis), x, {"i": i(0)}
        yield f"GatherElements_{axis}", make_node("GatherElements", ["x", "x2"], ["y"], axis=axis), x, {
            "x2": np.zeros((1, 1, 1, 1), np.int64)}
        yield f"CumSum_{axis}", make_node("CumSum", ["x", "a"], ["y"]), x, {"a": np.int64(axis)}
        yield f"ReduceSum_{axis}", make_node("ReduceSum", ["x", "a"], ["y"]), x, {"a": i(axis)}
        yield f"ReduceMax_{axis}", make_node("ReduceMax", ["x"], ["y"], axes=[axis]), x, {}
        yield f"Split_{axis}", make_node("Split", ["x"], ["y", "z"], axis=axis), x, {}
        yield f"TopK_{axis}", make_node("TopK", ["x", "k"], ["y", "z"], axis=axis), x, {"k": i(2)}
        yield f"LayerNormalization_{axis}", make_node("LayerNormalization", ["x", "s"], ["y"], axis=axis), x, {"s": f(8)}
        yield f"Compress_{axis}", make_node("Compress", ["x", "c"], ["y"], axis=axis), x, {"c": np.array([True, False])}
        yield f"Slice_{axis}", make_node("Slice", ["x", "a", "b", "c"], ["y"]), x, {"a": i(0), "b": i(2), "c": i(axis)}
        yield f"Unsqueeze_{axis}", make_node("Unsqueeze", ["x", "a"], ["y"]), x, {"a": i(axis * 2)}


def shapes():
    x = {"x": f(*IMAGE)}
    for name, perm in {"repeat": [0, 1, 1, 2], "3": [0, 1, 2], "below_0": [0, 1, 2, -1], "4": [0, 1, 2, 4]}.items():
        yield f"Transpose_{name}", make_node("Transpose", ["x"], ["y"], perm=perm), x, {}
    for name, shape in {"two": i(-1, -1), "matrix": i(2, 256).reshape(1, 2)}.items():
        yield f"Reshape_{name}", make_node("Reshape", ["x", "s"], ["y"]), x, {"s": shape}
    for name, (begins, ends, along, steps) in {
        "step": ([0], [2], [1], [0]), "twice": ([0, 0], [2, 2], [1, -3], [1, 1]), "ends": ([0, 0], [2], [1], [1]),
        "axes": ([0], [2], [1, 2], [1]), "steps": ([0], [2], [1], [1, 1]),
    }.items():
        yield (f"Slice_{name}", make_node("Slice", ["x", "a", "b", "c", "d"], ["y"]), x,
               {"a": i(*begins), "b": i(*ends), "c": i(*along), "d": i(*steps)})
    for name, sizes in {"sum": [1, 2], "below_0": [-1, 5], "three": [1, 1, 2]}.items():
        yield f"Split_{name}", make_node("Split", ["x", "s"], ["y", "z"], axis=1), x, {"s": i(*sizes)}
    yield "Unsqueeze_twice", make_node("Unsqueeze", ["x", "a"], ["y"]), x, {"a": i(1, -5)}
    yield "Squeeze", make_node("Squeeze", ["x", "a"], ["y"]), x, {"a": i(1)}
    yield "Expand_below_0", make_node("Expand", ["x", "s"], ["y"]), x, {"s": i(1, 4, 8, -1)}
    yield "Expand", make_node("Expand", ["x", "s"], ["y"]), x, {"s": i(1, 3, 8, 8)}
    yield "Tile", make_node("Tile", ["x", "s"], ["y"]), x, {"s": i(1, 1)}
    yield "Tile_below_0", make_node("Tile", ["x", "s"], ["y"]), x, {"s": i(1, -1, 1, 1)}
    for k in (-1, 9):
        yield f"TopK_of_{k}", make_node("TopK", ["x", "k"], ["y", "z"]), x, {"k": i(k)}
    for depth in (-3, 0):
        yield (f"OneHot_{depth}", make_node("OneHot", ["x", "d", "v"], ["y"]), {"x": i(0, 1)},
               {"d": np.int64(depth), "v": f(2)})
    yield "OneHot_values", make_node("OneHot", ["x", "d", "v"], ["y"]), {"x": i(0, 1)}, {"d": np.int64(3), "v": f(3)}
    for size in (0, 3, -2):
        yield f"DepthToSpace_{size}", make_node("DepthToSpace", ["x"], ["y"], blocksize=size), x, {}
        yield f"SpaceToDepth_{size}", make_node("SpaceToDepth", ["x"], ["y"], blocksize=size), x, {}
    for name, pads in {"3": i(1, 1, 1), "6": i(*[1] * 6), "matrix": i(*[1] * 8).reshape(2, 4)}.items():
        yield f"Pad_{name}", make_node("Pad", ["x", "p"], ["y"]), x, {"p": pads}
    for name, pads in {"8": [0, 0, 8, 0, 0, 0, 0, 0], "after_a_cut": [0, 0, 0, -3, 0, 0, 0, 6]}.items():
        yield f"Pad_reflect_{name}", make_node("Pad", ["x", "p"], ["y"], mode="reflect"), x, {"p": i(*pads)}
    yield "Gather_index", make_node("Gather", ["x", "i"], ["y"], axis=1), x, {"i": i(4)}
    yield "GatherElements", make_node("GatherElements", ["x", "i"], ["y"], axis=1), x, {"i": np.zeros((1, 1), np.int64)}
    yield "GatherND", make_node("GatherND", ["x", "i"], ["y"]), x, {"i": np.zeros((1, 5), np.int64)}
    yield "ScatterND", make_node("ScatterND", ["x", "i", "u"], ["y"]), x, {"i": np.zeros((1, 5), np.int64), "u": f(1)}
    yield "Range", make_node("Range", ["a", "b", "c"], ["y"]), {}, {"a": np.int64(0), "b": np.int64(4), "c": np.int64(0)}
    yield "ConstantOfShape", make_node("ConstantOfShape", ["s"], ["y"]), {}, {"s": i(-1, 2)}
    for name, scales in {"below_0": [1, 1, -2, 2], "0": [1, 1, 0, 2], "2": [2, 2], "5": [1] * 5}.items():
        yield f"Resize_{name}", make_node("Resize", ["x", "", "s"], ["y"]), x, {"s": np.array(scales, np.float32)}
    yield "Resize_both", make_node("Resize", ["x", "", "s", "z"], ["y"]), x, {"s": f(4) * 2, "z": i(2, 4, 8, 8)}
    yield "Resize_sizes", make_node("Resize", ["x", "", "", "z"], ["y"]), x, {"z": i(2, 4, -16, 16)}


def numbers():
    x = {"x": f(*IMAGE)}
    vector = {"s": f(4), "b": f(4), "m": f(4), "v": f(4)}
    batch_norm = make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"])
    yield "BatchNormalization", batch_norm, x, vector | {"s": f(3)}
    yield "BatchNormalization_matrix", batch_norm, x, vector | {"s": f(4, 1)}
    yield "InstanceNormalization", make_node("InstanceNormalization", ["x", "s", "b"], ["y"]), x, {"s": f(3), "b": f(4)}
    for size in (0, -1):
        yield f"LRN_{size}", make_node("LRN", ["x"], ["y"], size=size), x, {}
    yield "Gemm", make_node("Gemm", ["x", "w"], ["y"]), {"x": f(2, 3)}, {"w": f(4, 5)}
    yield "Gemm_C", make_node("Gemm", ["x", "w", "c"], ["y"]), {"x": f(2, 3)}, {"w": f(3, 5), "c": f(4)}
    yield "Gemm_rank", make_node("Gemm", ["x", "w"], ["y"]), {"x": f(2, 2, 3)}, {"w": f(3, 5)}
    yield "MatMul", make_node("MatMul", ["x", "w"], ["y"]), {"x": f(2, 3)}, {"w": f(4, 5)}
    yield "MatMulInteger", make_node("MatMulInteger", ["x", "w"], ["y"]), {"x": u8(2, 3)}, {"w": u8(4, 5)}
    for name, equation in {"rank": "ijk,kj->ik", "output": "ij,jk->il", "operands": "ij->ij"}.items():
        yield f"Einsum_{name}", make_node("Einsum", ["x", "w"], ["y"], equation=equation), {"x": f(2, 3)}, {"w": f(3, 4)}
    yield "Add", make_node("Add", ["x", "w"], ["y"]), {"x": f(2, 3)}, {"w": f(4)}
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        weights = {"w": f(1, gates * 5, 3), "r": f(1, gates * 5, 5)}
        for name, attributes, changed in (
            ("hidden_size", {"hidden_size": 7}, {}), ("direction", {"direction": "bidirectional"}, {}),
            ("directions", {}, {"w": f(2, gates * 5, 3), "r": f(2, gates * 5, 5)}), ("inputs", {}, {"w": f(1, gates * 5, 4)}),
            ("gates", {}, {"w": f(1, gates * 5 + 1, 3)}),
        ):
            node = make_node(op, ["x", "w", "r"], ["y"], **({"hidden_size": 5} | attributes))
            yield f"{op}_{name}", node, {"x": f(6, 2, 3)}, weights | changed
        node = make_node(op, ["x", "w", "r", "", "", "h"], ["y"], hidden_size=5)
        yield f"{op}_state", node, {"x": f(6, 2, 3)}, weights | {"h": f(1, 2, 4)}
    for name, step in {"0": 0, "below_0": -1}.items():
        yield f"STFT_{name}", make_node("STFT", ["x", "s", "w"], ["y"]), {"x": f(1, 16, 1)}, {"s": np.int64(step), "w": f(4)}


def transformers():
    x, weights = {"x": f(2, 5, 8)}, {"w": f(8, 24), "b": f(24)}
    for name, attributes, changed in (("heads", {"num_heads": 3}, {}), ("heads_0", {"num_heads": 0}, {}),
                                      ("inputs", {"num_heads": 2}, {"w": f(7, 24)}),
                                      ("sizes", {"num_heads": 2, "qkv_hidden_sizes": [8, 16]}, {})):
        yield f"Attention_{name}", make_node("Attention", ["x", "w", "b"], ["y"], **attributes, **MICROSOFT), x, weights | changed
    mask = make_node("Attention", ["x", "w", "b", "m"], ["y"], num_heads=2, **MICROSOFT)
    yield "Attention_mask", mask, x, weights | {"m": np.ones(7, np.int32)}
    query = make_node("GroupQueryAttention", ["x", "k", "k", "", "", "l", "t"], ["y"], num_heads=3, kv_num_heads=2, **MICROSOFT)
    yield "GroupQueryAttention", query, {"x": f(2, 5, 24), "k": f(2, 5, 16), "l": np.array([4, 4], np.int32)}, {"t": np.int32(5)}
    heads = make_node("MultiHeadAttention", ["x", "x", "x"], ["y"], num_heads=3, **MICROSOFT)
    yield "MultiHeadAttention", heads, x, {}
    for name, k, size, b in (("block_size", 32, 7, u8(6, 5, 4)), ("K", 32, 16, u8(6, 3, 8)), ("B", 32, 16, u8(6, 2, 7)),
                             ("block_size_8", 32, 8, u8(6, 4, 4))):
        node = make_node("MatMulNBits", ["x", "b", "s"], ["y"], K=k, N=6, bits=4, block_size=size, **MICROSOFT)
        yield f"MatMulNBits_{name}", node, {"x": f(3, k)}, {"b": b, "s": f(6 * ((k + size - 1) // size))}


def bodies():
    """In the first iteration of a loop that has one, and in both branches."""
    def graph(nodes, inputs, outputs):
        return helper.make_graph(nodes, "body", [helper.make_tensor_value_info(*each) for each in inputs],
                                 [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs])

    for name, op, attributes in (("perm", "Transpose", {"perm": [0, 0, 1, 2]}), ("axis", "Softmax", {"axis": 7})):
        body = graph([make_node("Identity", ["c"], ["d"]), make_node(op, ["v"], ["o"], name="bad", **attributes)],
                     [("i", 7, []), ("c", 9, []), ("v", 1, IMAGE)], [("d", 9), ("o", 1)])
        yield (f"Loop_{name}", make_node("Loop", ["t", "g", "x"], ["y"], body=body), {"x": f(*IMAGE)},
               {"t": np.int64(2), "g": np.array(True)})
        branch = graph([make_node(op, ["x"], ["o"], name="bad", **attributes)], [], [("o", 1)])
        yield (f"If_{name}", make_node("If", ["g"], ["y"], then_branch=branch, else_branch=branch),
               {"x": f(*IMAGE), "g": np.array(True)}, {})


def newer():
    """Operators of newer opsets: the opset comes first."""
    three = {"x": f(2, 5, 8)}
    yield 23, "Attention_of_3", make_node("Attention", ["x", "x", "x"], ["y"]), three, {}
    yield (23, "Attention_of_3_heads", make_node("Attention", ["x", "x", "x"], ["y"], q_num_heads=3, kv_num_heads=3), three, {})
    x = {"x": f(*IMAGE)}
    for axis in (4, -5):
        yield 18, f"CenterCropPad_{axis}", make_node("CenterCropPad", ["x", "s"], ["y"], axes=[axis]), x, {"s": i(3)}
    for groups in (0, 3):
        node = make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=groups)
        yield 21, f"GroupNormalization_{groups}", node, x, {"s": f(4), "b": f(4)}
    yield 18, "Split_num_outputs", make_node("Split", ["x"], ["y", "z"], axis=1, num_outputs=3), x, {}


def rows():
    for kind in (windows, axes, shapes, numbers, transformers, bodies):
        for row in kind():
            yield 17, *row
    yield from newer()


def model_of(opset, node, inputs, weights, is_symbolic):
    """With a first dimension that requests choose, or with only known sizes."""
    node.name = "bad"

    def info(name, value):
        sizes = list(value.shape)
        if is_symbolic and sizes:
            sizes[0] = "n"
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), sizes)

    graph = helper.make_graph([node], "g", [info(name, value) for name, value in inputs.items()],
                              [helper.make_empty_tensor_value_info(name) for name in node.output],
                              [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()])
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)
