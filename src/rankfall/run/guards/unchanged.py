"""Whether the results of a job match the keys under which they are stored.

A job fixes its keys when it starts. From then on `prove_code` has every module made of the text that the plan has hashed, and has all
that is read watched. What is left to ask before anything is kept: were modules that had been imported earlier made of the same text, is a
file that an option or DATA names still the same (compiled code may have read it, unseen), and did the watch see anything?
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from rankfall.errors import RankfallError
from rankfall.run.guards import watch
from rankfall.run.guards.declared import Unproved
from rankfall.run.guards.environment import seal_environment
from rankfall.run.guards.process import same_process
from rankfall.run.guards.watch import union
from rankfall.run.keys import loader
from rankfall.run.keys.files import digests
from rankfall.run.keys.fingerprint import Sources, digest_like
from rankfall.run.keys.loader import Text, module_of


class Edited(Unproved):
    """A file that keys depend on was changed while the job ran."""


@contextmanager
def prove_code(codes: Iterable[Mapping[str, str]], texts: Mapping[str, Text]) -> Iterator[None]:
    """Around all work of a job: what runs is what the plan has hashed, `texts`, and nothing is read but what is in `codes`."""
    code = union(codes)
    with loader.frozen(texts):
        _check_imported(code)
        with seal_environment(), watch.job(code, texts), same_process():
            yield


@contextmanager
def prove_numbers(*codes: Mapping[str, str]) -> Iterator[None]:
    """Around one computation of a job: it reads only what is in these, and afterwards they are still what the plan has hashed."""
    with watch.numerics(*codes):
        yield
    check_unchanged(*codes)


def check_unchanged(*codes: Mapping[str, str]) -> None:
    """Raise unless what ran, and every file beside the code, has the digest that the plan gave it, and nothing else was read."""
    watch.verify()
    sources = Sources()
    known = {pair for code in codes for pair in code.items()}
    changed = sorted({name for name, before in known if before not in _digests(name, before, sources)})
    if changed:
        raise Edited(
            f"{', '.join(changed)} changed while the job ran; nothing was stored under a wrong key, "
            f"what had finished before is kept, run again"
        )


def _check_imported(code: Mapping[str, str]) -> None:
    """Raise unless the modules that were imported before the plan was made are made of the text that it has hashed."""
    for name, planned in code.items():
        if not name.endswith(".py") or (module := module_of(name)) not in sys.modules:
            continue
        content = loader.read_executed_text(module)
        if content is None:
            raise Edited(
                f"{name} was imported before anything could tell from which text; start with `python -m rankfall.cli`, or call "
                f"rankfall.run.keys.loader.install() before importing anything else"
            )
        if digest_like(planned, module, name, content) != planned:
            raise Edited(f"{name} was edited after this process had imported it: run again")


def _digests(name: str, planned: str, sources: Sources) -> Iterator[str]:
    """What the code or file of this name hashes to: the code that ran, or else is there now; nothing where there is none."""
    if name.endswith(".py"):
        module = module_of(name)
        content = loader.read_executed_text(module)
        try:
            if content is not None:
                yield digest_like(planned, module, name, content)
            elif (source := sources.source(module)) is not None and source.file == name:
                yield digest_like(planned, module, name, source.text.content)
        except RankfallError:  # half an edit: no longer Python
            pass
    yield from digests(name)
