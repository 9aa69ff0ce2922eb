"""The TorchScript source of nn's layers, for _scripting, with their options as constants."""

from __future__ import annotations

import math

from tensord.engine import nn


def _forward(result: str, *before: str, inputs: str = "input: Tensor") -> str:
    lines = "".join(f"  {line}\n" for line in before)
    return f"def forward(self, {inputs}) -> Tensor:\n{lines}  return {result}"


def _optional(module, name: str) -> str:
    return f"self.{name}" if getattr(module, name) is not None else "None"


def _weight_and_bias(module) -> str:
    return f"{_optional(module, 'weight')}, {_optional(module, 'bias')}"


def _list(value, dims: int) -> list:
    return list(value) if isinstance(value, (tuple, list)) else [value] * dims


def _dims(module) -> int:
    """Of Conv2d, MaxPool2d …: 2."""
    return int(type(module).__name__[-2])


def _of(text: str):
    """One expression with the module's own numbers in it: {m.alpha}."""
    return lambda m: _forward(text.format(m=m))


def _activation(operator: str, numbers: str = ""):
    """One with a variant that writes its input."""
    return lambda m: _forward(f"torch.{operator}{'_' if m.inplace else ''}(input{numbers.format(m=m)})")


def _when_rank(ranks: dict, message: str) -> str:
    """Another expression for each number of dimensions; others are an error."""
    lines = ["rank = torch.dim(input)", "result = input"]
    for i, (rank, expression) in enumerate(ranks.items()):
        lines += [f"{'if' if i == 0 else 'elif'} rank == {rank}:", f"  result = {expression}"]
    return _forward("result", *lines, "else:", f'  ops.prim.RaiseException("{message}")')


# Convolutions.


def _conv(module) -> str:
    dims, input, padding = _dims(module), "input", module.padding
    if module.padding_mode != "zeros":
        input, padding = f"torch.pad(input, {list(module._margins())}, '{module.padding_mode}', None)", [0] * dims
    padding = repr(padding) if isinstance(padding, str) else list(padding)
    return _forward(f"torch.conv{dims}d({input}, {_weight_and_bias(module)}, {list(module.stride)}, {padding}, {list(module.dilation)}, {module.groups})")


def _conv_transpose(module) -> str:
    return _forward(f"torch.conv_transpose{_dims(module)}d(input, {_weight_and_bias(module)}, {list(module.stride)}, {list(module.padding)}, "
                    f"{list(module.output_padding)}, {module.groups}, {list(module.dilation)})")


# Norms.


def _batch_norm(module) -> str:
    if not module.track_running_stats:
        return _forward(f"torch.batch_norm(input, {_weight_and_bias(module)}, None, None, True, 0.0, {module.eps}, False)")
    count = ["if self.training:", "  _ = torch.add_(self.num_batches_tracked, 1)"]
    factor = str(module.momentum)
    if module.momentum is None:  # the mean of all batches
        factor, count = "factor", ["factor = 0.0", *count, "  factor = 1.0 / float(self.num_batches_tracked)"]
    return _forward(f"torch.batch_norm(input, {_weight_and_bias(module)}, self.running_mean, self.running_var, "
                    f"self.training, {factor}, {module.eps}, False)", *count)


def _instance_norm(module) -> str:
    by_input = "not self.training" if module.track_running_stats else "False"
    call = (f"torch.instance_norm({{}}, {_weight_and_bias(module)}, {_optional(module, 'running_mean')}, {_optional(module, 'running_var')}, "
            f"not ({by_input}), {module.momentum}, {module.eps}, False)")
    alone, batch = module.ranks
    return _when_rank({batch: call.format("input"), alone: f"torch.squeeze({call.format('torch.unsqueeze(input, 0)')}, 0)"},
                      f"{type(module).__name__}: expected a tensor of {alone} or {batch} dimensions")


def _layer_norm(module) -> str:
    return _forward(f"torch.layer_norm(input, {list(module.normalized_shape)}, {_weight_and_bias(module)}, {module.eps})")


