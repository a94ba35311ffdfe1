"""The commit of the package's source, for the record of a result. Keys do not depend on it: they hash the code itself."""

import os
import subprocess
from pathlib import Path

import rankfall

SECONDS = 5  # that git may take


def commit(package: Path | None = None) -> str | None:
    """The commit, with `-dirty` where a tracked file differs from it; None where git does not track the package."""
    folder = package or Path(rankfall.__file__).parent
    if (
        _git(folder, "ls-files", "--error-unmatch", "__init__.py") is None
    ):  # a package installed in somebody else's repository
        return None
    return _git(folder, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def _git(folder: Path, *words: str) -> str | None:
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}  # jobs of many processes: none waits for another's lock
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
