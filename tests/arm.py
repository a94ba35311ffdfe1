"""The machine's kernels as numba compiles them for an ARM processor, run by an emulator (Unicorn) in this process's own memory.

`python arm.py FOLDER` compiles them, in a process of its own, since kernels are made for the vectors of one processor: numba is told that
it is on ARM, and does all else by itself. `emulate` has the machine code run wherever the machine would call its kernels.
"""

import ctypes
import functools
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import unicorn
from llvmlite import binding
from unicorn import arm64_const

TRIPLE = "aarch64-unknown-linux-gnu"
CPACR_EL1, CPTR_EL3 = (1, 0, 3, 0, 2), (1, 1, 3, 6, 2)  # registers that say which instructions are allowed
ZCR = ((1, 2, 3, 0, 0), (1, 2, 3, 4, 0), (1, 2, 3, 6, 0))  # and how long vectors of SVE are: times 16 bytes, less one


@dataclass(frozen=True)
class Processor:
    name: str  # as LLVM has it
    features: str
    model: int  # of the emulator, which knows no instructions but its own
    settings: tuple[tuple[tuple[int, ...], int], ...]


NEON = Processor("generic", "+neon,+fp-armv8", arm64_const.UC_CPU_ARM64_A57, ((CPACR_EL1, 3 << 20),))
# Vectors of 32 bytes, of which parts are read and written by masks.
SVE = Processor(
    "neoverse-v1",
    "",
    arm64_const.UC_CPU_ARM64_MAX,
    ((CPTR_EL3, 1 << 8), *((length, 1) for length in ZCR), (CPACR_EL1, 3 << 20 | 3 << 16)),
)

# Functions of the C library that machine code calls, which are this process's own: letters of what is returned and of what is given.
LIBRARY = {"memcpy": "XXXX", "memset": "XXXX", "sinf": "SS", "cosf": "SS", "sin": "DD", "cos": "DD", "pow": "DDD"}
# Called for arrays that numba owns, which there are none of; but where one name is not found, none is.
NEVER = ("NRT_MemInfo_call_dtor",)
KINDS: dict[str, Any] = {"X": ctypes.c_uint64, "S": ctypes.c_float, "D": ctypes.c_double}  # by the registers of ARM
BREAKPOINT = 7  # the kind of interrupt
TRAP = 0x5500  # what interrupts the processor, plus the number of a trap of LLVM's


def compile_for_arm(folder: Path) -> None:
    """Machine code of the function that Python calls, for floats and for doubles, and its name."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    binding.get_process_triple = binding.get_default_triple = lambda: TRIPLE
    import numba

    from thousandfold.kernels.interpreter import run_members
    from thousandfold.kernels.vector import LANES
    from thousandfold.runtime import ARGUMENTS

    assert LANES == 4
    without_python = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    for dtype, arguments in ARGUMENTS.items():
        entry: Any = numba.jit(**run_members.targetoptions | without_python)(run_members.py_func)
        types = tuple(entry.typeof_pyval(one) for one in arguments())
        entry.compile(types)
        overload = entry.overloads[types]
        code = overload.library.codegen._tm.emit_object(overload.library._final_module)
        (folder / f"{dtype}.o").write_bytes(code)
        (folder / dtype).write_text(overload.fndesc.llvm_func_name)


@functools.cache
def compiled(processor: Processor) -> dict[str, bytes]:
    variables = {"NUMBA_CPU_NAME": processor.name, "NUMBA_CPU_FEATURES": processor.features}
    with tempfile.TemporaryDirectory(prefix="rankfall-arm-") as folder:
        subprocess.run([sys.executable, __file__, folder], check=True, env=os.environ | variables)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def around(entry: str, count: int) -> str:
    """A function that calls `entry` with what a table holds, so that it need not be said here where ARM has arguments; and the C
    library's functions, each of which interrupts with its number."""
    loads = [f"%p{i} = getelementptr i64, ptr %table, i64 {i}\n%a{i} = load i64, ptr %p{i}" for i in range(count)]
    given, kinds = ", ".join(f"i64 %a{i}" for i in range(count)), ", ".join(["i64"] * count)
    stubs = [
        f"define void @{name}() {{\ncall void @llvm.ubsantrap(i8 {i})\nunreachable\n}}"
        for i, name in enumerate((*LIBRARY, *NEVER))
    ]
    head = f'target triple = "{TRIPLE}"\ndeclare i32 @"{entry}"({kinds})\ndeclare void @llvm.ubsantrap(i8)'
    enter = ["define i32 @enter(ptr %table) {", *loads, f'%r = call i32 @"{entry}"({given})', "ret i32 %r", "}"]
    return "\n".join([head, *enter, *stubs])


def flat(x: Any) -> list[int]:
    """What numba hands on of an argument."""
    return [0, 0, x.size, x.itemsize, x.ctypes.data, *x.shape, *x.strides] if isinstance(x, np.ndarray) else [int(x)]


