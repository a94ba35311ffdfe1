"""Descriptions of components: options with types and defaults, facts and docstrings, as importing a component shows them.

A component is imported in a process of its own (`trial/describe.py`), since a plan imports neither torch nor other people's files. What it
shows is kept in the user's cache folder with the digests of the files that it was imported from. One process describes all components of
the package whose files have changed, because most of its time goes into importing torch.
"""

import functools
import hashlib
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Union, get_args, get_origin

from rankfall import __version__
from rankfall.caches import use
from rankfall.disk import StoreError, atomic, cache_home
from rankfall.errors import RankfallError

if TYPE_CHECKING:
    from rankfall.report.schema import Table

PACKAGE = Path(__file__).parent
SECONDS = 120  # for importing and calling components


@dataclass(frozen=True)
class Location:
    """The module and file of a component: enough to import it."""

    module: str
    file: Path
    attributes: tuple[str, ...]  # candidates, in order of preference

    @property
    def shipped(self) -> bool:
        """Return whether the component belongs to this package or to its studies."""
        return self.module.startswith(("rankfall.", "studies."))


@dataclass(frozen=True)
class Option:
    """One keyword-only parameter of a component."""

    type: Any  # from int, float, bool, str, None, list, dict, tuple, Literal and unions of these, else Any
    required: bool
    plain: bool  # whether the default is plain data
    default: Any = None

    @property
    def choices(self) -> list[Any]:
        """The values of a Literal, alone or in a union."""
        parts = get_args(self.type) if get_origin(self.type) is Union else (self.type,)
        return [choice for part in parts if get_origin(part) is Literal for choice in get_args(part)]


@dataclass(frozen=True)
class Description:
    """Hold what importing a component shows."""

    location: Location
    options: Mapping[str, Option] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)  # names in capitals, or learned by calling the component
    docs: tuple[str, str] = ("", "")  # of the component and of its file
    unknown: str = ""  # why nothing was learned by calling it
    table: "Table | None" = (
        None  # what a component of the kind `table` declares, unless its columns are those of headlines
    )


class NotDefined(RankfallError):
    """A file or a folder lacks the component that it is asked for."""


class ComponentRequest(NamedTuple):
    """A component to describe."""

    kind: str
    name: str
    location: Location


@dataclass(frozen=True)
class Answer:
    """A description or the error that takes its place, and the digests of the files that it depends on."""

    found: Description | RankfallError
    files: Mapping[str, str]
    lasting: bool  # False: the cause of an error may lie outside of these files, or data show what is learned


_KNOWN: dict[ComponentRequest, Answer] = {}  # in this process


def describe_component(request: ComponentRequest, others: Iterable[ComponentRequest] = ()) -> Description:
    """Return the description of a component. If a process is needed for it, describe others in the same one."""
    prepare([request], others)
    answer = _known(request) or _describe([request])[request]
    if isinstance(answer.found, Description):
        return answer.found
    if not answer.lasting:
        _KNOWN.pop(request, None)  # raised once, and tried again when it is asked for again
    raise answer.found


def prepare(requests: Iterable[ComponentRequest], others: Iterable[ComponentRequest] = ()) -> None:
    """Describe components in one process if one of them is not known. If one of the package is not, describe `others` with it."""
    missing = [request for request in requests if _known(request) is None]
    if any(request.location.shipped for request in missing):
        missing += [request for request in others if _known(request) is None]
    if missing:
        _describe(list(dict.fromkeys(missing)))


def _known(request: ComponentRequest) -> Answer | None:
    """Return what is known of a component, unless one of its files has changed."""
    answer = _KNOWN.get(request) or _read(request)
    if answer is None or any(digest_file(file) != digest for file, digest in answer.files.items()):
        return None
    _KNOWN[request] = answer
    return answer


