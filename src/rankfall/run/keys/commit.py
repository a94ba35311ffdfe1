"""The commit of the package's source, for the record of a result. Keys do not depend on it: they hash the code itself."""

import os
import subprocess
from pathlib import Path

import rankfall

SECONDS = 5  # the time limit of git


def commit(package: Path | None = None) -> str | None:
    """Return the commit, with `-dirty` if a tracked file differs from it. None if git does not track the package."""
    folder = package or Path(rankfall.__file__).parent
    if (
        _git(folder, "ls-files", "--error-unmatch", "__init__.py") is None
    ):  # the package is installed inside another repository
        return None
    return _git(folder, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def _git(folder: Path, *words: str) -> str | None:
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}  # parallel jobs must not wait for one another's locks
    try:
        done = subprocess.run(
            ["git", *words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
