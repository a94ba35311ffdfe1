"""A cache of programs in the user's cache folder, shared by processes. A trace takes a second or more; reading its program is much faster.

The caller names a program by a digest of all that it is made of: code, the version of torch, the network, and the form of a batch. A
damaged file counts as missing. Failed traces are not cached.
"""

import io
import json
import zipfile

import numpy as np

from thousandfold.disk import keep, read_kept
from thousandfold.program.build import Program
from thousandfold.step import StepProgram

Name = str


def load_program(name: Name) -> StepProgram | None:
    """Return the program with this name, or None if it is not in the cache or damaged."""
    content = read_kept("programs", f"{name}.npz")
    if content is None:
        return None
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            header = json.loads(str(file["about"]))
            program = Program(file["words"], header["count"], header["arena"], file["constants"])
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None
    names = tuple((kind, metric) for kind, metric in header["names"])
    return StepProgram(program, names, tuple(header["integers"]), header["strayed"])


def keep_program(name: Name, step: StepProgram) -> None:
    program, content = step.program, io.BytesIO()
    header = {"count": program.count, "arena": program.arena, "names": step.names, "integers": step.integers}
    text = json.dumps(header | {"strayed": step.strayed})
    np.savez_compressed(content, about=np.array(text), words=program.words, constants=program.constants)
    keep("programs", f"{name}.npz", content.getvalue())
