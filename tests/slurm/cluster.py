"""A SLURM of one node on this machine: real munged, slurmctld and slurmd, started and stopped by the tests.

The configuration has to be the system's own file, /etc/slurm/slurm.conf (a SLURM_CONF of ours would not reach job steps): what
was there is kept aside and put back. A machine that already belongs to a running cluster is left alone.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "srun")
ETC = Path("/etc/slurm")
FILES = ("slurm.conf", "gres.conf")
MUNGE_KEY = Path("/etc/munge/munge.key")
GPUS = 2
CPUS = 4  # more than there may be: SLURM is told to believe it
MEGABYTES = 12_000

OURS = "# Written by Rankfall's tests, which take it away again."
CONF = """\
{ours}
ClusterName=rankfall
SlurmctldHost={host}
SlurmUser=root
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldPort={port}
SlurmdPort={port_node}
AuthType=auth/munge
AuthInfo=cred_expire=10
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
MinJobAge=300
KillWait=20
OverTimeLimit=0
MaxArraySize=1001
GresTypes=gpu
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName={host} CPUs={cpus} RealMemory={memory} Gres=gpu:fake:{gpus} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
PartitionName=urgent Nodes={host} MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
PartitionName=gpu Nodes={host} MaxTime=INFINITE State=UP
"""


class Unavailable(Exception):
    """Why there can be no such cluster here."""


@contextmanager
def or_skip(what: str) -> Iterator[None]:
    """Skip a test of what cannot be started on this machine. On CI it must start."""
    try:
        yield
    except Unavailable as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no {what}: {reason}")


def install(programs: Sequence[str] = NEEDED, packages: Sequence[str] = ("slurm-wlm", "munge")) -> None:
    """Install packages by apt where their programs are missing."""
    if "/usr/sbin" not in os.environ["PATH"].split(os.pathsep):
        os.environ["PATH"] += os.pathsep + "/usr/sbin"
    if all(map(shutil.which, programs)):
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise Unavailable(f"needs the programs {', '.join(programs)} and root to start them")
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", *packages]):
        done = subprocess.run(command, env=quiet, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unavailable(f"{' '.join(command)}: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
    missing = [name for name in programs if not shutil.which(name)]
    if missing:
        raise Unavailable(f"after installing {', '.join(packages)} there is still no {', '.join(missing)}")


def wait_for(what: str, true: Callable[[], object], seconds: float = 60.0, every: float = 0.1) -> None:
    limit = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < limit, f"waited {seconds:.0f} s in vain for {what}"
        time.sleep(every)


def run_command(*command: str) -> str:
    """Run a command, which must succeed. Return its output."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout


