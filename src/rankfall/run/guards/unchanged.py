"""Check that the results of a job match their keys: files that were hashed for the plan have the same hash after the computation.

During the computation, `reads.py` refuses data that no key covers.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rankfall.errors import RankfallError
from rankfall.run.guards.reads import Code, Unproved, restrict_reads, verify, watch_job
from rankfall.run.keys.files import digests
from rankfall.run.keys.fingerprint import OURS, digest_of, find_source, module_of
from rankfall.run.keys.installed import PREFIX, version_of
from rankfall.trial.flags import unchanged_flags


class Edited(Unproved):
    """A file in a key changed while the job ran."""


@contextmanager
def prove_code(codes: Iterable[Code], results: Path | None = None) -> Iterator[None]:
    """Guard all work of a job: users' components may read only the files in `codes`, and the files of this package in `results`."""
    with watch_job(union(codes), results):
        yield


@contextmanager
def numerics(*codes: Code) -> Iterator[None]:
    """Guard a computation: users' components may read only the files in `codes`, and must not change precision flags."""
    code = union(codes)
    users = sorted(name for name in code if name.endswith(".py") and name.partition("/")[0] not in OURS)

    def refuse(what: str, fix: str) -> Unproved:
        return Unproved(f"{' or '.join(users)} {what}, so nothing is kept\n  fix: {fix}")

    with restrict_reads(code):
        if users:
            with unchanged_flags(refuse):
                yield
        else:
            yield


@contextmanager
def prove_numbers(*codes: Code) -> Iterator[None]:
    """Guard a computation by `numerics`, and check at its end that the files in `codes` are unchanged."""
    with numerics(*codes):
        yield
    check_unchanged(*codes)


def check_unchanged(*codes: Code) -> None:
    """Raise if a file or installed version in `codes` has changed since the plan, or if a read was refused."""
    verify()
    known = {pair for code in codes for pair in code.items()}
    changed = sorted({name for name, before in known if before not in current_digests(name)})
    if changed:
        raise Edited(
            f"{', '.join(changed)} changed while the job ran; nothing was stored under a wrong key, "
            f"and earlier results are kept; run again"
        )


def current_digests(name: str) -> Iterator[str]:
    """Yield the current digests of the code, file or distribution with this name. Yield nothing if it does not exist."""
    if name.startswith(PREFIX):
        yield version_of(name.removeprefix(PREFIX))
        return
    source = find_source(name)
    try:
        if source is not None:
            yield digest_of(module_of(name), name, source.read_bytes())
    except (OSError, RankfallError):  # deleted, or no valid Python during an edit
        pass
    yield from digests(name)


def union(codes: Iterable[Code]) -> Mapping[str, str]:
    """Merge several codes into one."""
    return {name: digest for code in codes for name, digest in code.items()}
