"""The blocks of a module, which map the states of one layer to those of the next.

They are found without a forward pass: lists (`nn.ModuleList`, `nn.Sequential`) whose members have submodules; else adjacent members of
one class; else a class that occurs several times. The candidate with the most parameters wins, since the parts of a block (such as
experts) have fewer parameters than all blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import nn

from rankfall.errors import RankfallError
from rankfall.streams.names import Wanted, describe_classes, find_named, named_children, plain, unwrap

NEVER_CALLED = (nn.ModuleList, nn.ModuleDict)


class NoBlocks(RankfallError):
    """An error for a model without modules that can be blocks."""


@dataclass(frozen=True)
class Blocks:
    """Names and modules of the blocks, in order. `ancestors` contain some or all of them, so their calls are passes through the model."""

    names: tuple[str, ...]
    modules: tuple[nn.Module, ...]
    ancestors: tuple[nn.Module, ...]
    others: tuple[str, ...] = ()  # other candidates, such as an encoder's blocks beside the decoder's
    missing: str = ""  # why no module is known to be a block; then the layers are found in the first pass

    def summary(self) -> str:
        if not self.names:
            return "layers to be found in the first pass"
        kinds = sorted({type(unwrap(one)).__name__ for one in self.modules} or {"residual layer"})
        ends = f"{self.names[0]} .. {self.names[-1]}" if len(self.names) > 1 else self.names[0]
        others = f"; not watched: {', '.join(self.others)}" if self.others else ""
        return f"{len(self.names)} x {' / '.join(kinds)} ({ends}{others})"


def find_blocks(model: nn.Module, wanted: Wanted | None = None) -> Blocks:
    """Return the blocks that `wanted` names (a glob, a pattern, names or modules), or find them if it is None."""
    if not isinstance(model, nn.Module):
        raise RankfallError(f"watch() takes a torch.nn.Module, not {type(model).__name__}")
    every = dict(model.named_modules())
    named = {plain(name): one for name, one in every.items()}  # a wrapped module replaces its wrapper
    try:
        found = search_run(named) if wanted is None else called(find_named(model, wanted))
    except NoBlocks as error:  # additions may stand in the code of a module, as x = x + self.attention(x) in a loop
        if all(type(one).__module__.startswith("torch.nn.") for one in every.values()):
            raise
        return Blocks((), (), (model,), missing=str(error))
    inside = {id(part) for one in found.values() for part in one.modules()}
    members = set(map(id, found.values()))
    above = [
        one
        for one in dict.fromkeys(model.modules())
        if id(one) not in inside
        and not isinstance(one, NEVER_CALLED)
        and any(id(part) in members for part in one.modules())
    ]
    others = other_lists(named, found) if wanted is None else ()
    return Blocks(tuple(found), tuple(found.values()), tuple(above), others)


def called(found: dict[str, nn.Module]) -> dict[str, nn.Module]:
    """Return the named blocks. Raise an error if one of them is never called by itself."""
    loose = next((name for name, one in found.items() if isinstance(one, NEVER_CALLED) or not name), None)
    if loose is not None:
        raise RankfallError(
            f"blocks: {loose or 'the model'} is a {type(found[loose]).__name__}, which is no block: name what is in it that returns the "
            f"states, such as blocks='{f'{loose}.*'.strip('.')}'"
        )
    return found


def other_lists(named: dict[str, nn.Module], found: dict[str, nn.Module]) -> tuple[str, ...]:
    """Return further lists of two or more candidates that neither contain nor lie in the chosen blocks."""
    runs = [list(run) for run in lists(named)]
    apart = [
        run[0].rpartition(".")[0]
        for run in runs
        if not any(
            f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.") for one in run for other in found
        )
    ]
    return tuple(one for one in apart if one and not any(one.startswith(f"{other}.") for other in apart))


def search_run(named: dict[str, nn.Module]) -> dict[str, nn.Module]:
    """Return the run with the most parameters, of the first kind that has a run."""
    # Lists of lists hold the branches of layers, which do not return the state.
    split = [
        name
        for name, one in named.items()
        if isinstance(one, nn.ModuleList) and any(isinstance(part, NEVER_CALLED) for part in one)
    ]
    whole = {name: one for name, one in named.items() if not any(name.startswith(f"{piece}.") for piece in split)}
    for kind in (lists, neighbours, classes):
        runs = list(kind(whole))
        if runs:
            return max(runs, key=weights_of)
    short = list(lists(whole, least=1))
    if short:
        return max(short, key=weights_of)
    pieces = f"; {split[0]} holds lists, of which no module returns the state of a layer" if split else ""
    raise NoBlocks(
        f"no blocks were found in {type(named['']).__name__}: blocks are two or more modules of one kind, with parts of their own, that "
        f"map states (batch, tokens, width) to states; there are {describe_classes(named)}{pieces}. Name them: blocks='layers.*', or a "
        "list of names or modules"
    )


def lists(named: dict[str, nn.Module], least: int = 2) -> Iterator[dict[str, nn.Module]]:
    """Yield all members of each `nn.ModuleList`, and the longest run of one class of each `nn.Sequential`."""
    for name, one in named.items():
        if isinstance(one, nn.ModuleList) and all(map(can_be_block, one)) and len(one) >= least:
            yield named_children(name, one)
        elif isinstance(one, nn.Sequential):
            run = longest(named_children(name, one))
            if len(run) >= least:
                yield run


def neighbours(named: dict[str, nn.Module]) -> Iterator[dict[str, nn.Module]]:
    """Yield the longest run of one class among the members of each other module."""
    for name, one in named.items():
        if not isinstance(one, (nn.ModuleList, nn.Sequential)):
            run = longest(named_children(name, one))
            if len(run) >= 2:
                yield run


def classes(named: dict[str, nn.Module]) -> Iterator[dict[str, nn.Module]]:
    """Yield all modules of each class, wherever they are."""
    groups: dict[type, dict[str, nn.Module]] = {}
    for name, one in named.items():
        if name and can_be_block(one):
            group = groups.setdefault(type(unwrap(one)), {})
            if not any(name.startswith(f"{other}.") for other in group):
                group[name] = one
    yield from (group for group in groups.values() if len(group) >= 2)


def can_be_block(module: nn.Module) -> bool:
    """Return whether a module can be a block: it is called, has weights, and is no single operation of PyTorch."""
    inner = unwrap(module)
    if isinstance(inner, NEVER_CALLED) or next(inner.parameters(), None) is None:
        return False
    own = not type(inner).__module__.startswith("torch.nn.modules")
    return own or any(True for _ in inner.children())


def longest(children: dict[str, nn.Module]) -> dict[str, nn.Module]:
    """Return the longest run of adjacent modules of one class that can be blocks."""
    best: dict[str, nn.Module] = {}
    run: dict[str, nn.Module] = {}
    for name, one in children.items():
        same = run and type(unwrap(one)) is type(unwrap(next(iter(run.values()))))
        run = ({**run, name: one} if same else {name: one}) if can_be_block(one) else {}
        best = run if len(run) > len(best) else best
    return best


def weights_of(run: dict[str, nn.Module]) -> tuple[int, int]:
    distinct = {id(weight): weight.numel() for one in run.values() for weight in one.parameters()}
    return sum(distinct.values()), len(run)
