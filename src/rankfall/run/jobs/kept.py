"""Store the rows of a measure's items under the components that build each item. After an edit or an addition of a component, the measure
computes only the items that use it.

An item's key holds the item, its components with their options, code and files, the measure's options except those that choose items (its
facts PARTS and CHOOSES), and the measure's code except the components that it might use for other items. During the measurement of an item,
no other component may be loaded.
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
    """The stored rows of a measure's items, a `RowCache`, in a job with fixed keys."""

    def __init__(self, measure: "MeasurePlan", store: "Store") -> None:
        self.measure, self.store, self.sources = measure, store, Sources()
        self.name = measure.component.name + ITEMS
        self.codes: dict[tuple[str, Component], dict[str, str]] = {}

    def keys(self, name: str, items: Sequence[Any], parts: Sequence[Parts]) -> list[str]:
        """Return the key of each item; `name` is that of a call of `Context.rows`, `parts` the components of each item."""
        facts = components.facts_of("measure", self.measure.component.name)
        choices = {*facts.get("PARTS", {}), *facts.get("CHOOSES", ())}
        options = {option: value for option, value in self.measure.options.items() if option not in choices}
        common = digest("items", self.measure.component.name, name, options, dict(self.measure.always))
        plain = [asdict(item) if is_dataclass(item) else item for item in items]  # type: ignore[call-overload, arg-type]
        identities = {group: sorted(map(self.identity, group)) for group in set(parts)}
        return [digest(common, item, identities[group]) for item, group in zip(plain, parts, strict=True)]

    def find(self, keys: Sequence[str]) -> dict[str, Rows]:
        """Return key -> stored rows of items."""
        stored = self.store.find_rows(self.name, keys)
        print(f"{self.measure.name}: {len(keys)} items: {len(stored)} in store", flush=True)
        return stored

    def within(self, parts: Parts) -> AbstractContextManager[None]:
        """Return a context for the measurement of items built from these components."""
        codes = [self.measure.always, *map(self.code_of, parts)]
        return restrict_reads({name: digest for code in codes for name, digest in code.items()})

    def save(self, rows: Mapping[str, Rows]) -> None:
        """Store rows that are not empty. Rows are empty if an optional package is missing, which may be installed later."""
        if full := {key: item_rows for key, item_rows in rows.items() if item_rows}:
            check_job()
            self.store.save_rows(self.name, full)

    def identity(self, part: tuple[str, Component]) -> str:
        """Return the digest of a component with its options, code and files."""
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
