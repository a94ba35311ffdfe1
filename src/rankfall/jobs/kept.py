"""Rows of a measure that goes from item to item, kept by what each item is made of: after an edit of one component, or where one more is
named, only the items that are made of it are measured.

An item's key holds the item, the measure's options but for those that choose items (its fact PARTS), the measure's own code and that of
the item's components. While an item is measured nothing else may be read.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from rankfall import components
from rankfall.code.files import files_of
from rankfall.code.fingerprint import Sources
from rankfall.code.unchanged import check_unchanged
from rankfall.code.watch import numerics
from rankfall.design import Component
from rankfall.measures._context import Parts, Rows
from rankfall.plan.build import roots_of
from rankfall.plan.cell import digest
from rankfall.plan.cells import module_of
from rankfall.store.rows import ITEMS

if TYPE_CHECKING:
    from rankfall.plan import MeasurePlan
    from rankfall.store import Store


Code = tuple[Mapping[str, str], str]  # digests by file, and of all together


class KeptItems:
    """Those of one measure, in a job that has fixed its keys."""

    def __init__(self, measure: "MeasurePlan", store: "Store") -> None:
        self.measure, self.store, self.sources = measure, store, Sources()
        self.name = measure.component.name + ITEMS
        self.own = self.code("measure", measure.component, roots_of(measure.component, measure.needs))
        described = components.describe("measure", measure.component.name)
        choices = described.facts.get("PARTS", {}) if described else {}
        self.options = {option: value for option, value in measure.options.items() if option not in choices}
        self.parts: dict[tuple[str, Component], Code] = {}

    def keys(self, items: Sequence[Any], made: Sequence[Parts]) -> list[str]:
        about = "item", self.measure.component.name, self.options, self.own[1]
        plain = [asdict(item) if is_dataclass(item) else item for item in items]  # type: ignore[call-overload, arg-type]
        codes = {parts: sorted(self.code_of(part)[1] for part in parts) for parts in set(made)}
        return [digest(*about, item, codes[parts]) for item, parts in zip(plain, made, strict=True)]

    def find(self, keys: Sequence[str]) -> dict[str, Rows]:
        found = self.store.find_rows(self.name, keys)
        print(f"{self.measure.name}: {len(keys)} items: {len(found)} in store", flush=True)
        return found

    def within(self, parts: Parts) -> AbstractContextManager[None]:
        """Around the measurement of items that are made of these components."""
        return numerics(self.own[0], *(self.code_of(part)[0] for part in parts))

    def save(self, rows: Mapping[str, Rows]) -> None:
        if rows:
            check_unchanged(self.measure.code)
            self.store.save_rows(self.name, rows)

    def code_of(self, part: tuple[str, Component]) -> Code:
        if part not in self.parts:
            self.parts[part] = self.code(*part, [module_of(*part)])
        return self.parts[part]

    def code(self, kind: str, component: Component, roots: list[str]) -> Code:
        """What comes with a component: the code that the roots import, and files that it names."""
        files = files_of(kind, component, f"measures.{self.measure.name}")
        return {**self.sources.code_files(roots), **files}, digest(self.sources.fingerprint(roots), files)
