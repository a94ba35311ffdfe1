"""Layouts of tensors. A dimension is a list of atoms (size, stride), outer to inner, so that no view needs a copy.

Merged dimensions keep the atoms of both, split dimensions divide them, and an expanded dimension has stride 0. The atom of the samples of a
batch is marked as the lane. Results have it innermost, so that few operations combine numbers within a vector.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

Shape = tuple[int, ...]


class Unsupported(Exception):
    """The machine does not support an operation or layout, which the message names."""

    place = ""  # file and line of the user's code, if it is noted


@dataclass(frozen=True)
class Atom:
    size: int
    stride: int
    lane: bool = False


Atoms = tuple[Atom, ...]


@dataclass(eq=False)
class Value:
    """Memory that instructions write, or an input."""

    size: int
    place: tuple[int, int] | None = None  # buffer and offset outside the arena
    first: int = -1  # first instruction that writes it
    last: int = -1  # last instruction that uses it
    offset: int = 0  # in the arena
    stored: bool = False  # False: only in registers of one fused group


@dataclass(eq=False)
class View:
    """A tensor: a value, seen through dimensions of atoms."""

    value: Value
    offset: int
    dims: tuple[Atoms, ...]

    @property
    def shape(self) -> Shape:
        return tuple(size_of(dim) for dim in self.dims)

    def with_dims(self, dims: Iterable[Iterable[Atom]], offset: int = 0) -> "View":
        """Return a view of the same memory with other dimensions, moved by `offset` numbers."""
        return View(self.value, self.offset + offset, tuple(tuple(dim) for dim in dims))


@dataclass(eq=False)
class OneHot(View):
    """A tensor with one number in each row along a dimension, and zeros elsewhere. Sums along the dimension need no computation."""

    dim: int
    number: Any  # a View of size 1 along that dimension, or a number


@dataclass(frozen=True)
class Full:
    """A tensor filled with one number. It has no memory."""

    number: float
    shape: Shape


def size_of(atoms: Iterable[Atom]) -> int:
    return math.prod(atom.size for atom in atoms)


def split(atoms: Sequence[Atom], cuts: Iterable[int]) -> Atoms:
    """Refine the atoms of one dimension so that it can be cut into inner parts of these sizes."""
    refined: list[Atom] = []
    inner = 1
    for atom in reversed(atoms):
        inside = sorted(cut // inner for cut in cuts if inner < cut < inner * atom.size)
        before = 1
        for cut in [*inside, atom.size]:
            if cut % before or atom.size % cut:
                raise Unsupported(
                    f"a reshape that cuts a dimension of {[atom.size for atom in atoms]}, which was joined, into parts of {sorted(cuts)}"
                )
            if cut > before:
                refined.append(Atom(cut // before, atom.stride * before, atom.lane))
            before = cut
        inner *= atom.size
    return tuple(reversed(refined))


def cuts_of(sizes: Iterable[int]) -> set[int]:
    """Return the sizes of the inner parts of a dimension whose atoms have these sizes, outer to inner."""
    cuts, product = set(), 1
    for size in reversed(list(sizes)):
        product *= size
        cuts.add(product)
    return cuts


def merge(atoms: Iterable[Atom]) -> Atoms:
    """Drop atoms of size 1 and merge contiguous neighbours, except lanes."""
    merged: list[Atom] = []
    for atom in atoms:
        if atom.size == 1:
            continue
        before = merged[-1] if merged else None
        if before and not atom.lane and not before.lane and before.stride == atom.stride * atom.size:
            merged[-1] = Atom(before.size * atom.size, atom.stride)
        else:
            merged.append(atom)
    return tuple(merged)


def reshape(view: View, shape: Sequence[int]) -> View:
    sizes = list(shape)
    if -1 in sizes:
        sizes[sizes.index(-1)] = math.prod(view.shape) // -math.prod(sizes)
    atoms = list(split([atom for dim in view.dims for atom in dim], cuts_of(sizes)))
    dims = []
    for size in reversed(sizes):
        part: list[Atom] = []
        while size_of(part) < size:
            part.append(atoms.pop())
        if size_of(part) != size:
            raise Unsupported(
                f"a reshape of {tuple(view.shape)} to {tuple(shape)}, which cuts dimensions and joins them again otherwise"
            )
        dims.append(merge(reversed(part)))
    return view.with_dims(reversed(dims))


def contiguous(value: Value, shape: Shape, lane_dim: int | None = None) -> View:
    atoms = [Atom(size, stride, i == lane_dim) for i, (size, stride) in enumerate(zip(shape, run_strides(shape)))]
    return View(value, 0, tuple((atom,) if atom.size > 1 else () for atom in atoms))


@dataclass(frozen=True, eq=False)
class Extent:
    """An atom that several tensors share: its dimension, its size, whether it is the lane, and the stride in each tensor."""

    dim: Any
    size: int
    lane: bool
    strides: tuple[int, ...]


def does_not_fit(dims: Sequence[Atoms]) -> str:
    sizes = " and ".join(" x ".join(str(atom.size) for atom in dim) or "1" for dim in dims)
    return f"an operation on tensors whose dimension of one size was joined from other parts: {sizes}"


def align(views: Sequence[View], shape: Shape) -> list[list[Extent]]:
    """Refine the dimensions of tensors that are broadcast to one shape to common atoms."""
    aligned = []
    for i, whole in enumerate(shape):
        dims = [
            view.dims[j] if (j := i - (len(shape) - len(view.dims))) >= 0 else ()
            for view in views
        ]  # fmt: skip
        cuts = set().union(*(cuts_of(atom.size for atom in dim) for dim in dims)) | {whole}
        parts = [split(dim, cuts) if dim else None for dim in dims]
        edges = [1, *sorted(cut for cut in cuts if cut > 1)]
        if any(b % a for a, b in pairwise(edges)):
            raise Unsupported(does_not_fit(dims))
        extents = []
        for k, size in enumerate(reversed([b // a for a, b in pairwise(edges)])):
            if any(part is not None and part[k].size != size for part in parts):
                raise Unsupported(does_not_fit(dims))
            lane = any(part is not None and part[k].lane for part in parts)
            extents.append(Extent(i, size, lane, tuple(0 if part is None else part[k].stride for part in parts)))
        aligned.append(extents)
    return aligned


def flat(extents: Iterable[Iterable[Extent]]) -> list[Extent]:
    return [extent for dim in extents for extent in dim]


def collapse(sizes: Sequence[int], rows: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Merge neighbouring sizes that are contiguous in every row of strides."""
    merged: list[int] = []
    strides: list[list[int]] = [[] for _ in rows]
    for i, size in enumerate(sizes):
        if size == 1:
            continue
        if merged and all(joined[-1] == row[i] * size for joined, row in zip(strides, rows)):
            merged[-1] *= size
            for joined, row in zip(strides, rows):
                joined[-1] = row[i]
        else:
            merged.append(size)
            for joined, row in zip(strides, rows):
                joined.append(row[i])
    return merged, strides


def offsets(sizes: Iterable[int], strides: Iterable[int]) -> np.ndarray:
    """Return the offset of each element. The last size varies fastest."""
    table = np.zeros(1, np.int64)
    for size, stride in zip(sizes, strides):
        table = (table[:, None] + np.arange(size) * stride).reshape(-1)
    return table


def offsets_of(extents: Sequence[Extent], k: int) -> np.ndarray:
    """Return the offsets in tensor k of the elements of these extents."""
    return offsets([extent.size for extent in extents], [extent.strides[k] for extent in extents])


def run_strides(sizes: Sequence[int]) -> list[int]:
    """Return the strides of a contiguous tensor."""
    strides, stride = [], 1
    for size in reversed(sizes):
        strides.append(stride)
        stride *= size
    return strides[::-1]