def succeeds(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0


class Cluster:
    """The daemons, and what a test may do to them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.host = os.uname().nodename.split(".")[0]
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}

    # Life and death.

    def start(self) -> None:
        for name in ("state", "spool"):
            (self.folder / name).mkdir(parents=True)
        self._configure()
        self._start_munge()
        self.start_controller()
        self._spawn("slurmd", "slurmd", "-D")
        wait_for("the node to be idle", lambda: "idle" in run_command("sinfo", "-h", "-o", "%T"))

    def stop(self) -> None:
        if "slurmctld" in self.daemons:
            subprocess.run(["scancel", "--full", "--user", "root"], capture_output=True, timeout=30, check=False)
            time.sleep(1)
        for process in reversed(self.daemons.values()):
            end(process)

    def start_controller(self) -> None:
        self._spawn("slurmctld", "slurmctld", "-D")
        wait_for("slurmctld", lambda: succeeds("scontrol", "ping"))

    def log(self, name: str = "slurmctld") -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    # What is queued and running.

    def jobs(self, states: str = "all") -> dict[str, str]:
        """Return job id -> state, tasks of an array one by one."""
        lines = run_command("squeue", "-h", "-r", f"--states={states}", "-o", "%i %T").splitlines()
        return dict(line.split() for line in lines)

    def running(self, rule: str) -> list[str]:
        """Return the running jobs of a rule; the plugin puts its name into the comment."""
        lines = run_command("squeue", "-h", "-r", "--states=RUNNING", "-o", "%i %k").splitlines()
        return [line.split()[0] for line in lines if f"rule_{rule}" in line]

    def clear(self) -> None:
        """Cancel everything, and wait until it is gone."""
        subprocess.run(["scancel", "--user", "root"], capture_output=True, timeout=30, check=False)
        wait_for("the queue to empty", lambda: not run_command("squeue", "-h").strip())

    def details(self, job: str) -> str:
        return run_command("scontrol", "show", "job", "-d", job)

    def node(self, state: str) -> None:
        command = ("scontrol", "update", f"NodeName={self.host}", f"State={state}", "Reason=test")
        if state != "RESUME":
            run_command(*command)
            return
        succeeds(*command)  # it fails for a node that has come back by itself
        wait_for(
            "the node", lambda: run_command("sinfo", "-h", "-o", "%T").split()[0] in ("idle", "mixed", "allocated")
        )

    # How it is made.

    def _configure(self) -> None:
        devices = [self.folder / f"gpu{index}" for index in range(GPUS)]
        for path in devices:
            os.mknod(path, 0o20666, os.makedev(1, 3))  # a character device: that is all that SLURM looks at
        sizes = {"cpus": CPUS, "memory": MEGABYTES, "gpus": GPUS, "port": 16817, "port_node": 16818}
        (ETC / "slurm.conf").write_text(CONF.format(ours=OURS, host=self.host, folder=self.folder, **sizes))
        lines = [f"NodeName={self.host} Name=gpu Type=fake File={path}" for path in devices]
        (ETC / "gres.conf").write_text("\n".join(lines) + "\n")

    def _start_munge(self) -> None:
        if succeeds("munge", "-n"):
            return  # the system's own is running
        if not MUNGE_KEY.exists():
            MUNGE_KEY.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            MUNGE_KEY.write_bytes(os.urandom(128))
            MUNGE_KEY.chmod(0o400)
            shutil.chown(MUNGE_KEY.parent, "munge", "munge")
            shutil.chown(MUNGE_KEY, "munge", "munge")
        for path in ("/run/munge", "/var/log/munge", "/var/lib/munge"):
            Path(path).mkdir(exist_ok=True)
            shutil.chown(path, "munge", "munge")
        Path("/run/munge").chmod(0o755)
        self._spawn("munged", "setpriv", "--reuid=munge", "--regid=munge", "--clear-groups", "munged", "--foreground")
        wait_for("munged", lambda: succeeds("munge", "-n"))

    def _spawn(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.out").open("ab") as out:
            self.daemons[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        time.sleep(0.2)
        assert self.daemons[name].poll() is None, (self.folder / f"{name}.out").read_text(errors="replace")


def end(process: "subprocess.Popen[bytes]") -> None:
    """Ask a daemon to end; kill one that does not."""
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def clear_away() -> None:
    """Remove what a session of tests that was killed left behind: its daemons, by their process files, and its configuration."""
    conf = ETC / "slurm.conf"
    if not conf.exists() or not conf.read_text().startswith(OURS):
        return
    settings = dict(line.split("=", 1) for line in conf.read_text().splitlines() if "=" in line)
    subprocess.run(["scancel", "--full", "--user", "root"], capture_output=True, timeout=30, check=False)
    for name in ("slurmd", "slurmctld"):
        try:
            pid = int(Path(settings[f"{name.capitalize()}PidFile"]).read_text())
            if name in Path(f"/proc/{pid}/comm").read_text():
                os.kill(pid, signal.SIGTERM)
                wait_for(f"the end of {name}", lambda: not Path(f"/proc/{pid}").exists(), 20)  # noqa: B023
        except (OSError, ValueError):
            pass  # it has gone
    for file in FILES:
        (ETC / file).unlink(missing_ok=True)


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Run a cluster, and put the system's configuration back afterwards. One at a time: a second session waits."""
    install()
    with (Path(tempfile.gettempdir()) / "rankfall-slurm.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        clear_away()
        if (ETC / "slurm.conf").exists() and succeeds("scontrol", "ping"):
            raise Unavailable("this machine belongs to a SLURM cluster that is running: it is left alone")
        ETC.mkdir(exist_ok=True)
        before = {name: (ETC / name).read_bytes() if (ETC / name).exists() else None for name in FILES}
        made = Cluster(folder)
        try:
            made.start()
            yield made
        finally:
            made.stop()
            for name, content in before.items():
                if content is None:
                    (ETC / name).unlink(missing_ok=True)
                else:
                    (ETC / name).write_bytes(content)
