"""What a file reads of the clock, the machine and the process, random numbers that nobody seeded, and compilers with a memory: found in
its syntax tree, as text.

None of it is in a key, so that one key would stand for several numbers. Names are followed through imports (`import time as t`,
`from datetime import datetime`, `from time import *`) and through other names of these (`t = time`). What stands under
`if __name__ == "__main__"` is no part of an imported module.
"""

import ast
from collections.abc import Callable, Iterator, Sequence

READS = frozenset(
    {
        *(f"time.{name}{end}" for name in ("time", "perf_counter", "monotonic", "process_time") for end in ("", "_ns")),
        *(f"time.{name}{end}" for name in ("thread_time", "clock_gettime") for end in ("", "_ns")),
        *(f"time.{name}" for name in ("localtime", "gmtime", "ctime", "asctime", "strftime")),
        *(f"datetime.{name}" for name in ("datetime.now", "datetime.utcnow", "datetime.today", "date.today")),
        *(f"timeit.{name}" for name in ("default_timer", "timeit", "repeat", "Timer")),
        *(f"os.{name}" for name in ("getcwd", "getcwdb", "getpid", "getppid", "getuid", "getgid", "getlogin", "uname")),
        *(f"os.{name}" for name in ("cpu_count", "process_cpu_count", "sched_getaffinity", "getloadavg", "times")),
        *("pathlib.Path.cwd", "socket.gethostname", "socket.getfqdn", "getpass.getuser", "resource.getrusage"),
        *("multiprocessing.cpu_count", "multiprocessing.current_process"),
        *(f"threading.{name}" for name in ("get_ident", "get_native_id", "current_thread", "active_count")),
        *("torch.get_num_threads", "torch.get_num_interop_threads", "torch.backends.cpu.get_cpu_capability"),
        *(f"torch.cuda.{name}" for name in ("device_count", "get_device_name", "get_device_capability")),
        *(f"torch.cuda.{name}" for name in ("get_device_properties", "mem_get_info", "memory_allocated")),
        *("uuid.getnode", "sys.getrefcount"),
    }
)
READ_MODULES = ("platform", "psutil")  # all that is in them
# Random numbers that begin elsewhere in every process: of Python's and NumPy's modules all but what is made of a seed.
DRAWS = frozenset({"os.urandom", "uuid.uuid1", "uuid.uuid4", "torch.seed", "random.SystemRandom"})
DRAW_MODULES = ("numpy.random", "random", "secrets")
OF_SEED = frozenset(
    {"default_rng", "Random", "RandomState", "SeedSequence", "MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"}
)
TYPES = frozenset({"Generator", "BitGenerator", "SystemRandom"})
# Of torch, what draws from the generator that it is given, or from the one of the process.
OF_GENERATOR = frozenset(
    f"torch.{name}" for name in ("rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial")
)
# What compiles a function for the sizes that it meets, and no more after so many: its bits depend on what was computed before.
COMPILES = frozenset({"torch.compile", "torch.jit.script", "torch.jit.trace"})
STARRED = (
    READS
    | DRAWS
    | {
        f"random.{name}"
        for name in ("random", "randint", "randrange", "choice", "shuffle", "sample", "uniform", "gauss")
    }
)

Meaning = Callable[[ast.expr], str | None]


def outside(tree: ast.Module, meaning: Meaning) -> list[tuple[int, str, str]]:
    """Line, name, and `reads`, `draws` or `compiles`, in order; `meaning` is the dotted name that an expression stands for."""
    found = {
        (node.lineno, *one)
        for node in _import_nodes(tree)
        if isinstance(node, ast.expr) and (one := _use(node, meaning))
    }
    return sorted(found)


def star_names(module: str) -> dict[str, str]:
    """What `from module import *` makes of names."""
    return {name.removeprefix(f"{module}."): name for name in STARRED if name.rpartition(".")[0] == module}


def _import_nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """All nodes but those of a block that only runs when the file is a program."""
    for statement in tree.body:
        if not (
            isinstance(statement, ast.If)
            and ast.unparse(statement.test) in ("__name__ == '__main__'", "'__main__' == __name__")
        ):
            yield from ast.walk(statement)


def _use(node: ast.expr, meaning: Meaning) -> tuple[str, str] | None:
    if isinstance(node, ast.Call):
        return _call(node, meaning)
    if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
        return _find_named(meaning(node) or "")
    return None


def _find_named(name: str) -> tuple[str, str] | None:
    module = next((one for one in (*READ_MODULES, *DRAW_MODULES) if name.startswith(f"{one}.")), "")
    inside = name.removeprefix(f"{module}.").partition(".")[0]
    if name in READS or module in READ_MODULES:
        return name, "reads"
    if name in COMPILES:
        return name, "compiles"
    if name in DRAWS or (module in DRAW_MODULES and inside not in OF_SEED | TYPES):
        return name, "draws"
    return None


def _call(node: ast.Call, meaning: Meaning) -> tuple[str, str] | None:
    """A generator without a seed, torch's without a generator, and `getattr(time, "time")`."""
    name = meaning(node.func) or ""
    first = node.args[0] if node.args else next((word.value for word in node.keywords if word.arg == "seed"), None)
    unseeded = first is None or (isinstance(first, ast.Constant) and first.value is None)
    spread = any(isinstance(item, ast.Starred) for item in node.args) or any(word.arg is None for word in node.keywords)
    module, _, last = name.rpartition(".")
    if module in DRAW_MODULES and last in OF_SEED and unseeded and not (spread or node.keywords[1:]):
        return f"{name}()", "draws"
    if name in OF_GENERATOR and not spread and all(word.arg != "generator" for word in node.keywords):
        return name, "draws"
    match node.args:
        case [ast.expr() as holder, ast.Constant(value=str(text)), *_] if name == "getattr":
            return _find_named(f"{meaning(holder)}.{text}")
    return None


def describe_uses(uses: Sequence[tuple[int, str, str]]) -> tuple[str, str]:
    """The first in words, and what to do instead."""
    line, name, how = uses[0]
    if how == "draws":
        what = f"draws from `{name}` in line {line}: random numbers that begin elsewhere in every process"
        return (
            what,
            "draw from the generator or stream that it is given, or from `numpy.random.default_rng(seed)` with a seed that is an option",
        )
    if how == "compiles":
        what = f"calls `{name}` in line {line}: it compiles a few sizes and rounds others otherwise, so that numbers depend on those before"
        return what, "leave it out: a training step is traced and run by one engine, however the function is written"
    what = f"reads `{name}` in line {line}: the clock, machine or process, which no key holds: one key would stand for several numbers"
    return what, "make what it needs an option, which is part of the key"
