"""Estimates the effect of rounding on a program: PyTorch runs it with every result moved to a random neighboring float.

A single run may be exact by chance, mainly near 0: x - x.mean() of one element is exactly 0 there, and a rounding error
elsewhere.
"""

from __future__ import annotations

import torch
from torch._decomp import get_decompositions
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
# Computed step by step, so that their inner rounding counts.
DECOMPOSED = get_decompositions([aten.native_layer_norm, aten.native_group_norm, aten.native_batch_norm, aten._softmax, aten._log_softmax])
# Operators that return existing values.
EXACT = set("""_to_copy abs amax amin aminmax alias as_strided bernoulli broadcast_tensors cat ceil clamp clamp_max clamp_min clone constant_pad_nd copy cummax
cummin detach diag diag_embed diagonal dropout empty empty_like expand eye fill flip floor fmax fmin frac full full_like gather hardtanh heaviside index
index_copy index_fill index_put _index_put_impl index_select kthvalue lift lift_fresh masked_fill masked_scatter masked_select max maximum median min minimum
mode narrow neg nan_to_num new_empty new_full new_zeros nextafter ones ones_like permute pixel_shuffle pixel_unshuffle positive put reflection_pad1d
reflection_pad2d relu repeat repeat_interleave replication_pad1d replication_pad2d replication_pad3d _reshape_alias resize roll round scalar_tensor scatter
select set sign sgn slice sort split split_with_sizes squeeze stack t take threshold topk transpose tril triu trunc unbind unfold unsqueeze _unsafe_view
view where zero zeros zeros_like max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d adaptive_max_pool3d upsample_nearest1d
upsample_nearest2d upsample_nearest3d channel_shuffle embedding unique_dim _unique2 copysign arange""".split())


class Rounding(TorchDispatchMode):
    """Moves each float32 and float64 result of an operator up or down by one, or leaves it."""

    def __init__(self, seed: int):
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in DECOMPOSED:
            with self:
                return DECOMPOSED[func](*args, **kwargs)
        result = func(*args, **kwargs)
        if func.overloadpacket.__name__.rstrip("_") not in EXACT:
            for tensor in result if isinstance(result, (list, tuple)) else [result]:
                if isinstance(tensor, torch.Tensor) and tensor.dtype in (torch.float32, torch.float64):
                    self.move(tensor)
        return result

    def move(self, tensor: torch.Tensor):
        towards = torch.randint(-1, 2, tensor.shape, generator=self.generator).to(tensor.dtype) * torch.inf
        moved = torch.where(torch.isnan(towards) | (tensor == 0) | torch.isinf(tensor), tensor, torch.nextafter(tensor, towards))
        tensor.copy_(moved)
