"""TorchScript source of nn layers for _scripting, with the layer's options as constants."""

from __future__ import annotations

from tensord.engine import nn


def _forward(result: str, *before: str) -> str:
    lines = "".join(f"  {line}\n" for line in before)
    return f"def forward(self, input: Tensor) -> Tensor:\n{lines}  return {result}"


def _optional(module, name: str) -> str:
    return f"self.{name}" if getattr(module, name) is not None else "None"


def _conv(module, dims: int) -> str:
    if module.padding_mode != "zeros":
        return ""
    padding = repr(module.padding) if isinstance(module.padding, str) else list(module.padding)
    return _forward(f"torch.conv{dims}d(input, self.weight, {_optional(module, 'bias')}, {list(module.stride)}, {padding}, {list(module.dilation)}, "
                    f"{module.groups})").replace("'", '"')


def _batch_norm(module) -> str:
    if module.momentum is None or not module.track_running_stats:
        return ""
    return _forward(f"torch.batch_norm(input, {_optional(module, 'weight')}, {_optional(module, 'bias')}, self.running_mean, self.running_var, "
                    f"self.training, {module.momentum}, {module.eps}, False)", "if self.training:", "  _ = torch.add_(self.num_batches_tracked, 1)")


def _sequential(module) -> str:
    return "def forward(self, input: Tensor) -> Tensor:\n" + "".join(
        f'  input = getattr(self, "{name}").forward(input)\n' for name in module._modules) + "  return input"


_SIMPLE = {
    "ReLU": "torch.relu(input)", "Tanh": "torch.tanh(input)", "Sigmoid": "torch.sigmoid(input)", "SiLU": "torch.silu(input)", "Identity": "input",
    "Mish": "torch.mish(input)", "SELU": "torch.selu(input)", "Hardswish": "torch.hardswish(input)", "ReLU6": "torch.relu6(input)",
}


def layer_source(module):
    """Source of the layer's methods; None for layers that are not supported here."""
    kind = type(module).__name__
    if not type(module).__module__.startswith("tensord.engine.nn"):
        return None
    if kind in _SIMPLE:
        return _forward(_SIMPLE[kind])
    if kind == "Linear":
        return _forward(f"torch.linear(input, self.weight, {_optional(module, 'bias')})")
    if kind in ("Conv1d", "Conv2d", "Conv3d"):
        return _conv(module, int(kind[4])) or None
    if kind in ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d"):
        return _batch_norm(module) or None
    if kind == "LayerNorm":
        return _forward(f"torch.layer_norm(input, {list(module.normalized_shape)}, {_optional(module, 'weight')}, {_optional(module, 'bias')}, {module.eps})")
    if kind == "Embedding" and module.max_norm is None:
        padding = -1 if module.padding_idx is None else module.padding_idx
        return _forward(f"torch.embedding(self.weight, input, {padding}, {module.scale_grad_by_freq}, {module.sparse})")
    if kind == "Dropout":
        return _forward(f"torch.dropout(input, {module.p}, self.training)")
    if kind == "Flatten":
        return _forward(f"torch.flatten(input, {module.start_dim}, {module.end_dim})")
    if kind in ("Softmax", "LogSoftmax"):
        return _forward(f"torch.{'softmax' if kind == 'Softmax' else 'log_softmax'}(input, {module.dim})")
    if isinstance(module, nn.Sequential):
        return _sequential(module)
    if isinstance(module, nn.ModuleList):
        return ""
    return None
