"""The word vectors inside the ONNX file of the encoder, read in place: no model has to be loaded."""

from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bedstone.search.embedder import Vectors

# Numbers of fields in protocol buffers: ModelProto.graph, GraphProto.initializer, and of TensorProto the others.
GRAPH = 7
INITIALIZER = 5
DIMENSIONS = 1
FLOATS = 4
INTEGERS = 5
NAME = 8
RAW = 9
TABLE = "constant_0_quantized"  # the first constant of the graph (make_model.py)
MAX_TOKENS = 256  # 257 bytes fit into 16 bits


class WordTable:
    """Sums of word vectors: bytes that are scaled afterwards."""

    def __init__(self, codes: NDArray[np.uint8], scale: float, zero: int) -> None:
        self._codes = codes
        self._scale = scale
        self._zero = zero

    @classmethod
    def read(cls, model: Path) -> "Self | None":
        """Return the table of a model; None if the file is laid out in another way."""
        try:
            with model.open("rb") as file:
                data = memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))
            tensors = dict(_tensors(data))
            table, scale, zero = (tensors[name] for name in (TABLE, "constant_0_scale", "constant_0_zero_point"))
            start, length = table[RAW]
            columns = _varints(data, *table[DIMENSIONS])[-1]
            codes = np.frombuffer(data[start : start + length], np.uint8).reshape(-1, columns)
            scale_at, _ = scale[FLOATS]
            (zero_point,) = _varints(data, *zero[INTEGERS])
            return cls(codes, float(np.frombuffer(data[scale_at : scale_at + 4], "<f4")[0]), zero_point)
        except (OSError, ValueError, KeyError, IndexError):
            return None

    def sum(self, tokens: NDArray[np.int64]) -> Vectors:
        """Return the sum of the vectors of some tokens, the first ones of a long text."""
        ids = tokens[:MAX_TOKENS]
        sums = np.take(self._codes, ids, 0).sum(0, dtype=np.uint16)
        vector: Vectors = (sums.astype(np.float32) - self._zero * len(ids)) * np.float32(self._scale)
        return vector


def _tensors(data: memoryview) -> Iterator[tuple[str, dict[int, tuple[int, int]]]]:
    """Yield the constants of a model: their names, and where each field of them is."""
    for number, start, length in _fields(data, 0, len(data)):
        if number != GRAPH:
            continue
        for part, at, size in _fields(data, start, start + length):
            if part == INITIALIZER:
                fields = {field: (where, extent) for field, where, extent in _fields(data, at, at + size)}
                where, extent = fields[NAME]
                yield bytes(data[where : where + extent]).decode(), fields


def _fields(data: memoryview, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield number, place and length of each field of a message that has a length."""
    while at < end:
        key, at = _varint(data, at)
        match key & 7:
            case 0:
                start = at
                _, at = _varint(data, at)
                yield key >> 3, start, at - start
            case 2:
                length, at = _varint(data, at)
                yield key >> 3, at, length
                at += length
            case 5:
                at += 4
            case 1:
                at += 8
            case kind:
                raise ValueError(f"unknown kind of field: {kind}")


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:  # noqa: PLR2004 - the highest bit says that another byte follows
            return value, at
        shift += 7


def _varints(data: memoryview, at: int, length: int) -> list[int]:
    values, end = [], at + length
    while at < end:
        value, at = _varint(data, at)
        values.append(value)
    return values
