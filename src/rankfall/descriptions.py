"""Descriptions of components: options with types and defaults, facts and docstrings, as importing a component shows them.

A component is imported in a process of its own (`trial/describe.py`), since a plan imports neither torch nor other people's files. What it
shows is kept in the user's cache folder under the digest of the code that it imports. One process describes all components of the package
whose code has changed, because most of its time goes into importing torch.
"""

import functools
import hashlib
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
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
    from rankfall.sources.fingerprint import Sources

PACKAGE = Path(__file__).parent
DESCRIBERS = (Path(__file__), PACKAGE / "trial" / "describe.py", PACKAGE / "trial" / "learn.py")
SECONDS = 600  # for importing and calling components: a busy node needs minutes for what takes seconds alone


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
    """Options, facts and docstrings of a component, as importing it shows them."""

    location: Location
    options: Mapping[str, Option] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)  # names in capitals, or learned by calling the component
    docs: tuple[str, str] = ("", "")  # of the component and of its file
    unknown: str = ""  # why nothing was learned by calling it
    table: "Table | None" = (
        None  # declared by a component of the kind `table`, unless its columns are those of headlines
    )


class NotDefined(RankfallError):
    """A file or a folder lacks the component that it is asked for."""


class ComponentRequest(NamedTuple):
    """A component to describe."""

    kind: str
    name: str
    location: Location


class Answer(NamedTuple):
    """A description or the error that takes its place."""

    result: Description | RankfallError
    lasting: bool  # False: the cause of an error may lie outside of the sources, or data show what is learned


_KNOWN: dict[str, Answer] = {}  # in this process, by digest


def describe_component(request: ComponentRequest, others: Iterable[ComponentRequest] = ()) -> Description:
    """Return the description of a component. If a process is needed for it, describe others in the same one."""
    prepare([request], others)
    digest = digest_request(request)
    answer = _KNOWN[digest]
    if not answer.lasting and isinstance(answer.result, RankfallError):
        _KNOWN.pop(digest)  # raised once, and tried again when it is asked for again
    if isinstance(answer.result, RankfallError):
        raise answer.result
    return answer.result


def prepare(requests: Iterable[ComponentRequest], others: Iterable[ComponentRequest] = ()) -> None:
    """Describe components in one process if one of them is not known. If one of the package is not, describe `others` with it."""
    missing = [request for request in requests if not is_known(request)]
    if any(request.location.shipped for request in missing):
        missing += others
    if not missing:
        return
    look_again()
    missing = [request for request in dict.fromkeys(missing) if not is_known(request)]
    with tempfile.TemporaryDirectory(prefix="rankfall-describe-") as folder:
        request_file, answer_file = Path(folder) / "asked", Path(folder) / "answers"
        request_file.write_bytes(pickle.dumps(missing))
        reason = run_child(request_file, answer_file) if missing else ""
        answers = dict(_answers(answer_file))
    if missing and missing[0] not in answers:
        problem = f"{missing[0].location.file} cannot be imported: {reason}"
        answers[missing[0]] = Answer(RankfallError(problem), lasting=False)
    for request, answer in answers.items():
        digest = digest_request(request)
        _KNOWN[digest] = answer
        shared = request.location.shipped and not isinstance(answer.result, Description)  # an error names its checkout
        if answer.lasting and not shared and (home := cache_home()) is not None:
            with suppress(StoreError, OSError), atomic(home / "described" / digest) as file:
                file.write(pickle.dumps(answer))


def look_again() -> None:
    """Read the sources of components anew, which may have changed since this process has read them."""
    sources.cache_clear()


@functools.cache
def sources() -> "Sources":
    """Return the sources of components, read once until `look_again`."""
    from rankfall.sources.fingerprint import Sources

    return Sources()


def digest_request(request: ComponentRequest) -> str:
    """Return the digest of all that a description follows from: the code that the component imports, the text of its file, and what
    describes it."""
    kind, name, location = request
    paths = "" if location.shipped else (str(location.file), os.getcwd())  # which errors name
    texts = [digest_file(str(file)) for file in (location.file, *DESCRIBERS)]
    try:
        code = sources().fingerprint([location.module])
    except RankfallError as error:  # of an import, which says more when it is tried
        code = str(error)
    parts = (__version__, sys.version, kind, name, paths, texts, code)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def is_known(request: ComponentRequest) -> bool:
    """Return whether this process or the user's cache folder has the answer, and keep it in this process."""
    digest, home = digest_request(request), cache_home()
    if digest not in _KNOWN and home is not None:
        path = home / "described" / digest
        try:
            answer: Answer = pickle.loads(path.read_bytes())
            if isinstance(answer.result, Description):  # another checkout may have written it
                answer = answer._replace(result=replace(answer.result, location=request.location))
        except Exception:  # there is none, it is damaged, or another version of this file wrote it
            return False
        use(path)
        _KNOWN[digest] = answer
    return digest in _KNOWN


def run_child(request_file: Path, answer_file: Path) -> str:
    """Describe the components in a new process, which appends to `answer_file`. Return the last line of its errors."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    command = [sys.executable, "-P", "-m", "rankfall.trial.describe", str(request_file), str(answer_file)]
    try:
        process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"it took more than {SECONDS} s"
    return (process.stderr.strip().splitlines() or [f"its process ended with status {process.returncode}"])[-1]


def _answers(path: Path) -> Iterator[tuple[ComponentRequest, Answer]]:
    """Yield the answers that a process wrote one after another, perhaps not the last."""
    with suppress(OSError, EOFError, pickle.UnpicklingError), path.open("rb") as file:
        while True:
            yield pickle.load(file)


def digest_file(path: str) -> str:
    """Return the digest of a file."""
    stat = os.stat(path)
    return _digest(path, stat.st_mtime_ns, stat.st_size)


@functools.lru_cache(maxsize=8192)
def _digest(path: str, mtime: int, size: int) -> str:
    """Return the digest of a file. Time and size are part of the cache's key."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
