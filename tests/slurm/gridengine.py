"""A Grid Engine of one node on this machine: real sge_qmaster and sge_execd, started and stopped by the tests.

Everything is in one folder, on ports of its own: the system's Grid Engine, if there is one, is not touched.
"""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from cluster import CPUS, end, install, run_command, succeeds, wait_for

DEBIAN, SHARE = Path("/usr/lib/gridengine"), Path("/usr/share/gridengine")
NEEDED = ("sge_qmaster", "sge_execd", "qsub", "qstat", "qdel")
PACKAGES = ("gridengine-master", "gridengine-exec", "gridengine-client")
# Root may run jobs; a load that is seconds old.
SETTINGS = {"min_uid": "0", "min_gid": "0", "load_report_time": "00:00:02"}
BOOTSTRAP = """\
admin_user root
default_domain none
ignore_fqdn false
spooling_method berkeleydb
spooling_lib libspoolb
spooling_params {folder}/spool
binary_path /usr/sbin
qmaster_spool_dir {folder}/qmaster
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
"""
LIMITS = ("cpu", "fsize", "data", "stack", "core", "rss", "vmem", "rt")
QUEUE = (
    "qname=all.q hostlist=localhost seq_no=0 nsuspend=1 suspend_interval=00:05:00 priority=0 min_cpu_interval=00:05:00 "
    "processors=UNDEFINED qtype=BATCH pe_list=smp rerun=FALSE tmpdir=/tmp shell=/bin/sh shell_start_mode=posix_compliant "
    f"notify=00:00:20 initial_state=default slots={CPUS}"
)
EMPTY = (
    "load_thresholds suspend_thresholds ckpt_list prolog epilog starter_method suspend_method resume_method terminate_method owner_list "
    "user_lists xuser_lists subordinate_list complex_values projects xprojects calendar"
)


class GridEngine:
    """The daemons, and what a test may do to them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.daemons: list[subprocess.Popen[bytes]] = []
        ports = {"SGE_QMASTER_PORT": str(free_port()), "SGE_EXECD_PORT": str(free_port())}
        self.environment = {
            "SGE_ROOT": str(folder),
            "SGE_CELL": "default",
            "SGE_ND": "1",
            **ports,
        }  # no daemon forks itself away

    def start(self) -> None:
        common = self.folder / "default" / "common"
        for folder in (common, self.folder / "spool", self.folder / "execd", self.folder / "qmaster" / "job_scripts"):
            folder.mkdir(parents=True)
        for name in ("bin", "lib", "utilbin", "util"):
            (self.folder / name).symlink_to(f"/var/lib/gridengine/{name}")
        (common / "bootstrap").write_text(BOOTSTRAP.format(folder=self.folder))
        (common / "act_qmaster").write_text("localhost\n")
        (common / "host_aliases").write_text(f"localhost {os.uname().nodename}\n")
        settings = SETTINGS | {"execd_spool_dir": str(self.folder / "execd")}
        default = (line for line in (SHARE / "default-configuration").read_text().splitlines() if line[0] != "#")
        configuration = dict(line.split(maxsplit=1) for line in default) | settings
        (self.folder / "configuration").write_text(as_lines(configuration))
        run_command(str(DEBIAN / "spoolinit"), "berkeleydb", "libspoolb", str(self.folder / "spool"), "init")
        for what, source in (
            ("configuration", self.folder / "configuration"),
            ("complexes", SHARE / "util/resources/centry"),
            ("usersets", SHARE / "util/resources/usersets"),
            ("managers", "root"),
        ):
            run_command(str(DEBIAN / "spooldefaults"), what, str(source))
        self._spawn("sge_qmaster")
        wait_for("the master", lambda: succeeds("qconf", "-sh"))
        run_command("qconf", "-as", "localhost")
        run_command("qconf", "-Ap", str(SHARE / "util/resources/pe/smp"))
        limits = {f"{kind}_{limit}": "INFINITY" for kind in "sh" for limit in LIMITS}
        queue = dict(pair.split("=") for pair in QUEUE.split()) | limits | dict.fromkeys(EMPTY.split(), "NONE")
        self._change("-Aq", queue)
        hurry = {"schedule_interval": "0:0:1", "flush_submit_sec": "1", "flush_finish_sec": "1"}
        scheduler = dict(line.split(maxsplit=1) for line in run_command("qconf", "-ssconf").splitlines())
        self._change("-Msconf", scheduler | hurry)
        self._spawn("sge_execd")
        wait_for(
            "the node",
            lambda: "lx-" in run_command("qstat", "-f") and "au" not in run_command("qstat", "-f").split()[-1],
        )

    def stop(self) -> None:
        for process in reversed(self.daemons):
            end(process)

    def running(self, rule: str) -> list[str]:
        """Return the numbers of running jobs of a rule."""
        jobs = [line.split()[0] for line in run_command("qstat", "-s", "r").splitlines()[2:]]
        return [job for job in jobs if f"rankfall.{rule}\n" in run_command("qstat", "-j", job)]

    def clear(self) -> None:
        """Cancel everything, and wait until it is gone."""
        succeeds("qdel", "-f", "-u", "root")
        wait_for("the queue to empty", lambda: not run_command("qstat").strip())

    def _change(self, option: str, settings: dict[str, str]) -> None:
        file = self.folder / f"change{option}"
        file.write_text(as_lines(settings))
        run_command("qconf", option, str(file))

    def _spawn(self, name: str) -> None:
        with (self.folder / f"{name}.out").open("ab") as out:
            self.daemons.append(subprocess.Popen([name], stdin=subprocess.DEVNULL, stdout=out, stderr=out))


def as_lines(settings: dict[str, str]) -> str:
    return "".join(f"{name} {value}\n" for name, value in settings.items())


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def grid_engine(folder: Path) -> Iterator[GridEngine]:
    """Run a cluster, and name it in the environment meanwhile."""
    install(NEEDED, PACKAGES)
    made = GridEngine(folder)
    with patch.dict(os.environ, made.environment):
        try:
            made.start()
            yield made
        finally:
            made.stop()
