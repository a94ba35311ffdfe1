"""What a campaign of edits came to: holes, edits that proved nothing, and work that was done again for nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from mutants import Mutant

Units = dict[str, dict[str, list[str]]]


@dataclass
class Findings:
    """What all mutants of a campaign came to."""

    holes: list[str] = field(default_factory=list)
    broken: int = 0  # no unit was computed to the end
    tried: Counter[str] = field(default_factory=Counter)  # room -> mutants that ran
    changed: int = 0  # mutants that changed a number
    imprecise: Counter[str] = field(default_factory=Counter)  # file -> units made again for nothing
    keys_changed: int = 0  # units whose key changed
    for_nothing: int = 0  # of these, units whose numbers did not

    def add(self, mutant: Mutant, before: Units, after: Units | None) -> str:
        """Compare one mutant's units with those of the sources as they are; what it came to, in a line, and a line more for each hole."""
        if after is None or all(digest == "broken" for _, digest in after["job"].values()):
            self.broken += 1
            return "did not run"
        self.tried[mutant.file.partition("/")[0]] += 1
        holes, moved, remade, needless = [], 0, 0, 0
        for kind, units in before.items():
            for name, (key, digest) in units.items():
                new_key, new_digest = after[kind].get(name, (key, "broken"))
                if new_digest == "broken":
                    continue
                moved += new_digest != digest
                if new_key == key and new_digest != digest:
                    where = f"{mutant.file}:{mutant.line} {mutant.what}"
                    holes.append(f"{where}: {kind} {name} has other numbers under the same key")
                remade += new_key != key
                needless += new_key != key and new_digest == digest
        self.holes += holes
        self.changed += moved > 0
        self.keys_changed += remade
        self.for_nothing += needless
        if needless:
            self.imprecise[mutant.file] += needless
        return "\n".join([f"{remade} keys changed, {moved} numbers", *(f"  HOLE {hole}" for hole in holes)])

    def lines(self) -> Iterator[str]:
        """The findings for a person."""
        yield f"{sum(self.tried.values())} mutants computed, {self.broken} did not run; {self.changed} changed a number"
        yield f"holes: {len(self.holes)}"
        yield from (f"  {hole}" for hole in self.holes)
        share = self.for_nothing / self.keys_changed if self.keys_changed else 0.0
        yield f"made again for nothing: {self.for_nothing} of {self.keys_changed} units whose key changed ({share:.0%})"
        yield from (f"  {count:5d} {file}" for file, count in self.imprecise.most_common(10))
