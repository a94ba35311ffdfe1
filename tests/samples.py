"""Which random cases the checks of a version try: others with every version of the sources, and the same ones wherever it is checked."""

import hashlib
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "rankfall"


def seed_of(package: Path = PACKAGE) -> int:
    """A number that follows from the names and texts of a package's sources."""
    whole = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        for part in (str(path.relative_to(package)).encode(), path.read_bytes()):
            whole.update(len(part).to_bytes(8) + part)
    return int.from_bytes(whole.digest()[:4])
