"""Writes the pins: every package that Rankfall and its extras pull in, at the version installed here.

    .venv/bin/python envs/freeze.py

writes constraints.txt (pip) and environment.yaml (conda, the same pins for what a job imports). Run it after upgrading
the virtual environment, and commit both. `make` reinstalls when constraints.txt changes.
"""

import sys
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = Path(__file__).parent
EVERYTHING = ("workflow", "s3", "models", "hub", "real", "page", "fast", "watch", "docs", "dev")
IN_A_JOB = ("models", "page", "fast")  # what a job imports; Snakemake itself stays outside


def closure(extras: tuple[str, ...]) -> dict[str, str]:
    """{package: version} of all that `rankfall[extras]` needs on this machine, itself and its engine left out."""
    found: dict[str, str] = {}
    seen = set()
    todo = [("rankfall", extras)]
    while todo:
        name, wanted = todo.pop()
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        package = distribution(name)
        # "2.13.0+cpu" is pinned as 2.13.0: which build of a version is the machine's business.
        found[name] = package.version.split("+")[0]
        for text in package.requires or []:
            need = Requirement(text)
            if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in (*wanted, "")):
                todo.append((canonicalize_name(need.name), tuple(sorted(need.extras))))
    # torch pins its own compilers and CUDA libraries, and they differ from one build of it to the next.
    return {
        name: version for name, version in sorted(found.items()) if name not in ("rankfall", "thousandfold", "triton")
    }


def lines(extras: tuple[str, ...]) -> list[str]:
    return [f"{name}=={version}" for name, version in closure(extras).items()]


def main() -> None:
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    about = "Written by envs/freeze.py; do not edit by hand."
    constraints = [f"# Exact versions for pip, direct and indirect. {about}", *lines(EVERYTHING)]
    (HERE / "constraints.txt").write_text("\n".join(constraints) + "\n")
    environment = [
        "# The environment of a job under `snakemake --sdm conda`: the pins of constraints.txt that a job imports.",
        f"# {about} The package and its engine come from the checkout.",
        "channels:",
        "  - conda-forge",
        "dependencies:",
        f"  - python={python}",
        "  - pip",
        "  - pip:",
        *(f"      - {line}" for line in lines(IN_A_JOB)),
    ]
    (HERE / "environment.yaml").write_text("\n".join(environment) + "\n")


if __name__ == "__main__":
    main()