def _local_response_norm(module) -> str:
    before, after = module.size // 2, (module.size - 1) // 2
    squares = "torch.unsqueeze(torch.mul(input, input), 1)"
    rows = f"torch.squeeze(torch.avg_pool2d(torch.pad({squares}, [0, 0, {before}, {after}]), [{module.size}, 1], [1, 1]), 1)"
    volumes = f"torch.reshape({squares}, [torch.size(input, 0), 1, torch.size(input, 1), torch.size(input, 2), -1])"
    sums = f"torch.avg_pool3d(torch.pad({volumes}, [0, 0, 0, 0, {before}, {after}]), [{module.size}, 1, 1], [1, 1, 1])"
    return _forward(f"torch.div(input, torch.pow(torch.add(torch.mul(sums, {module.alpha}), {module.k}), {module.beta}))",
                    "if torch.dim(input) < 3:", '  ops.prim.RaiseException("LocalResponseNorm: expected a tensor of at least three dimensions")',
                    "sums = input", "if torch.dim(input) == 3:", f"  sums = {rows}", "else:",
                    f"  sums = torch.reshape(torch.squeeze({sums}, 1), torch.size(input))")


# Pools, and other sizes.


def _max_pool(module):
    if module.return_indices:
        return None
    dims = _dims(module)
    numbers = ", ".join(str(_list(value, dims)) for value in (module.kernel_size, module.stride, module.padding, module.dilation))
    return _forward(f"torch.max_pool{dims}d(input, {numbers}, {module.ceil_mode})")


def _avg_pool(module) -> str:
    dims = _dims(module)
    numbers = ", ".join(str(_list(value, dims)) for value in (module.kernel_size, module.stride, module.padding))
    divisor = f", {module.divisor_override}" if dims > 1 else ""
    return _forward(f"torch.avg_pool{dims}d(input, {numbers}, {module.ceil_mode}, {module.count_include_pad}{divisor})")


def _output_size(module) -> str:
    """None stands for the input's own size."""
    sizes = _list(module.output_size, _dims(module))
    return f"[{', '.join(f'torch.size(input, {i - len(sizes)})' if size is None else str(size) for i, size in enumerate(sizes))}]"


def _adaptive_avg_pool(module) -> str:
    return _forward(f"torch.adaptive_avg_pool{_dims(module)}d(input, {_output_size(module)})")


def _adaptive_max_pool(module):
    if module.return_indices:
        return None
    return _forward("result", f"result, indices = torch.adaptive_max_pool{_dims(module)}d(input, {_output_size(module)})")


def _lp_pool(module) -> str:
    dims = module.dims
    sizes = _list(module.kernel_size, dims)
    stride = [] if module.stride is None else _list(module.stride, dims)
    mean = f"torch.avg_pool{dims}d(torch.pow(input, {module.norm_type}), {sizes}, {stride}, {[0] * dims}, {module.ceil_mode})"
    return _forward(f"torch.pow(torch.mul(torch.mul(torch.sign(mean), torch.relu(torch.abs(mean))), {math.prod(sizes)}), {1.0 / module.norm_type})",
                    f"mean = {mean}")


_RESAMPLING = {"nearest": {3: "upsample_nearest1d", 4: "upsample_nearest2d", 5: "upsample_nearest3d"},
               "nearest-exact": {3: "_upsample_nearest_exact1d", 4: "_upsample_nearest_exact2d", 5: "_upsample_nearest_exact3d"},
               "linear": {3: "upsample_linear1d"}, "bilinear": {4: "upsample_bilinear2d"}, "bicubic": {4: "upsample_bicubic2d"},
               "trilinear": {5: "upsample_trilinear3d"}}


def _upsample(module):
    is_size = module.size is not None
    if module.recompute_scale_factor or module.mode not in _RESAMPLING or is_size == (module.scale_factor is not None):
        return None
    given = module.size if is_size else module.scale_factor
    corners = "" if module.mode.startswith("nearest") else f", {bool(module.align_corners)}"
    ranks = {}
    for rank, operator in _RESAMPLING[module.mode].items():
        numbers = _list(given, rank - 2)
        if len(numbers) == rank - 2:
            sizes, factors = (numbers, None) if is_size else (None, numbers)
            ranks[rank] = f"torch.{operator}(input, {sizes}{corners}, {factors})"
    kinds = " or ".join(map(str, ranks))
    return _when_rank(ranks, f"{type(module).__name__}: expected a tensor of {kinds} dimensions") if ranks else None


