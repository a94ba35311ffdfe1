"""Whether the files that keys were made from are still the same.

A job fixes its keys when it starts, but Python reads a component's file when it is first used, and an option's file when its data
are made. What was computed after an edit must not be kept under the old key, where it would be found for ever. So a job asks
before it keeps anything.
"""

from collections.abc import Iterator, Mapping

from rankfall.code.files import digests
from rankfall.code.fingerprint import Sources
from rankfall.errors import RankfallError


class Edited(RankfallError):
    """A file that keys depend on was changed while the job ran. The work in hand is not to blame, but cannot be kept."""


def check_unchanged(*codes: Mapping[str, str]) -> None:
    """Raise unless every file still has the digest that the plan gave it."""
    sources = Sources()
    known = {pair for code in codes for pair in code.items()}
    changed = sorted({name for name, before in known if before not in _digests(name, sources)})
    if changed:
        raise Edited(
            f"{', '.join(changed)} changed while the job ran; nothing was stored under a wrong key, "
            f"what had finished before is kept, run again"
        )


def _digests(name: str, sources: Sources) -> Iterator[str]:
    """What the code or file of this name hashes to now; nothing where it is gone."""
    if name.endswith(".py"):
        try:
            source = sources.source(name.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
        except RankfallError:  # half an edit: no longer Python
            source = None
        if source is not None and source.file == name:
            yield source.digest
    yield from digests(name)
