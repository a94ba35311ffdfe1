"""Find the workflow: in a checkout it lies beside the Snakefile, elsewhere in the installed package.

`shipped/` holds the Snakefile, rules, profiles, presets and the examples of components. In a checkout they are links to the files at its
top.
"""

from pathlib import Path

from rankfall.errors import RankfallError

SHIPPED = Path(__file__).parent / "shipped"
SNAKEFILE = SHIPPED / "Snakefile"  # what a project's own Snakefile includes
DEFAULT_PROFILE = Path("workflow/profiles/default")
NAMES = ("Snakefile", "snakefile", "workflow/Snakefile")  # where Snakemake looks


def check_folder(folder: Path) -> None:
    """Raise an error unless Snakemake finds a workflow in the folder."""
    if not any((folder / name).is_file() for name in NAMES):
        raise RankfallError(
            f"there is no Snakefile in {folder}: run this in a checkout of Rankfall or in a project\n"
            "  fix: cd there; `rankfall init FOLDER` makes a project; `rankfall plan --script` lists all jobs for bash"
        )


def find_profile(profile: Path) -> Path:
    """Return the folder of a profile. A project without a default profile of its own has the package's."""
    if profile == DEFAULT_PROFILE and not profile.is_dir():
        return SHIPPED / DEFAULT_PROFILE
    return profile


def presets() -> list[str]:
    """Return the names of the configurations that come along."""
    return sorted(path.stem for path in (SHIPPED / "workflow" / "presets").glob("*.yaml"))


def preset_file(name: str) -> Path:
    """Return the file of a preset."""
    if name not in presets():
        raise RankfallError(f"there is no preset {name!r}; there are: {', '.join(presets())}")
    return SHIPPED / "workflow" / "presets" / f"{name}.yaml"