def _columns(operator: str, *options: str):
    """Of images: windows as columns and back."""
    return lambda m: _forward(f"torch.{operator}(input, {', '.join(str(_list(getattr(m, option), 2)) for option in options)})")


def _pad(module) -> str:
    mode, value = getattr(module, "mode", "constant"), getattr(module, "value", 0.0)
    return _forward(f"torch.pad(input, {list(module.padding)}, '{mode}', {float(value) if mode == 'constant' else None})")


# Dropouts.


def _dropout(operator: str):
    return lambda m: _forward(_dropped(m, operator, "input"))


def _dropped(module, operator: str, input: str) -> str:
    found = f"torch.{operator}({input}, {module.p}, self.training)"
    return f"torch.copy_(input, {found})" if module.inplace else found


def _channel_dropout(module):
    """Of a batch, or of a sample alone."""
    if module.inplace:
        return None
    batch = _dims(module) + 2
    of_one = f"torch.squeeze({_dropped(module, 'feature_dropout', 'torch.unsqueeze(input, 0)')}, 0)"
    return _when_rank({batch: _dropped(module, "feature_dropout", "input"), batch - 1: of_one},
                      f"{type(module).__name__}: expected a tensor of {batch - 1} or {batch} dimensions")


# What is more than one expression, or has other inputs.


def _embedding(module):
    if module.max_norm is not None:
        return None
    padding = -1 if module.padding_idx is None else module.padding_idx
    return _forward(f"torch.embedding(self.weight, input, {padding}, {module.scale_grad_by_freq}, {module.sparse})")


def _bilinear(module) -> str:
    return _forward(f"torch.bilinear(input1, input2, {_weight_and_bias(module)})", inputs="input1: Tensor, input2: Tensor")


def _of_two(text: str):
    return lambda m: _forward(text.format(m=m), inputs="x1: Tensor, x2: Tensor")


def _rrelu(module) -> str:
    found = f"torch.rrelu(input, {module.lower}, {module.upper}, self.training)"
    return _forward(f"torch.copy_(input, {found})" if module.inplace else found)


def _sequential(module) -> str:
    return "def forward(self, input: Tensor) -> Tensor:\n" + "".join(
        f'  input = getattr(self, "{name}").forward(input)\n' for name in module._modules) + "  return input"


