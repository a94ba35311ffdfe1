"""A cache of programs in the user's cache folder, shared by processes. A trace takes a second or more; reading its program is much faster.

The name of a program is a digest of all its sources: the code of the cell (components and machine), the version of torch, the network, the
objective, and the form of a batch. A damaged file counts as missing. Failed traces are not cached.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np
import torch

from rankfall.design import canonical
from rankfall.train.machine.kept import keep, read_kept
from rankfall.train.machine.program.build import Program
from rankfall.train.machine.step import StepProgram

Name = str


def digest_code(code: Mapping[str, str]) -> str:
    """Return one digest of all files and their digests, or an empty text if there are none."""
    return hashlib.sha256(canonical(dict(code)).encode()).hexdigest() if code else ""


def name_program(code: str, *made_from: Any) -> Name:
    """Return the name of a program. `made_from`: dataclasses and other values from which the step is made."""
    about = [asdict(one) if is_dataclass(one) and not isinstance(one, type) else one for one in made_from]
    text = canonical([code, torch.__version__, about])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def load_program(name: Name) -> StepProgram | None:
    """Return the program with this name, or None if it is not in the cache or damaged."""
    content = read_kept("programs", f"{name}.npz")
    if content is None:
        return None
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            program = Program(file["words"], about["count"], about["arena"], file["constants"])
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None
    names = tuple((kind, metric) for kind, metric in about["names"])
    return StepProgram(program, names, tuple(about["integers"]), about["strayed"])


def keep_program(name: Name, step: StepProgram) -> None:
    program, content = step.program, io.BytesIO()
    about = {"count": program.count, "arena": program.arena, "names": step.names, "integers": step.integers}
    text = json.dumps(about | {"strayed": step.strayed})
    np.savez_compressed(content, about=np.array(text), words=program.words, constants=program.constants)
    keep("programs", f"{name}.npz", content.getvalue())
