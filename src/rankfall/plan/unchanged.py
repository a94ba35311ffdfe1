"""Whether the files that keys were made from are still the same.

A job fixes its keys when it starts, but Python reads a component's file when it is first used, and an option's file when its data
are made. What was computed after an edit must not be kept under the old key, where it would be found for ever. So a job asks
before it keeps anything.
"""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from rankfall import components
from rankfall.errors import RankfallError
from rankfall.plan.cell import digest
from rankfall.plan.fingerprint import SHORT, Sources


class Edited(RankfallError):
    """A file that keys depend on was changed while the job ran. The work in hand is not to blame, but cannot be kept."""


def check_unchanged(*codes: Mapping[str, str]) -> None:
    """Raise unless every file still has the digest that the plan gave it."""
    sources = Sources()
    known = {pair for code in {id(code): code for code in codes}.values() for pair in code.items()}
    changed = sorted({name for name, before in known if before not in _digests(name, sources)})
    if changed:
        raise Edited(
            f"{', '.join(changed)} changed while the job ran; nothing was stored under a wrong key, "
            f"what had finished before is kept, run again"
        )


def _digests(name: str, sources: Sources) -> Iterator[str]:
    """What the file of this name hashes to now, in each of the ways in which a plan hashes files; nothing where it is gone."""
    if name.endswith(".py"):
        try:
            source = sources.source(name.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
        except RankfallError:  # half an edit: no longer Python
            source = None
        if source is not None and source.file == name:
            yield source.digest
    path = Path(name).expanduser()  # named by an option: a file, or a module whose text is read
    spec = None if "/" in name else components.find_module(name)
    for named in (path, Path(spec.origin) if spec and spec.origin else path):
        if named.is_file():
            yield hashlib.sha256(named.read_bytes()).hexdigest()[:SHORT]
    own = Path(components.__file__).parents[1] / name  # the package's data
    if own.is_file():
        yield digest(own.read_text(encoding="utf-8", errors="replace"))
