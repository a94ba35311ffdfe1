"""Stored rows of a measure that goes from item to item. Each item's rows are stored under the components that build the item, so after an
edit or an addition of a component only the items that use it are measured.

An item's key holds the item, its components with their options, code and files, the measure's options except those that choose items (its
facts PARTS and CHOOSES), and the measure's code except the components that it might use for other items. While an item is measured, no
other component may be loaded.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from rankfall import components
from rankfall.design import Component
from rankfall.measure.context import Parts, Rows
from rankfall.run.guards import Unproved, check_job, restrict_reads
from rankfall.run.keys.files import files_of
from rankfall.run.plan.cell import digest
from rankfall.run.store.rows import ITEMS
from rankfall.sources.fingerprint import Sources

if TYPE_CHECKING:
    from rankfall.run.plan import MeasurePlan
    from rankfall.run.store import Store


class KeptItems:
    """The stored rows of one measure, in a job that has fixed its keys."""

    def __init__(self, measure: "MeasurePlan", store: "Store") -> None:
        self.measure, self.store, self.sources = measure, store, Sources()
        self.name = measure.component.name + ITEMS
        self.codes: dict[tuple[str, Component], dict[str, str]] = {}

    def keys(self, name: str, items: Sequence[Any], made: Sequence[Parts]) -> list[str]:
        facts = components.facts_of("measure", self.measure.component.name)
        choices = {*facts.get("PARTS", {}), *facts.get("CHOOSES", ())}
        options = {option: value for option, value in self.measure.options.items() if option not in choices}
        about = digest("items", self.measure.component.name, name, options, dict(self.measure.always))
        plain = [asdict(item) if is_dataclass(item) else item for item in items]  # type: ignore[call-overload, arg-type]
        of = {parts: sorted(map(self.identity, parts)) for parts in set(made)}
        return [digest(about, item, of[parts]) for item, parts in zip(plain, made, strict=True)]

    def find(self, keys: Sequence[str]) -> dict[str, Rows]:
        found = self.store.find_rows(self.name, keys)
        print(f"{self.measure.name}: {len(keys)} items: {len(found)} in store", flush=True)
        return found

    def within(self, parts: Parts) -> AbstractContextManager[None]:
        """Return a context for the measurement of items built from these components."""
        codes = [self.measure.always, *map(self.code_of, parts)]
        return restrict_reads({name: digest for code in codes for name, digest in code.items()})

    def save(self, rows: Mapping[str, Rows]) -> None:
        """Store rows that are not empty. Rows are empty if an optional package is missing, which may be installed later."""
        if found := {key: some for key, some in rows.items() if some}:
            check_job()
            self.store.save_rows(self.name, found)

    def identity(self, part: tuple[str, Component]) -> str:
        kind, component = part
        return digest(kind, component.name, component.options, self.code_of(part))

    def code_of(self, part: tuple[str, Component]) -> dict[str, str]:
        """Return the digests of a component's code and files. All of them must be in the key of the whole measure."""
        if part not in self.codes:
            kind, component = part
            files = files_of(kind, component, f"measures.{self.measure.name}")
            self.codes[part] = self.sources.code_files([components.module_of(kind, component)]) | files
            if not self.codes[part].items() <= self.measure.code.items():
                raise Unproved(
                    f"measure {self.measure.name}: an item is made of {kind} {component}, which is not in the measure's key, so nothing is "
                    f"kept; name it in BUILDS, or in an option that is one of its PARTS"
                )
        return self.codes[part]
