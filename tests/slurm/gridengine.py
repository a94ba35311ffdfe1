"""A Grid Engine of one node on this machine: real sge_qmaster and sge_execd, started and stopped by the tests.

Everything is in one folder, on ports of its own: the system's Grid Engine, if there is one, is not touched.
"""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster import CPUS, install, said, succeeds, wait_for

DEBIAN, SHARE = Path("/usr/lib/gridengine"), Path("/usr/share/gridengine")
NEEDED = ("sge_qmaster", "sge_execd", "qsub", "qstat", "qdel")
PACKAGES = ("gridengine-master", "gridengine-exec", "gridengine-client")
SETTINGS = {
    "min_uid": "0",
    "min_gid": "0",
    "load_report_time": "00:00:02",
}  # root may run jobs; a load that is seconds old
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
QUEUE = {
    "qname": "all.q",
    "hostlist": "localhost",
    "seq_no": "0",
    "nsuspend": "1",
    "suspend_interval": "00:05:00",
    "priority": "0",
    "min_cpu_interval": "00:05:00",
    "processors": "UNDEFINED",
    "qtype": "BATCH",
    "pe_list": "smp",
    "rerun": "FALSE",
    "slots": str(CPUS),
    "tmpdir": "/tmp",
    "shell": "/bin/sh",
    "shell_start_mode": "posix_compliant",
    "notify": "00:00:20",
    "initial_state": "default",
    **{f"{kind}_{limit}": "INFINITY" for kind in "sh" for limit in LIMITS},
}
EMPTY = (
    "load_thresholds suspend_thresholds ckpt_list prolog epilog starter_method suspend_method resume_method terminate_method owner_list "
    "user_lists xuser_lists subordinate_list complex_values projects xprojects calendar"
)


class GridEngine:
    """The daemons, and what a test may do to them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.daemons: list[subprocess.Popen[bytes]] = []
        self.environment = {
            "SGE_ROOT": str(folder),
            "SGE_CELL": "default",
            "SGE_ND": "1",
        }  # no daemon forks itself away
        self.environment |= {"SGE_QMASTER_PORT": free_port(), "SGE_EXECD_PORT": free_port()}

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
        default = [
            line.split(maxsplit=1)
            for line in (SHARE / "default-configuration").read_text().splitlines()
            if line[0] != "#"
        ]
        lines = [f"{name} {settings.get(name, value)}" for name, value in default]
        (self.folder / "configuration").write_text("\n".join(lines) + "\n")
        said(str(DEBIAN / "spoolinit"), "berkeleydb", "libspoolb", str(self.folder / "spool"), "init")
        for what, source in (
            ("configuration", self.folder / "configuration"),
            ("complexes", SHARE / "util/resources/centry"),
            ("usersets", SHARE / "util/resources/usersets"),
            ("managers", "root"),
        ):
            said(str(DEBIAN / "spooldefaults"), what, str(source))
        self._spawn("sge_qmaster")
        wait_for("the master", lambda: succeeds("qconf", "-sh"))
        said("qconf", "-as", "localhost")
        said("qconf", "-Ap", str(SHARE / "util/resources/pe/smp"))
        self._change(
            "-Aq",
            "\n".join(f"{name} {value}" for name, value in {**QUEUE, **dict.fromkeys(EMPTY.split(), "NONE")}.items()),
        )
        hurry = {"schedule_interval": "0:0:1", "flush_submit_sec": "1", "flush_finish_sec": "1"}
        scheduler = dict(line.split(maxsplit=1) for line in said("qconf", "-ssconf").splitlines())
        self._change("-Msconf", "\n".join(f"{name} {value}" for name, value in (scheduler | hurry).items()))
        self._spawn("sge_execd")
        wait_for("the node", lambda: "lx-" in said("qstat", "-f") and "au" not in said("qstat", "-f").split()[-1])

    def stop(self) -> None:
        for process in reversed(self.daemons):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def running(self, rule: str) -> list[str]:
        """Return the numbers of running jobs of a rule."""
        jobs = [line.split()[0] for line in said("qstat", "-s", "r").splitlines()[2:]]
        return [job for job in jobs if f"rankfall.{rule}\n" in said("qstat", "-j", job)]

    def clear(self) -> None:
        """Cancel everything, and wait until it is gone."""
        succeeds("qdel", "-f", "-u", "root")
        wait_for("the queue to empty", lambda: not said("qstat").strip())

    def _change(self, option: str, text: str) -> None:
        file = self.folder / f"change{option}"
        file.write_text(text + "\n")
        said("qconf", option, str(file))

    def _spawn(self, name: str) -> None:
        with (self.folder / f"{name}.out").open("ab") as out:
            self.daemons.append(subprocess.Popen([name], stdin=subprocess.DEVNULL, stdout=out, stderr=out))


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


@contextmanager
def grid_engine(folder: Path) -> Iterator[GridEngine]:
    """Run a cluster, and name it in the environment meanwhile."""
    install(NEEDED, PACKAGES)
    made = GridEngine(folder)
    before = {name: os.environ.get(name) for name in made.environment}
    os.environ.update(made.environment)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value