class Code:
    """The kernels for numbers of one type, in this process's memory."""

    def __init__(self, processor: Processor, dtype: str, count: int) -> None:
        """`count`: of the arguments, as `flat` has them."""
        binding.initialize_all_targets()
        binding.initialize_all_asmprinters()
        target = binding.Target.from_triple(TRIPLE)
        machine = target.create_target_machine(opt=3, reloc="default", codemodel="jitdefault", jit=True)
        self.processor, files = processor, compiled(processor)
        module = binding.parse_assembly(around(files[dtype].decode(), 2 + count))
        self.engine = binding.create_mcjit_compiler(module, machine)
        self.engine.add_object_file(binding.ObjectFileRef.from_data(files[f"{dtype}.o"]))
        self.engine.finalize_object()
        self.begin = self.engine.get_function_address("enter")

    def run(self, *args: Any) -> None:
        """By a new processor each time, whose memory is this process's, at the same addresses."""
        results, stack, end = np.zeros(2, np.int64), np.zeros(2**17, np.int64), np.zeros(1, np.int64)
        table = np.array([results.ctypes.data, results[1:].ctypes.data, *(x for one in args for x in flat(one))])
        cpu = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
        cpu.ctl_set_cpu_model(self.processor.model)
        unmapped = unicorn.UC_HOOK_MEM_READ_UNMAPPED | unicorn.UC_HOOK_MEM_WRITE_UNMAPPED
        cpu.hook_add(unmapped | unicorn.UC_HOOK_MEM_FETCH_UNMAPPED, map_memory, own_memory())
        cpu.hook_add(unicorn.UC_HOOK_INTR, call_library)
        for place, value in self.processor.settings:
            cpu.reg_write(arm64_const.UC_ARM64_REG_CP_REG, (*place, value))
        write(cpu, "PSTATE", read(cpu, "PSTATE"))  # only now it looks at these
        write(cpu, "SP", stack[-8:].ctypes.data & -64)
        write(cpu, "X0", table.ctypes.data)
        write(cpu, "LR", end.ctypes.data)
        cpu.emu_start(self.begin, end.ctypes.data)
        assert read(cpu, "PC") == end.ctypes.data and read(cpu, "W0") == 0


def read(cpu: Any, register: str) -> int:
    return int(cpu.reg_read(getattr(arm64_const, f"UC_ARM64_REG_{register}")))


def write(cpu: Any, register: str, value: int) -> None:
    cpu.reg_write(getattr(arm64_const, f"UC_ARM64_REG_{register}"), value)


def own_memory() -> list[tuple[int, int]]:
    """From where to where this process may read."""
    lines = (line.split() for line in Path("/proc/self/maps").read_text().splitlines())
    spans = (place.split("-") for place, allowed, *_ in lines if allowed.startswith("r"))
    return [(int(first, 16), int(last, 16)) for first, last in spans]


def map_memory(cpu: Any, access: int, address: int, size: int, value: int, memory: list[tuple[int, int]]) -> bool:
    """What lies at an address that has not been used yet."""
    for first, last in memory:
        if first <= address < last:
            cpu.mem_map_ptr(first, last - first, unicorn.UC_PROT_ALL, first)
            return True
    return False


def call_library(cpu: Any, number: int, _: Any) -> None:
    """What interrupts is one of the library's functions."""
    which = (ctypes.c_uint32.from_address(read(cpu, "PC")).value >> 5 & 0xFFFF) - TRAP
    assert number == BREAKPOINT and 0 <= which < len(LIBRARY), f"interrupt {number} at {read(cpu, 'PC'):x}"
    name, (returned, *given) = list(LIBRARY.items())[which]
    function = ctypes.CFUNCTYPE(KINDS[returned], *(KINDS[kind] for kind in given))(binding.address_of_symbol(name))
    bits = [read(cpu, f"{kind}{i}").to_bytes(8, "little") for i, kind in enumerate(given)]
    found = function(*(KINDS[kind].from_buffer_copy(one) for kind, one in zip(given, bits, strict=True)))
    write(cpu, f"{returned}0", int.from_bytes(bytes(KINDS[returned](found)), "little"))
    write(cpu, "PC", read(cpu, "LR"))


@functools.cache
def code(processor: Processor, dtype: str, count: int) -> Code:
    return Code(processor, dtype, count)


def emulate(patched: pytest.MonkeyPatch, processor: Processor) -> list[str]:
    """From now on the machine's kernels run on this processor. What is returned grows by an entry with each run."""
    from thousandfold import runtime

    runs: list[str] = []

    def run_members(*args: Any) -> None:
        dtype = args[0].dtype.name
        code(processor, dtype, sum(len(flat(one)) for one in args)).run(*args)
        runs.append(dtype)

    patched.setattr(runtime, "prepare", lambda dtype: None)
    patched.setattr(runtime, "run_members", run_members)
    return runs


if __name__ == "__main__":
    compile_for_arm(Path(sys.argv[1]))
