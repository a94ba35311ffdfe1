"""OpenStack Swift with its S3 interface on this machine: a real object store, started and stopped by the tests.

Everything is in one folder, on ports of its own. Swift reads /etc/swift and nothing else, so its processes see the folder there.
"""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster import install, run_command, wait_for
from gridengine import free_port

NEEDED = ("swift-proxy-server", "swift-account-server", "swift-container-server", "swift-object-server")
PACKAGES = ("swift-proxy", "swift-account", "swift-container", "swift-object")
KEY, SECRET, BUCKET = "test:tester", "testing", "lab"
COMMON = "[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = {port}\nuser = root\nworkers = 0\nswift_dir = /etc/swift\n"
SERVER = COMMON + "devices = {folder}/devices\nmount_check = false\n[pipeline:main]\npipeline = {kind}-server\n"
SERVER += "[app:{kind}-server]\nuse = egg:swift#{kind}\n"
LENGTHS = '''\
"""Give answers to HEAD a length: Debian's eventlet ends one without by a chunk, which a strict client takes for the next answer."""


def make(settings, **more):
    def around(app):
        def answer(environ, start):
            def begin(status, headers, *error):
                if environ["REQUEST_METHOD"] == "HEAD" and not any(name.lower() == "content-length" for name, _ in headers):
                    headers = [*headers, ("Content-Length", "0")]
                return start(status, headers, *error)

            return app(environ, begin)

        return answer

    return around
'''
MIDDLE = ("lengths", "catch_errors", "gatekeeper", "cache", "listing_formats", "s3api", "tempauth", "slo")
EGGS = {"cache": "memcache", "tempauth": "tempauth"}
PROXY = COMMON + "[pipeline:main]\npipeline = {middle} proxy-server\n[app:proxy-server]\nuse = egg:swift#proxy\n"
PROXY += "account_autocreate = true\n"


class Swift:
    """The servers, and where they are."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.servers = folder, list[subprocess.Popen[bytes]]()
        self.ports = {kind: free_port() for kind in ("proxy", "account", "container", "object")}

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.ports['proxy']}"

    def start(self) -> None:
        etc = self.folder / "etc"
        etc.mkdir(parents=True)
        (self.folder / "devices" / "d1").mkdir(parents=True)
        (etc / "swift.conf").write_text(
            "[swift-hash]\nswift_hash_path_suffix = rankfall\nswift_hash_path_prefix = tests\n"
            "[storage-policy:0]\nname = one\ndefault = yes\n"
        )
        for kind, port in self.ports.items():
            if kind != "proxy":
                (etc / f"{kind}.conf").write_text(SERVER.format(port=port, folder=self.folder, kind=kind))
                ring = str(etc / f"{kind}.builder")
                run_command("swift-ring-builder", ring, "create", "2", "1", "1")
                run_command("swift-ring-builder", ring, "add", f"r1z1-127.0.0.1:{port}/d1", "1")
                run_command("swift-ring-builder", ring, "rebalance")
        proxy = PROXY.format(port=self.ports["proxy"], middle=" ".join(MIDDLE))
        for name in MIDDLE:
            egg = f"use = egg:swift#{EGGS.get(name, name)}"
            proxy += f"[filter:{name}]\n{'paste.filter_factory = lengths:make' if name == 'lengths' else egg}\n"
            if name == "tempauth":
                account, user = KEY.split(":")
                proxy += f"user_{account}_{user} = {SECRET} .admin\n"
        (etc / "proxy.conf").write_text(proxy)
        (etc / "lengths.py").write_text(LENGTHS)
        for kind in ("account", "container", "object", "proxy"):
            self._spawn(kind)
        wait_for("the servers", lambda: all(map(answers, self.ports.values())), 300)

    def stop(self) -> None:
        for process in self.servers:
            os.killpg(process.pid, signal.SIGTERM)
        for process in self.servers:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _spawn(self, kind: str) -> None:
        inside = f'mount --bind "{self.folder}/etc" /etc/swift && exec swift-{kind}-server /etc/swift/{kind}.conf'
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(self.folder / "etc")}
        with (self.folder / f"{kind}.out").open("ab") as out:
            server = subprocess.Popen(
                ["unshare", "--mount", "sh", "-c", inside], env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True,
            )  # fmt: skip
        self.servers.append(server)


def answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def swift(folder: Path) -> Iterator[Swift]:
    install(NEEDED, PACKAGES)
    Path("/etc/swift").mkdir(exist_ok=True)
    made = Swift(folder)
    try:
        made.start()
        yield made
    finally:
        made.stop()