_LAYERS = {
    "Identity": _of("input"), "Linear": lambda m: _forward(f"torch.linear(input, {_weight_and_bias(m)})"), "Bilinear": _bilinear, "Embedding": _embedding,
    "Flatten": _of("torch.flatten(input, {m.start_dim}, {m.end_dim})"),
    "Unflatten": lambda m: _forward(f"torch.unflatten(input, {m.dim}, {list(m.unflattened_size)})"),
    "ReLU": _activation("relu"), "ReLU6": _activation("relu6"), "SiLU": _activation("silu"), "Mish": _activation("mish"), "SELU": _activation("selu"),
    "Hardswish": _activation("hardswish"), "Hardsigmoid": _activation("hardsigmoid"), "ELU": _activation("elu", ", {m.alpha}, 1, 1"),
    "CELU": _activation("celu", ", {m.alpha}"), "LeakyReLU": _activation("leaky_relu", ", {m.negative_slope}"),
    "Hardtanh": _activation("hardtanh", ", {m.min_val}, {m.max_val}"), "Threshold": _activation("threshold", ", {m.threshold}, {m.value}"),
    "Tanh": _of("torch.tanh(input)"), "Sigmoid": _of("torch.sigmoid(input)"), "LogSigmoid": _of("torch.log_sigmoid(input)"),
    "GELU": _of("torch.gelu(input, approximate='{m.approximate}')"), "GLU": _of("torch.glu(input, {m.dim})"), "Softmax": _of("torch.softmax(input, {m.dim})"),
    "LogSoftmax": _of("torch.log_softmax(input, {m.dim})"), "Softmin": _of("torch.softmax(torch.neg(input), {m.dim})"),
    "Softmax2d": lambda m: _when_rank(dict.fromkeys((4, 3), "torch.softmax(input, -3)"), "Softmax2d: expected a tensor of 3 or 4 dimensions"),
    "Softsign": _of("torch.div(input, torch.add(torch.abs(input), 1))"), "Tanhshrink": _of("torch.sub(input, torch.tanh(input))"),
    "Hardshrink": _of("torch.hardshrink(input, {m.lambd})"), "Softshrink": _of("torch.softshrink(input, {m.lambd})"),
    "Softplus": _of("torch.softplus(input, {m.beta}, {m.threshold})"), "PReLU": _of("torch.prelu(input, self.weight)"), "RReLU": _rrelu,
    "LayerNorm": _layer_norm, "LocalResponseNorm": _local_response_norm,
    "GroupNorm": lambda m: _forward(f"torch.group_norm(input, {m.num_groups}, {_weight_and_bias(m)}, {m.eps})"),
    "RMSNorm": lambda m: _forward(f"torch.rms_norm(input, {list(m.normalized_shape)}, {_optional(m, 'weight')}, {m.eps})"),
    "Dropout": _dropout("dropout"), "AlphaDropout": _dropout("alpha_dropout"), "FeatureAlphaDropout": _dropout("feature_alpha_dropout"),
    "Dropout1d": _channel_dropout, "Dropout2d": lambda m: _forward(_dropped(m, "feature_dropout", "input")), "Dropout3d": _channel_dropout,
    "Upsample": _upsample, "UpsamplingNearest2d": _upsample, "UpsamplingBilinear2d": _upsample,
    "PixelShuffle": _of("torch.pixel_shuffle(input, {m.upscale_factor})"), "PixelUnshuffle": _of("torch.pixel_unshuffle(input, {m.downscale_factor})"),
    "ChannelShuffle": _of("torch.channel_shuffle(input, {m.groups})"), "Unfold": _columns("im2col", "kernel_size", "dilation", "padding", "stride"),
    "Fold": _columns("col2im", "output_size", "kernel_size", "dilation", "padding", "stride"),
    "CosineSimilarity": _of_two("torch.cosine_similarity(x1, x2, {m.dim}, {m.eps})"),
    "PairwiseDistance": _of_two("torch.pairwise_distance(x1, x2, {m.norm}, {m.eps}, {m.keepdim})"),
    "Sequential": _sequential, "ModuleList": lambda m: "", "ModuleDict": lambda m: "",
}
for _kind, _source in {"Conv": _conv, "ConvTranspose": _conv_transpose, "BatchNorm": _batch_norm, "InstanceNorm": _instance_norm, "MaxPool": _max_pool,
                       "AvgPool": _avg_pool, "AdaptiveAvgPool": _adaptive_avg_pool, "AdaptiveMaxPool": _adaptive_max_pool, "LPPool": _lp_pool, "ConstantPad": _pad,
                       "ZeroPad": _pad, "ReflectionPad": _pad, "ReplicationPad": _pad, "CircularPad": _pad}.items():
    _LAYERS.update({f"{_kind}{dims}d": _source for dims in (1, 2, 3)})


def _is_written(value) -> bool:
    """Infinite numbers cannot be written in the text."""
    return not isinstance(value, float) or math.isfinite(value)


def layer_source(module):
    """The methods of a layer; None for what is not written here."""
    if not type(module).__module__.startswith("tensord.engine.nn"):
        return None
    kind = next((base.__name__ for base in type(module).__mro__ if base in (nn.Sequential, nn.ModuleList, nn.ModuleDict)), type(module).__name__)
    if kind not in _LAYERS or not all(map(_is_written, vars(module).values())):
        return None
    source = _LAYERS[kind](module)
    return source.replace("'", '"') if source else source
