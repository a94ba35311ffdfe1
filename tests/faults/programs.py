"""Programs that a test starts, watches, kills and waits for."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


class Hang(Exception):
    """A program has not ended in the time that it was given."""


@dataclass
class Program:
    """A running program with all that it starts, a process group. Its output goes to a file."""

    process: subprocess.Popen[bytes]
    output: Path

    @classmethod
    def start(cls, module: str, *arguments: str, output: Path, cwd: Path, environment: dict[str, str]) -> "Program":
        """Start `python -m module arguments`."""
        output.parent.mkdir(parents=True, exist_ok=True)
        with output.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        return cls(process, output)

    @property
    def code(self) -> int | None:
        return self.process.poll()

    def wait(self, seconds: float) -> int | None:
        """Return the exit status, or None if the program takes longer."""
        with suppress(subprocess.TimeoutExpired):
            return self.process.wait(seconds)
        return None

    def end(self, seconds: float) -> int:
        """Return the exit status. Kill a program that takes longer, and raise."""
        code = self.wait(seconds)
        if code is None:
            self.kill()
            raise Hang(f"no end after {seconds:.0f} s\n{self.text()[-4000:]}")
        return code

    def kill(self) -> None:
        """Kill the whole group at once, as a power cut does."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        if self.wait(30) is None:
            raise Hang("a killed program is still there")

    def text(self) -> str:
        return self.output.read_text(errors="replace")
