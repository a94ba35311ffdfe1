"""Guards that the engine's wheel works alone, in a new environment without Rankfall: the README's example runs there."""

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import numba
import pytest

ROOT = Path(__file__).parents[1]
OUTSIDE = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
pytestmark = pytest.mark.slow


def test_the_wheel_runs_its_readme(tmp_path: Path) -> None:
    copy, out, home = tmp_path / "copy", tmp_path / "dist", tmp_path / "environment"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "tests"))
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(copy)]
    subprocess.run(command, check=True, env=OUTSIDE, capture_output=True)
    (wheel,) = out.glob("thousandfold-*.whl")
    venv.create(home, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python")]
    subprocess.run([*pip, "install", "-qq", "--no-deps", "--no-index", str(wheel)], check=True, env=OUTSIDE)
    # Its dependencies are those of this environment, by links: a second torch takes minutes to install.
    (site,) = (home / "lib").glob("python*/site-packages")
    for package in Path(numba.__file__).parents[1].iterdir():
        if not (package.name.startswith(("rankfall", "thousandfold", "__editable__")) or package.suffix == ".pth"):
            (site / package.name).symlink_to(package)
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    code += "\nimport sys, thousandfold\nprint(result.engine, thousandfold.__file__, 'rankfall' in sys.modules)"
    ended = subprocess.run(
        [str(home / "bin" / "python"), "-c", code], cwd=tmp_path, env=OUTSIDE, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    engine, file, rankfall = ended.stdout.split()[-3:]
    assert (engine, rankfall) == ("program", "False") and Path(file).is_relative_to(home)
