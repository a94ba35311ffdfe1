"""Guards that one run at a time works on a folder of results, and that nothing is left to remove when it has ended, however it did."""

import subprocess
import sys
from pathlib import Path

import pytest

from rankfall.errors import RankfallError
from rankfall.run.snakemake import storage
from rankfall.run.snakemake.storage import lock_results

HOLDS = """
import sys, time
from pathlib import Path
from rankfall.run.snakemake.storage import lock_results
lock_results(Path(sys.argv[1]))
print("locked", flush=True)
time.sleep(600)
"""


@pytest.mark.long
def test_a_second_run_is_refused_until_the_first_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_held", [])
    other = subprocess.Popen([sys.executable, "-c", HOLDS, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None and other.stdout.readline() == "locked\n"
        with pytest.raises(
            RankfallError, match=f"another run works on {tmp_path} .process {other.pid} on .*wait for it"
        ):
            lock_results(tmp_path)
    finally:
        other.kill()
        other.communicate()
    lock_results(tmp_path)
