"""Writes one architecture as every format, with what PyTorch and ONNX Runtime give for it:

FOLDER/model.pt2, core.pt2 (after run_decompositions), dynamo.onnx and legacy.onnx (both exporters of torch.onnx),
optimized.onnx (ONNX Runtime's optimizer for transformers), int8.onnx (its dynamic quantizer), qdq.onnx and qlinear.onnx (its static
one, in both forms), and for each of them
NAME.pt with {"error": why there is no such file} or {"calls": [(arguments, PyTorch's results, ONNX Runtime's results)]}.
"""

import copy
import inspect
import logging
import multiprocessing
import os
import resource
import warnings

import torch
from torch.export.graph_signature import ConstantArgument, InputKind
from torch.utils import _pytree as pytree

from tests.pt2.make_programs import leaves

KINDS = ("model.pt2", "core.pt2", "legacy.onnx", "dynamo.onnx", "optimized.onnx", "int8.onnx", "qdq.onnx", "qlinear.onnx")
QUANTIZED = KINDS[-3:]
SECONDS = 600  # of CPU time, that all exports of one architecture may take
PATIENCE = 20  # as many times more that may pass meanwhile, for exporters that hang


def shake(module):
    """Randomizes weights and statistics: zeros or ones would hide errors."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.is_floating_point() and parameter.numel() > 1 and (parameter == parameter.flatten()[0]).all():
                parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
        for name, buffer in module.named_buffers():
            if name.endswith("running_mean"):
                buffer += 0.1 * torch.randn(buffer.shape, generator=generator)
            elif name.endswith("running_var"):
                buffer *= 0.75 + 0.5 * torch.rand(buffer.shape, generator=generator)


def other_sizes(args, kwargs, dynamic):
    """The arguments with one more sample in each dynamic dimension 0; None without such a dimension."""
    if not dynamic:
        return None

    def grow(value, shape):
        is_batch = isinstance(value, torch.Tensor) and shape and 0 in shape
        return torch.cat([value, value[:1]]) if is_batch else value

    if isinstance(dynamic, dict):
        return args, {name: grow(value, dynamic.get(name)) for name, value in kwargs.items()}
    return tuple(grow(value, shape) for value, shape in zip(args, dynamic)), kwargs


def export_program(module, args, kwargs, dynamic):
    """(program, whether its sizes are dynamic)."""
    if dynamic:
        try:
            return torch.export.export(module, args, kwargs, dynamic_shapes=dynamic), True
        except Exception:  # a model that fixes sizes; the exception type varies
            pass
    return torch.export.export(module, args, kwargs), False


class Positional(torch.nn.Module):
    """Takes the leaves of the arguments and returns those of the result, as tracing needs it."""

    def __init__(self, module, args, kwargs):
        super().__init__()
        self.module = module
        self.values, self.spec = pytree.tree_flatten((args, kwargs))

    def forward(self, *tensors):
        tensors = iter(tensors)
        values = [next(tensors) if isinstance(value, torch.Tensor) else value for value in self.values]
        args, kwargs = pytree.tree_unflatten(values, self.spec)
        return tuple(leaf for leaf in leaves(self.module(*args, **kwargs)) if isinstance(leaf, torch.Tensor))


class Exports:
    def __init__(self, folder, make):
        self.folder = folder
        torch.manual_seed(0)
        module, self.args, self.kwargs, self.dynamic = make()
        self.module = module.eval()
        shake(self.module)
        self.calls = [(self.args, self.kwargs)]
        self.program = None

    def results(self, call):
        with torch.no_grad():
            return leaves(copy.deepcopy(self.module)(*copy.deepcopy(call[0]), **copy.deepcopy(call[1])))

    def prepare_program(self):
        if self.program is not None:
            return
        self.program, is_dynamic = export_program(copy.deepcopy(self.module), copy.deepcopy(self.args), copy.deepcopy(self.kwargs), self.dynamic)
        other = other_sizes(self.args, self.kwargs, self.dynamic if is_dynamic else None)
        if other:
            self.calls.append(other)

    def fed(self, call):
        """The inputs of a program: tensors and dynamic numbers. Constants are part of it."""
        specs = [spec for spec in self.program.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT]
        return tuple(value for spec, value in zip(specs, pytree.tree_leaves(call)) if not isinstance(spec.arg, ConstantArgument))

    def program_calls(self):
        return [(self.fed(call), self.results(call), None) for call in self.calls]

    def model_pt2(self, path):
        self.prepare_program()
        torch.export.save(self.program, path)
        return self.program_calls()

    def core_pt2(self, path):
        self.prepare_program()
        torch.export.save(self.program.run_decompositions(), path)
        return self.program_calls()

    def dynamo_onnx(self, path):
        self.prepare_program()
        torch.onnx.export(self.program, f=path, dynamo=True, verbose=False, external_data=False)
        return self.onnx_calls(path, self.calls)

    def legacy_onnx(self, path):
        tensors = tuple(leaf for leaf in leaves((self.args, self.kwargs)) if isinstance(leaf, torch.Tensor))
        names = [f"x{number}" for number in range(len(tensors))]
        axes = None
        calls = [(self.args, self.kwargs)]
        if self.dynamic:
            shapes = [shape or {} for shape in (self.dynamic.values() if isinstance(self.dynamic, dict) else self.dynamic)]
            axes = {name: {axis: dim.__name__ for axis, dim in shape.items()} for name, shape in zip(names, shapes)}
            calls.append(other_sizes(self.args, self.kwargs, self.dynamic))
        model = Positional(copy.deepcopy(self.module), self.args, self.kwargs).eval()
        try:
            torch.onnx.export(model, tensors, path, dynamo=False, opset_version=20, input_names=names, dynamic_axes=axes)
            return self.onnx_calls(path, calls)
        except Exception:  # tracing fixed a size: results for other sizes are meaningless
            if axes is None:
                raise
            torch.onnx.export(model, tensors, path, dynamo=False, opset_version=20, input_names=names)
            return self.onnx_calls(path, calls[:1])

    def optimized_onnx(self, path):
        from onnxruntime.transformers import optimizer

        kind = getattr(getattr(self.module, "config", None), "model_type", "")
        if kind not in ("bert", "roberta", "distilbert", "electra", "gpt2", "vit", "clip", "bart", "t5"):
            raise ValueError("no optimizer for it")
        kind = {"roberta": "bert", "distilbert": "bert", "electra": "bert"}.get(kind, kind)
        made = optimizer.optimize_model(str(self.folder / "legacy.onnx"), model_type=kind, num_heads=4, hidden_size=32, opt_level=0)
        made.save_model_to_file(str(path))
        return self.onnx_calls(path, [(self.args, self.kwargs)])

    def int8_onnx(self, path):
        from onnxruntime.quantization import QuantType, quantize_dynamic

        quantize_dynamic(str(self.folder / "legacy.onnx"), str(path), weight_type=QuantType.QUInt8)
        return self.onnx_calls(path, [(self.args, self.kwargs)])

    def qdq_onnx(self, path):
        return self.static(path, "QDQ")

    def qlinear_onnx(self, path):
        return self.static(path, "QOperator")

    def static(self, path, form):
        from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

        call = (self.args, self.kwargs)
        names = [one.name for one in self.session(self.folder / "legacy.onnx").get_inputs()]

        class OneCall(CalibrationDataReader):
            rest = [{name: value.numpy() for name, value in zip(names, self.given(names, call))}]

            def get_next(self):
                return self.rest.pop() if self.rest else None

        quantize_static(str(self.folder / "legacy.onnx"), str(path), OneCall(), quant_format=QuantFormat[form],
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
        return self.onnx_calls(path, [call])

    def session(self, path):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = 4
        if path.name in QUANTIZED:
            # Its optimizations of quantized graphs round in other places than the file says.
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def onnx_calls(self, path, calls):
        session = self.session(path)
        names = [one.name for one in session.get_inputs()]
        made = []
        for call in calls:
            given = self.given(names, call)
            peer = session.run(None, {name: value.numpy() for name, value in zip(names, given)})
            made.append((tuple(given), self.results(call), [torch.from_numpy(value.copy()) for value in peer]))
        return made

    def given(self, names, call):
        """The tensors of a call that a file with these input names takes: unread ones are omitted."""
        all_of_them = [leaf for leaf in leaves(call) if isinstance(leaf, torch.Tensor)]
        return all_of_them if len(names) == len(all_of_them) else self.named(names, call)

    def named(self, names, call):
        bound = inspect.signature(self.module.forward).bind(*call[0], **call[1]).arguments
        traced = {f"x{number}": leaf for number, leaf in enumerate(leaves(call))}
        return [bound[name] if name in bound else traced[name] for name in names]


def export_all(folder, make, kinds):
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
    folder.mkdir(parents=True, exist_ok=True)
    exports = None
    for kind in kinds:
        note = folder / (kind + ".pt")
        if note.exists():
            continue
        try:
            exports = exports or Exports(folder, make)
            calls = getattr(exports, kind.replace(".", "_"))(folder / kind)
            torch.save({"calls": calls}, note)
        except BaseException as error:  # an export that PyTorch cannot do is not our failure
            reason = " ".join(str(error).split())[:300] or type(error).__name__
            torch.save({"error": reason}, note)
            (folder / kind).unlink(missing_ok=True)


def export_apart(folder, make, kinds=KINDS):
    """In a separate process: exporters hang, crash and leak."""
    process = multiprocessing.get_context("fork").Process(target=export_all, args=(folder, make, kinds))
    process.start()
    process.join(PATIENCE * SECONDS)
    if process.is_alive():
        process.kill()
        process.join()
    for kind in kinds:
        if not (folder / (kind + ".pt")).exists():
            folder.mkdir(parents=True, exist_ok=True)
            torch.save({"error": f"the exporter ended with {process.exitcode}"}, folder / (kind + ".pt"))
