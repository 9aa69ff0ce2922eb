"""Writes tests/onnx/data/runtime_cases.zip: models of operators that the ONNX standard does not test, or whose values it
leaves open, with ONNX Runtime's results; for onnx_cases_test.

    python -m venv /tmp/runtime && /tmp/runtime/bin/pip install onnxruntime onnx
    /tmp/runtime/bin/python -m tests.onnx.make_runtime_cases

Weights and inputs are random but the same each time.
"""

import itertools
import pathlib
import zipfile

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.helper import make_node

from tests.onnx import refused_models

ARCHIVE = pathlib.Path(__file__).parent / "data" / "runtime_cases.zip"
RANDOM = np.random.default_rng(0)
MICROSOFT = {"domain": "com.microsoft"}
TREES = {"domain": "ai.onnx.ml"}


def floats(*sizes):
    return RANDOM.standard_normal(sizes).astype(np.float32)


def integers(dtype, *sizes, low=0, high=256):
    return RANDOM.integers(low, high, sizes).astype(dtype)


def four_bits(kind, low, high, *sizes):
    values = RANDOM.integers(low, high, sizes).reshape(-1) & 15
    packed = (values[0::2] | values[1::2] << 4).astype(np.uint8)
    return helper.make_tensor("", getattr(TensorProto, kind), sizes, packed.tobytes(), raw=True)


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


def info(name, value):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype),
                                         [f"{name}_{i}" for i in range(value.ndim)])


def initializer(name, value):
    if not isinstance(value, TensorProto):
        return numpy_helper.from_array(value, name)
    value.name = name
    return value


class Writer:
    def __init__(self):
        self.session_options = onnxruntime.SessionOptions()
        self.session_options.intra_op_num_threads = 1
        self.archive = zipfile.ZipFile(ARCHIVE, "w", zipfile.ZIP_DEFLATED)
        self.names = set()

    def write(self, name, data):
        entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.archive.writestr(entry, data)

    def case(self, name, node, feeds, outputs=("y",), weights=None, overridable=(), tolerance=1e-4, absolute=1e-5,
             trees=3, opset=17):
        weights = weights or {}
        assert name not in self.names, name
        self.names.add(name)
        inputs = [info(key, value) for key, value in feeds.items()]
        inputs += [info(key, weights[key]) for key in overridable if key not in feeds]
        graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info(key) for key in outputs],
                                  [initializer(key, value) for key, value in weights.items()])
        opsets = [helper.make_opsetid(domain, version) for domain, version in
                  (("", opset), ("com.microsoft", 1), ("ai.onnx.ml", trees))]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        session = onnxruntime.InferenceSession(model.SerializeToString(), self.session_options,
                                               providers=["CPUExecutionProvider"])
        results = session.run(None, feeds)
        # Types of the outputs, which the reader of the cases needs.
        del model.graph.output[:]
        model.graph.output.extend(info(key, value) for key, value in zip(outputs, results))
        self.write(f"{name}/model.onnx", model.SerializeToString())
        self.write(f"{name}/tolerance", f"{tolerance} {absolute}\n")
        for kind, values in (("input", list(feeds.values())), ("output", results)):
            for i, value in enumerate(values):
                self.write(f"{name}/0/{kind}_{i}.pb", numpy_helper.from_array(value).SerializeToString())


