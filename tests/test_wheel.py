"""Guards what `pip install rankfall` gives: a wheel with all that the package opens, which works where there is no checkout.

The environment is new and has the package from the wheel alone; its dependencies are those of the environment that runs the tests, by a
path file, since a second torch takes minutes to install.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OUTSIDE = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy, so that nothing is left beside the sources."""
    copy, out = tmp_path_factory.mktemp("source") / "copy", tmp_path_factory.mktemp("dist")
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(copy)]
    made = subprocess.run(command, capture_output=True, text=True, env=OUTSIDE)
    assert made.returncode == 0, made.stdout + made.stderr
    (found,) = out.glob("rankfall-*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Runs a command of the new environment in an empty folder."""
    folder = tmp_path_factory.mktemp("env")
    venv.create(folder, with_pip=False, symlinks=True)
    site = next((folder / "lib").glob("python*")) / "site-packages"
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    given = ["install", "-qq", "--disable-pip-version-check", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([*pip, *given], check=True, env=OUTSIDE)
    # The engine is among the dependencies: engine/tests/test_wheel_of_engine.py has its wheel.
    (site / "dependencies.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n{ROOT / 'engine' / 'src'}\n")
    empty = tmp_path_factory.mktemp("elsewhere")

    def run(*command):
        program = folder / "bin" / command[0]
        return subprocess.run(
            [str(program) if program.exists() else command[0], *command[1:]],
            cwd=empty,
            env=OUTSIDE,
            capture_output=True,
            text=True,
        )

    run.site, run.cwd, run.bin = site, empty, folder / "bin"
    return run


def test_the_wheel_has_every_file_of_the_package(wheel):
    ours = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src" / "rankfall").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    shipped = {name for name in packed if name.startswith("rankfall/shipped/")}
    plugin = "snakemake_logger_plugin_rankfall/__init__.py"
    assert packed - shipped == {name for name in ours if not name.startswith("rankfall/shipped/")} | {plugin}
    rules = {str(path.relative_to(ROOT)) for path in (ROOT / "workflow").rglob("*") if path.is_file()}
    assert {
        f"rankfall/shipped/{name}" for name in (*rules, "Snakefile", "config.yaml", "envs/environment.yaml")
    } <= shipped
    assert "rankfall/shipped/examples/attention.md" in shipped
    assert {"rankfall/py.typed", "rankfall/rank/paths/published.csv"} <= packed


def test_the_package_is_the_wheel(installed):
    said = installed("python", "-c", "import rankfall; print(rankfall.__file__, rankfall.__version__)")
    file, version = said.stdout.split()
    assert Path(file).is_relative_to(installed.site)
    assert installed("rankfall", "--version").stdout == f"rankfall {version}\n"


def test_a_model_is_measured_anywhere(installed):
    small = ["--set", "num_hidden_layers=2", "--seeds", "1", "--samples", "2", "--length", "32"]
    made = installed("rankfall", "measure", "model", "bert", *small)
    assert made.returncode == 0, made.stderr
    assert "relative residual" in made.stdout
    assert (installed.cwd / "results" / "models" / "bert" / "model_residuals.parquet").is_file()


def test_a_project_runs_without_a_checkout(installed):
    made = installed("rankfall", "init", "mylab")
    assert made.returncode == 0, made.stderr
    done = installed("sh", "-c", 'export PATH="$0:$PATH"; cd mylab && rankfall run && rankfall run', str(installed.bin))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing to do" in done.stdout
    results = installed.cwd / "mylab" / "results"
    assert (results / "figures" / "residuals.png").is_file() and (results / "report" / "index.html").is_file()
    installed("rankfall", "init", "small", "--preset", "smoke")
    refused = installed("rankfall", "run", "--config", "small/config.yaml")
    assert refused.returncode == 2 and "rankfall init" in refused.stderr