def _describe(requests: Sequence[ComponentRequest]) -> dict[ComponentRequest, Answer]:
    """Return the descriptions by a new process, as many as it made. The first is there in any case."""
    with tempfile.TemporaryDirectory(prefix="rankfall-describe-") as folder:
        asked, written = Path(folder) / "asked", Path(folder) / "answers"
        asked.write_bytes(pickle.dumps(requests))
        reason = run_child(asked, written)
        answers = dict(_answers(written))
    if requests[0] not in answers:
        what = f"{requests[0].location.file} cannot be imported: {reason}"
        answers[requests[0]] = Answer(RankfallError(what), {}, lasting=False)
    _KNOWN.update(answers)
    for request, answer in answers.items():
        if answer.lasting:
            _write(request, answer)
    return answers


def run_child(asked: Path, written: Path) -> str:
    """Describe the components in a new process, which appends to `written`. Return its last words."""
    child = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    command = [sys.executable, "-P", "-m", "rankfall.trial.describe", str(asked), str(written)]
    try:
        ended = subprocess.run(command, env=child, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"it took more than {SECONDS} s"
    return (ended.stderr.strip().splitlines() or [f"its process ended with status {ended.returncode}"])[-1]


def _answers(path: Path) -> Iterator[tuple[ComponentRequest, Answer]]:
    """Yield the answers that a process wrote one after another, perhaps not the last."""
    with suppress(OSError, EOFError, pickle.UnpicklingError), path.open("rb") as file:
        while True:
            yield pickle.load(file)


def _cache_file(request: ComponentRequest) -> Path | None:
    """Return the cache file of a description. Checkouts share those of the package: a component is named by its module and its text there.
    A user's module may be another one in another folder."""
    home, location = cache_home(), request.location
    place = (location.module, digest_file(str(location.file))) if location.shipped else (location.file, os.getcwd())
    describer = [digest_file(str(file)) for file in (__file__, PACKAGE / "trial" / "describe.py")]
    about = (__version__, sys.version, *describer, *request[:2], *place)
    return None if home is None else home / "described" / hashlib.sha256(repr(about).encode()).hexdigest()[:24]


def _read(request: ComponentRequest) -> Answer | None:
    path = _cache_file(request)
    try:
        if path is None:
            return None
        answer: Answer = pickle.loads(path.read_bytes())
        answer = replace(answer, files={_expand(request, file): digest for file, digest in answer.files.items()})
        if isinstance(answer.found, Description):
            answer = replace(answer, found=replace(answer.found, location=request.location))
    except Exception:  # there is none, it is damaged, or another version of this file wrote it
        return None
    use(path)
    return answer


def _write(request: ComponentRequest, answer: Answer) -> None:
    path = _cache_file(request)
    if path is None or (request.location.shipped and not isinstance(answer.found, Description)):
        return  # the text of an error names files of this checkout
    answer = replace(answer, files={_shorten(request, file): digest for file, digest in answer.files.items()})
    with suppress(StoreError, OSError), atomic(path) as file:
        file.write(pickle.dumps(answer))


def _roots(location: Location) -> dict[str, str]:
    """Return the folders of the package and of the studies, by names that are the same in every checkout."""
    if not location.shipped:
        return {}
    own = location.file.parents[location.module.count(".")]
    return {"package": f"{PACKAGE.parent}{os.sep}", "studies": f"{own}{os.sep}"}


def _shorten(request: ComponentRequest, file: str) -> str:
    roots = _roots(request.location).items()
    return next((f"{name}:{file.removeprefix(root)}" for name, root in roots if file.startswith(root)), file)


def _expand(request: ComponentRequest, file: str) -> str:
    name, _, rest = file.partition(":")
    root = _roots(request.location).get(name)
    return file if root is None else root + rest


def digest_file(path: str) -> str:
    """Return the digest of a file, or an empty text if there is none."""
    try:
        stat = os.stat(path)
        return _digest(path, stat.st_mtime_ns, stat.st_size)
    except OSError:
        return ""


@functools.lru_cache(maxsize=8192)
def _digest(path: str, mtime: int, size: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
