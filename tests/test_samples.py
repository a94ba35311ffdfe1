"""Guards that a version's random cases are its own: by name and text of every source, and by nothing else."""

from pathlib import Path

from samples import seed_of


def test_every_version_of_the_sources_has_its_own_seed(tmp_path: Path) -> None:
    def seed(**texts: str) -> int:
        package = tmp_path / str(len(list(tmp_path.iterdir())))
        for name, text in texts.items():
            path = package / name.replace("_", "/")
            path.mkdir(parents=True)
            (path / "a.py").write_text(text)
        (package / "notes.md").write_text(f"{package}")
        return seed_of(package)

    assert seed(x="1", y_z="2") == seed(x="1", y_z="2")
    assert (
        len({seed(x="1", y_z="2"), seed(x="1", y_z="3"), seed(x="1", y_w="2"), seed(x="1"), seed(y_z="2", x="12")}) == 5
    )
