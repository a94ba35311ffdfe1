"""Guards the timed steps of a newcomer: what README shows is found there, and is a configuration that can be planned."""

import shutil
from pathlib import Path

import yaml

from benchmarks import newcomer


def test_readmes_component_and_its_places_in_the_default_configuration_are_there(tmp_path: Path) -> None:
    shutil.copy(newcomer.ROOT / "config.yaml", tmp_path)
    (tmp_path / "src/rankfall/nets/normalisers").mkdir(parents=True)
    newcomer.added(tmp_path, (newcomer.ROOT / "README.md").read_text())
    (file,) = tmp_path.rglob("*.py")
    assert file.stem == newcomer.NAME and f"def {newcomer.NAME}(" in file.read_text()
    config = yaml.safe_load((tmp_path / "config.yaml").read_text())
    assert config["architectures"][newcomer.NAME]["normaliser"]["name"] == newcomer.NAME
    assert sum(newcomer.NAME in entry["architecture"] for entry in config["grid"]) == 1