def products(writer):
    for trans_a, trans_b, batch_a, batch_b in itertools.product((0, 1), repeat=4):
        a, b = floats(2, 3, 4, 5), floats(2, 3, 5, 6)
        a = a.swapaxes(-1, -2) if trans_a else a
        b = b.swapaxes(-1, -2) if trans_b else b
        a = np.moveaxis(a, -2, 0) if batch_a else a
        b = np.moveaxis(b, -2, 0) if batch_b else b
        node = make_node("FusedMatMul", ["a", "b"], ["y"], transA=trans_a, transB=trans_b, transBatchA=batch_a,
                         transBatchB=batch_b, alpha=0.5, **MICROSOFT)
        writer.case(f"FusedMatMul_{trans_a}{trans_b}{batch_a}{batch_b}", node,
                    {"a": np.ascontiguousarray(a), "b": np.ascontiguousarray(b)})
    for bits, block, k, has_zero, has_groups in ((4, 16, 40, 1, 0), (4, 16, 48, 0, 1), (8, 16, 32, 0, 0), (4, 32, 50, 0, 1)):
        blocks = (k + block - 1) // block
        weights = {"b": integers(np.uint8, 6, blocks, block * bits // 8), "s": np.abs(floats(6 * blocks))}
        inputs = ["a", "b", "s", "z" if has_zero else "", "g" if has_groups else ""]
        if has_zero:
            weights["z"] = integers(np.uint8, 6 * ((blocks * bits + 7) // 8))
        if has_groups:
            weights["g"] = integers(np.int32, k, high=blocks)
        node = make_node("MatMulNBits", inputs, ["y"], K=k, N=6, bits=bits, block_size=block, **MICROSOFT)
        writer.case(f"MatMulNBits_{bits}_{block}_{has_zero}{has_groups}", node, {"a": floats(3, k)}, weights=weights,
                    tolerance=2e-3, absolute=2e-3)
    for bits, has_zero, places in itertools.product((4, 8), (0, 1), ([[0, 3], [4, 1]], [2])):
        weights = {"d": integers(np.uint8, 5, 64 * bits // 8), "s": np.abs(floats(5, 4))}
        if has_zero:
            weights["z"] = integers(np.uint8, 5, 4 * bits // 8)
        node = make_node("GatherBlockQuantized", ["d", "i", "s"] + ["z"] * has_zero, ["y"], bits=bits, block_size=16,
                         gather_axis=0, quantize_axis=1, **MICROSOFT)
        writer.case(f"GatherBlockQuantized_{bits}_{has_zero}_{len(places)}", node, {"i": np.array(places)},
                    weights=weights)
    # As its quantizer writes them: 4-bit elements, along any axis.
    for kind, (low, high), has_zero, axis in (("INT4", (-8, 8), 0, 1), ("UINT4", (0, 16), 1, 1), ("INT4", (-8, 8), 1, 0),
                                              ("UINT4", (0, 16), 0, 1)):
        sizes, scales = (32, 48), (32, 3) if axis == 1 else (2, 48)
        weights = {"d": four_bits(kind, low, high, *sizes), "s": np.abs(floats(*scales))}
        if has_zero:
            weights["z"] = four_bits(kind, low, high, *scales)
        node = make_node("GatherBlockQuantized", ["d", "i", "s"] + ["z"] * has_zero, ["y"], block_size=16,
                         gather_axis=1 - axis, quantize_axis=axis, **MICROSOFT)
        writer.case(f"GatherBlockQuantized_{kind}_{has_zero}_{axis}", node, {"i": np.array([[0, 3], [4, 1]])},
                    weights=weights)


def attention(writer):
    for name, mask in (("ends", [3, 5]), ("ends_and_begins", [4, 5, 1, 2])):
        node = make_node("Attention", ["x", "w", "b", "m"], ["y"], num_heads=2, **MICROSOFT)
        writer.case("Attention_" + name, node, {"x": floats(2, 5, 8), "m": np.array(mask, np.int32)},
                    weights={"w": floats(8, 24), "b": floats(24)})
    heads = {"num_heads": 4, "kv_num_heads": 2, **MICROSOFT}
    ends = {"s": np.array([3], np.int32), "t": np.array(4, np.int32)}
    for name, options in (("plain", {}), ("smooth", {"smooth_softmax": 1}), ("softcap", {"smooth_softmax": 0, "softcap": 5.0}),
                          ("window", {"smooth_softmax": 1, "local_window_size": 2}), ("sink", {})):
        feeds = {"q": floats(1, 4, 32), "k": floats(1, 4, 16), "v": floats(1, 4, 16)}
        inputs = ["q", "k", "v", "", "", "s", "t"]
        if name == "sink":
            inputs += ["", "", "", "", "h"]
            feeds["h"] = floats(4)
        node = make_node("GroupQueryAttention", inputs, ["y", "pk", "pv"], **heads, **options)
        writer.case("GroupQueryAttention_" + name, node, feeds, ("y", "pk", "pv"), ends)
    feeds = {"q": floats(2, 1, 32), "k": floats(2, 1, 16), "v": floats(2, 1, 16), "pk": floats(2, 2, 6, 8),
             "pv": floats(2, 2, 6, 8)}
    node = make_node("GroupQueryAttention", ["q", "k", "v", "pk", "pv", "s", "t"], ["y", "a", "b"], smooth_softmax=1, **heads)
    writer.case("GroupQueryAttention_step", node, feeds, ("y", "a", "b"),
                {"s": np.array([6, 6], np.int32), "t": np.array(7, np.int32)})


def quantized(writer):
    for last in (0, 1):
        weights = {"xs": scalar(0.02), "xz": scalar(120, np.uint8), "w": integers(np.int8, 4, 3, 3, 3, low=-100, high=100),
                   "ws": np.array([0.01, 0.02, 0.03, 0.015], np.float32), "wz": np.zeros(4, np.int8), "ys": scalar(0.15),
                   "yz": scalar(110, np.uint8), "b": integers(np.int32, 4, low=-100, high=100)}
        node = make_node("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["y"], channels_last=last,
                         pads=[1, 1, 1, 1], strides=[2, 2], **MICROSOFT)
        writer.case(f"QLinearConv_{last}", node, {"x": integers(np.uint8, *((1, 7, 7, 3) if last else (1, 3, 7, 7)))},
                    weights=weights)
    weights = {"xs": scalar(0.1), "ys": scalar(0.2), "zs": scalar(0.25), "xz": scalar(10, np.uint8),
               "yz": scalar(100, np.uint8), "zz": scalar(90, np.uint8)}
    node = make_node("QLinearWhere", ["c", "x", "xs", "xz", "v", "ys", "yz", "zs", "zz"], ["y"], **MICROSOFT)
    writer.case("QLinearWhere", node, {"c": RANDOM.random((4, 6)) > 0.5, "x": integers(np.uint8, 4, 6),
                                       "v": integers(np.uint8, 4, 6)}, weights=weights)
    for direction, count in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
        weights = {"w": integers(np.uint8, count, 6, 20), "r": integers(np.uint8, count, 5, 20), "b": floats(count, 40) / 10,
                   "ws": np.full(count, 0.005, np.float32), "wz": np.full(count, 128, np.uint8),
                   "rs": np.full(count, 0.004, np.float32), "rz": np.full(count, 120, np.uint8)}
        node = make_node("DynamicQuantizeLSTM", ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"],
                         ["y", "h", "c"], hidden_size=5, direction=direction, **MICROSOFT)
        # ONNX Runtime rounds inputs of its products to 8 bits, we do not.
        writer.case("DynamicQuantizeLSTM_" + direction, node, {"x": floats(4, 2, 6)}, ("y", "h", "c"), weights,
                    tolerance=0, absolute=2e-2)


def trees(writer):
    nodes = {
        "nodes_treeids": [0, 0, 0, 0, 0, 1, 1, 1], "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
        "nodes_featureids": [0, 1, 0, 0, 0, 2, 0, 0], "nodes_values": [0.1, -0.2, 0, 0, 0, 0.3, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "BRANCH_LT", "LEAF", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 3, 0, 0, 0, 1, 0, 0], "nodes_falsenodeids": [2, 4, 0, 0, 0, 2, 0, 0],
        "nodes_missing_value_tracks_true": [1, 0, 0, 0, 0, 1, 0, 0], "nodes_hitrates": [1.0] * 8}
    x = floats(9, 3)
    for i in range(3):
        x[i, i] = np.nan
    for aggregate, base in itertools.product(("SUM", "AVERAGE", "MIN", "MAX"), (None, [0.5])):
        options = {"base_values": base} if base else {}
        node = make_node("TreeEnsembleRegressor", ["x"], ["y"], aggregate_function=aggregate, n_targets=1,
                         target_treeids=[0, 0, 0, 1, 1], target_nodeids=[2, 3, 4, 1, 2], target_ids=[0] * 5,
                         target_weights=[1.0, 2.0, 3.0, -4.0, 5.0], **nodes, **options, **TREES)
        writer.case(f"TreeEnsembleRegressor_{aggregate}_{'base' if base else 'plain'}", node, {"x": x})
    for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
        node = make_node("TreeEnsembleRegressor", ["x"], ["y"], aggregate_function=aggregate, n_targets=2,
                         target_treeids=[0, 0, 0, 0, 1, 1], target_nodeids=[2, 2, 3, 4, 1, 2],
                         target_ids=[0, 1, 0, 1, 0, 1], target_weights=[1.0, 2.0, 3.0, -4.0, 5.0, 6.0],
                         base_values=[0.5, -0.5], **nodes, **TREES)
        writer.case(f"TreeEnsembleRegressor_two_{aggregate}", node, {"x": x})


def images(writer):
    for size, scale in ((22, 1 / 3), (10, 0.3), (22, 2 / 3), (9, 1.7), (12, 1 / 6), (30, 1 / 7)):
        for nearest, transform in itertools.product(("floor", "round_prefer_floor", "round_prefer_ceil", "ceil"),
                                                    ("asymmetric", "half_pixel")):
            node = make_node("Resize", ["x", "", "s"], ["y"], mode="nearest", nearest_mode=nearest,
                             coordinate_transformation_mode=transform)
            writer.case(f"Resize_{size}_{scale:.2f}_{nearest}_{transform}", node,
                        {"x": np.arange(size, dtype=np.float32).reshape(1, 1, 1, size)},
                        weights={"s": np.array([1, 1, 1, scale], np.float32)})
    for size, scale, mode in itertools.product((7, 22), (1.7, 1 / 3, 2.0), ("linear", "cubic")):
        node = make_node("Resize", ["x", "", "s"], ["y"], mode=mode, coordinate_transformation_mode="align_corners", cubic_coeff_a=-0.75)
        writer.case(f"Resize_{size}_{scale:.2f}_{mode}_corners", node,
                    {"x": np.sin(np.arange(size * size, dtype=np.float32)).reshape(1, 1, size, size)},
                    weights={"s": np.array([1, 1, scale, scale], np.float32)})
    boxes = np.array([[0, 0.5, 1.5, 6.5, 7.5], [1, 2.5, 3.5, 9.5, 11.5], [0, -1.5, -2.5, 3, 3], [1, 5, 5, 2, 2]], np.float32)
    image = floats(2, 3, 12, 13)
    for scale, shape in itertools.product((1.0, 0.5, 0.25), ([3, 3], [7, 7], [2, 5])):
        node = make_node("MaxRoiPool", ["x", "r"], ["y"], pooled_shape=shape, spatial_scale=scale)
        writer.case(f"MaxRoiPool_{scale}_{shape[0]}", node, {"x": image, "r": boxes})
    image = floats(2, 3, 8, 8)
    batch = {"b": np.zeros(1, np.int64)}
    for i, box in enumerate(([5, 5, 1, 1], [2, 2, 2, 2], [3, 5, 3, 1], [0.3, 0.7, 6.1, 4.9])):
        for ratio, mode in itertools.product((0, 2), ("avg", "max")):
            node = make_node("RoiAlign", ["x", "r", "b"], ["y"], output_height=2, output_width=2, sampling_ratio=ratio,
                             mode=mode, coordinate_transformation_mode="half_pixel")
            writer.case(f"RoiAlign_{i}_{ratio}_{mode}", node, {"x": image, "r": np.array([box], np.float32), **batch})


def numbers(writer):
    for dtype, (start, limit, delta) in itertools.product((np.int64, np.int32, np.int16, np.float32), (
            (5, 1, 1), (1, 5, -1), (5, 1, -2), (1, 1, 1), (0, 5, 2), (1, 1, -1))):
        node = make_node("Range", ["a", "b", "c"], ["y"])
        writer.case(f"Range_{np.dtype(dtype).name}_{start}_{limit}_{delta}", node,
                    {"a": scalar(start, dtype), "b": scalar(limit, dtype), "c": scalar(delta, dtype)})
    edges = np.array([np.nan, 1, -2, 0, 3e38, -3e38, 0.3, -0.3, 2.9, -2.9], np.float32)
    for op in ("Sign", "HardSwish"):
        writer.case(op, make_node(op, ["x"], ["y"]), {"x": edges})
    writer.case("Sign_int", make_node("Sign", ["x"], ["y"]), {"x": np.array([3, -2, 0])})
    weights = {"b": floats(3)}
    add = make_node("Add", ["x", "b"], ["y"])
    writer.case("overridable_default", add, {"x": floats(3)}, weights=weights, overridable=["b"])
    writer.case("overridable_given", add, {"x": floats(3), "b": floats(3)}, weights=weights, overridable=["b"])


def later(writer):
    """Cases added after those above, whose random numbers stay the same."""
    for last in (0, 1):
        scales = {"xs": scalar(0.1), "xz": scalar(120, np.uint8), "ys": scalar(0.1), "yz": scalar(100, np.uint8)}
        names = ["x", "xs", "xz", "ys", "yz"]
        x = {"x": integers(np.uint8, *((2, 7, 9, 3) if last else (2, 3, 7, 9)))}
        for i, options in enumerate(({}, {"strides": [2, 2], "pads": [0, 1, 1, 0]}, {"strides": [2, 2], "ceil_mode": 1},
                                     {"pads": [1, 1, 1, 1], "count_include_pad": 1}, {"auto_pad": "SAME_UPPER"})):
            node = make_node("QLinearAveragePool", names, ["y"], kernel_shape=[2, 2], channels_last=last, **options, **MICROSOFT)
            writer.case(f"QLinearAveragePool_{last}_{i}", node, x, weights=scales)
        node = make_node("QLinearGlobalAveragePool", names, ["y"], channels_last=last, **MICROSOFT)
        writer.case(f"QLinearGlobalAveragePool_{last}", node, x, weights=scales)
    for i, options in enumerate(({}, {"strides": [2, 2], "pads": [1, 1, 1, 1]}, {"strides": [2, 2], "ceil_mode": 1},
                                 {"dilations": [2, 1]}, {"auto_pad": "SAME_LOWER", "strides": [2, 1]})):
        for dtype in (np.uint8, np.int8):
            node = make_node("NhwcMaxPool", ["x"], ["y"], kernel_shape=[3, 2], **options, **MICROSOFT)
            writer.case(f"NhwcMaxPool_{np.dtype(dtype).name}_{i}", node, {"x": integers(dtype, 2, 7, 9, 3, high=100)})
    for k in (40, 64):
        blocks = (k + 15) // 16
        weights = {"b": integers(np.uint8, 6, blocks, 8), "s": np.abs(floats(6 * blocks)), "z": np.abs(floats(6, blocks)) * 8,
                   "g": integers(np.int32, k, high=blocks)}
        node = make_node("MatMulNBits", ["a", "b", "s", "z", "g"], ["y"], K=k, N=6, bits=4, block_size=16, **MICROSOFT)
        writer.case(f"MatMulNBits_groups_with_zero_points_{k}", node, {"a": floats(3, k)}, weights=weights, tolerance=2e-3,
                    absolute=2e-3)
    for name, size in itertools.product(("HannWindow", "HammingWindow", "BlackmanWindow"), (1, 2, 5)):
        writer.case(f"{name}_{size}", make_node(name, ["n"], ["y"]), {"n": np.array(size, np.int64)})
    mask = np.array([3, 5, 0, 3, 8, 0, 3, 8], np.int32)
    node = make_node("Attention", ["x", "w", "b", "m"], ["y"], num_heads=2, **MICROSOFT)
    writer.case("Attention_lengths_and_places", node, {"x": floats(2, 5, 8), "m": mask},
                weights={"w": floats(8, 24), "b": floats(24)})
    x = floats(9, 3)
    for transform, targets in itertools.product(("LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"), (1, 2)):
        scale = 0.1 if transform == "PROBIT" else 1.0
        node = make_node("TreeEnsembleRegressor", ["x"], ["y"], n_targets=targets, post_transform=transform,
                         nodes_treeids=[0] * 5, nodes_nodeids=[0, 1, 2, 3, 4], nodes_featureids=[0, 1, 0, 0, 0],
                         nodes_values=[0.1, -0.2, 0.0, 0.0, 0.0], nodes_modes=["BRANCH_LEQ", "BRANCH_LT", "LEAF", "LEAF", "LEAF"],
                         nodes_truenodeids=[1, 3, 0, 0, 0], nodes_falsenodeids=[2, 4, 0, 0, 0],
                         target_treeids=[0] * 3, target_nodeids=[2, 3, 4], target_ids=[0, targets - 1, 0],
                         target_weights=[1.5 * scale, 2.5 * scale, 3.5 * scale], **TREES)
        writer.case(f"TreeEnsembleRegressor_{transform}_{targets}", node, {"x": x})
        if transform in ("LOGISTIC", "SOFTMAX"):
            continue
        node = make_node("TreeEnsemble", ["x"], ["y"], n_targets=targets, aggregate_function=1,
                         post_transform=3 if transform == "SOFTMAX_ZERO" else 4,
                         leaf_targetids=[0, targets - 1, 0], leaf_weights=numpy_helper.from_array(
                             np.array([1.5, 2.5, 3.5], np.float32) * np.float32(scale)),
                         nodes_splits=numpy_helper.from_array(np.array([0.1, -0.2], np.float32)), nodes_featureids=[0, 1],
                         nodes_modes=numpy_helper.from_array(np.array([0, 1], np.uint8)), nodes_truenodeids=[1, 0],
                         nodes_trueleafs=[0, 1], nodes_falsenodeids=[2, 1], nodes_falseleafs=[1, 1], tree_roots=[0], **TREES)
        writer.case(f"TreeEnsemble_{transform}_{targets}", node, {"x": x}, trees=5)
    image = {"x": np.arange(2 * 9 * 7, dtype=np.float32).reshape(1, 2, 9, 7)}
    for i, scales in enumerate(([1, 1, 0.6, 1.7], [1, 1, 2, 0.4], [1, 0.5, 0.3, 0.3])):
        node = make_node("Resize", ["x", "s"], ["y"], mode="nearest")
        writer.case(f"Resize_10_{i}", node, image, weights={"s": np.array(scales, np.float32)}, opset=10)
    for dtype in (np.int32, np.int64):
        writer.case(f"ReduceLogSum_{np.dtype(dtype).name}", make_node("ReduceLogSum", ["x"], ["y"], axes=[1]),
                    {"x": integers(dtype, 3, 50, low=1)})


def refused(writer):
    count = 0
    for opset, name, node, inputs, weights in refused_models.rows():
        for is_symbolic in (False, True):
            if is_symbolic and (not inputs or name in refused_models.OF_THE_REQUEST):
                continue
            data = refused_models.model_of(opset, node, inputs, weights, is_symbolic).SerializeToString()
            try:
                onnxruntime.InferenceSession(data, writer.session_options, providers=["CPUExecutionProvider"]).run(None, inputs)
            except Exception:  # the exception type varies
                pass
            else:
                raise AssertionError(f"{name} is not refused")
            writer.write(f"refused_{name}{'_n' if is_symbolic else ''}/model.onnx", data)
            writer.write(f"refused_{name}{'_n' if is_symbolic else ''}/refused", "node 'bad'")
            count += 1
    print(f"{count} models are refused")


def main():
    onnxruntime.set_default_logger_severity(4)
    ARCHIVE.parent.mkdir(exist_ok=True)
    writer = Writer()
    for add in (products, attention, quantized, trees, images, numbers, later, refused):
        add(writer)
    writer.archive.close()
    print(f"{len(writer.names)} cases, {ARCHIVE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
