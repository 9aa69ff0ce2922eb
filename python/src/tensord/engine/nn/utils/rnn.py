"""Sequences of different lengths in one tensor: padded, or packed step by step for recurrent layers."""

from __future__ import annotations

import collections

from tensord.engine import _engine
from tensord.engine._engine import Tensor

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence",
    "unpack_sequence", "unpad_sequence",
]

_Fields = collections.namedtuple("_Fields", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])


class PackedSequence(_Fields):
    """The elements of all sequences, step after step: the first batch_sizes[0] rows of `data` are the first elements,
    the next batch_sizes[1] rows the second elements of the sequences that have one. Row i of a step belongs to sequence
    sorted_indices[i], or i without them."""

    __slots__ = ()

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise ValueError("PackedSequence: expected data and batch_sizes")
            data, batch_sizes = data
        if batch_sizes.device.type != "cpu":
            raise ValueError(f"batch_sizes should always be on CPU. Instead got device {batch_sizes.device}")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs) -> "PackedSequence":
        """Applies Tensor.to to the data; the indices move to its device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        return type(self)(data, self.batch_sizes, *(
            None if indices is None else indices.to(data.device) for indices in (self.sorted_indices, self.unsorted_indices)))

    def cpu(self) -> "PackedSequence":
        return self.to("cpu")

    def double(self) -> "PackedSequence":
        return self.to(_engine.float64)

    def float(self) -> "PackedSequence":
        return self.to(_engine.float32)

    def half(self) -> "PackedSequence":
        return self.to(_engine.float16)

    def long(self) -> "PackedSequence":
        return self.to(_engine.int64)

    def int(self) -> "PackedSequence":
        return self.to(_engine.int32)

    def short(self) -> "PackedSequence":
        return self.to(_engine.int16)

    def char(self) -> "PackedSequence":
        return self.to(_engine.int8)

    def byte(self) -> "PackedSequence":
        return self.to(_engine.uint8)

    @property
    def is_cuda(self) -> bool:
        return self.data.device.type == "cuda"

    def is_pinned(self) -> bool:
        return self.data.is_pinned()

    def pin_memory(self) -> "PackedSequence":
        return type(self)(self.data.pin_memory(), self.batch_sizes, *(
            None if indices is None else indices.pin_memory() for indices in (self.sorted_indices, self.unsorted_indices)))


def invert_permutation(permutation):
    """The inverse permutation; None for None."""
    return None if permutation is None else permutation.argsort()


def _select(tensor, dim: int, indices):
    return _engine._operator("aten::index_select")(tensor, dim, indices)


def pack_padded_sequence(input, lengths, batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences [steps, batch, …]. They must be sorted by decreasing length unless enforce_sorted is false."""
    lengths = lengths.long() if isinstance(lengths, Tensor) else _engine._make_tensor([int(length) for length in lengths], _engine.int64)
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = lengths.sort(descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = _select(input, 0 if batch_first else 1, sorted_indices)
    data, batch_sizes = _engine._operator("aten::_pack_padded_sequence")(input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, sorted_indices)


def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None):
    """The sequences in their original order, padded to the longest or to total_length, and their lengths."""
    steps = sequence.batch_sizes.shape[0]
    if total_length is not None:
        if total_length < steps:
            raise ValueError(f"Expected total_length to be at least the length of the longest sequence in input, but got "
                             f"total_length={total_length} and max sequence length being {steps}")
        steps = total_length
    padded, lengths = _engine._operator("aten::_pad_packed_sequence")(sequence.data, sequence.batch_sizes, batch_first, padding_value, steps)
    order = sequence.unsorted_indices
    if order is None:
        return padded, lengths
    return _select(padded, 0 if batch_first else 1, order), _select(lengths, 0, order.to(lengths.device))


def pad_sequence(sequences, batch_first: bool = False, padding_value: float = 0.0) -> Tensor:
    """Pads tensors [length, …] with padding_value to one tensor [longest, batch, …]."""
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    elif not hasattr(sequences, "__iter__"):
        raise RuntimeError(f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}")
    return _engine._operator("aten::pad_sequence")(list(sequences), batch_first, padding_value)


def unpad_sequence(padded_sequences, lengths, batch_first: bool = False) -> list:
    """The inverse of pad_sequence."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [padded[:int(length)] for padded, length in zip(padded_sequences.unbind(0), lengths)]


def pack_sequence(sequences, enforce_sorted: bool = True) -> PackedSequence:
    """Packs tensors [length, …]."""
    lengths = [sequence.shape[0] for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list:
    """The inverse of pack_sequence."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
