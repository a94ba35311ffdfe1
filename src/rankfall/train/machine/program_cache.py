"""Programs of steps, kept for other processes in the user's cache folder: a trace takes a second or more, to read its program much less.

A program is named by all that it is made from: the code of the cell (its own components and the machine's, as `code` says), the version of
torch, the network, its objective, and the form of a batch. A file that is not whole counts as none. What cannot be traced is not kept.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rankfall.caches import use
from rankfall.design import canonical
from rankfall.disk import StoreError, atomic, cache_home, describe_non_file
from rankfall.train.machine.program.build import Program
from rankfall.train.machine.step import StepProgram

Name = str


def digest_code(code: Mapping[str, str]) -> str:
    """Of all files and their digests; empty where there are none."""
    return hashlib.sha256(canonical(dict(code)).encode()).hexdigest() if code else ""


def name_program(code: str, designs: Mapping[str, Any], form: Any) -> Name:
    """`designs`: dataclasses that the step is made from."""
    about = {
        name: asdict(value) if hasattr(value, "__dataclass_fields__") else value for name, value in designs.items()
    }
    text = canonical([code, torch.__version__, about, repr(form)])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def load_program(name: Name) -> StepProgram | None:
    """The program of this name, if it was kept whole."""
    path = path_of(name)
    try:
        if path is None or describe_non_file(path) is not None:
            return None
        digest, _, content = path.read_bytes().partition(b"\n")
        if digest != digest_of(content):
            return None
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            program = Program(file["words"], about["count"], about["arena"], file["constants"])
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None
    use(path)
    names = tuple((kind, metric) for kind, metric in about["names"])
    return StepProgram(program, names, tuple(about["integers"]), about["strayed"])


def keep_program(name: Name, step: StepProgram) -> None:
    """Has other processes find it, where there is a folder that can be written."""
    path = path_of(name)
    if path is None:
        return
    program, content = step.program, io.BytesIO()
    about = {"count": program.count, "arena": program.arena, "names": step.names, "integers": step.integers}
    text = json.dumps(about | {"strayed": step.strayed})
    np.savez_compressed(content, about=np.array(text), words=program.words, constants=program.constants)
    with suppress(StoreError), atomic(path) as file:
        file.write(digest_of(content.getvalue()) + b"\n" + content.getvalue())


def path_of(name: Name) -> Path | None:
    home = cache_home()
    return None if home is None else home / "programs" / f"{name}.npz"


def digest_of(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()
