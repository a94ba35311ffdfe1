"""Whether the results of a job match the keys under which they are stored: what was hashed at its start hashes to the same at its end.

Meanwhile `reads.py` refuses data that no key knows.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rankfall.errors import RankfallError
from rankfall.run.guards.reads import Code, Unproved, restrict_reads, verify, watch_job
from rankfall.run.keys.files import digests
from rankfall.run.keys.fingerprint import OWN, digest_like, find_source, module_of
from rankfall.run.keys.installed import PREFIX, version_of
from rankfall.trial.flags import unchanged_flags


class Edited(Unproved):
    """A file that keys depend on was changed while the job ran."""


@contextmanager
def prove_code(codes: Iterable[Code], results: Path | None = None) -> Iterator[None]:
    """Around all work of a job: users' components read nothing but what is in `codes`, and what this package keeps in `results`."""
    with watch_job(union(codes), results):
        yield


@contextmanager
def numerics(*codes: Code) -> Iterator[None]:
    """Around the computation of numbers in a job: users' components read only what is in these, and leave precision flags alone."""
    code = union(codes)
    users = sorted(name for name in code if name.endswith(".py") and not name.startswith(f"{OWN}/"))
    with restrict_reads(code):
        if not users:
            yield
            return

        def refuse(what: str, fix: str) -> Unproved:
            return Unproved(f"{' or '.join(users)} {what}, so nothing is kept\n  fix: {fix}")

        with unchanged_flags(refuse):
            yield


@contextmanager
def prove_numbers(*codes: Code) -> Iterator[None]:
    """Around one computation of a job: `numerics`, and afterwards these are still what the plan has hashed."""
    with numerics(*codes):
        yield
    check_unchanged(*codes)


def check_unchanged(*codes: Code) -> None:
    """Raise unless every file and installed version of these is what it was when the job began, and no read was refused."""
    verify()
    known = {pair for code in codes for pair in code.items()}
    changed = sorted({name for name, before in known if before not in current_digests(name, before)})
    if changed:
        raise Edited(
            f"{', '.join(changed)} changed while the job ran; nothing was stored under a wrong key, "
            f"what had finished before is kept, run again"
        )


def current_digests(name: str, planned: str) -> Iterator[str]:
    """What the code, file or distribution of this name hashes to now; nothing where there is none."""
    if name.startswith(PREFIX):
        yield version_of(name.removeprefix(PREFIX))
        return
    source = find_source(name)
    try:
        if source is not None:
            yield digest_like(planned, module_of(name), name, source.read_bytes())
    except (OSError, RankfallError):  # deleted, or half an edit: no longer Python
        pass
    yield from digests(name)


def union(codes: Iterable[Code]) -> Mapping[str, str]:
    """Return several codes as one."""
    return {name: digest for code in codes for name, digest in code.items()}
