"""Compilation of the kernels by numba. Only the whole step is called from Python (`entry`), and it releases the interpreter lock.

Python calls none of the other functions, so each is only lowered, and optimised in its callers. numba optimises a function with all its
callees, and emits machine code, before it compiles the callers, so nested functions would be optimised once per level. Here this happens
only once, for the function that Python calls.
"""

from typing import Any

import numba
from numba.core import config
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import NativeLowering

SETTINGS: Any = config  # settings of numba from the environment
JIT: Any = numba.njit
INNER = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "error_model": "numpy"}

entry = JIT(nogil=True, error_model="numpy")


class InnerLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that is linked into its callers later."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class InnerLowering(NativeLowering):  # type: ignore[misc]
    _name = "inner_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = InnerLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        state.flags.no_compile = True
        super().run_pass(state)
        calls: list[Any] = []  # numba needs a distinct Python function for each of its functions; it is never called
        state.cr = state.cr._replace(cfunc=calls.append)
        state.targetctx.insert_user_function(state.cr.cfunc, state.cr.fndesc, [state.library])
        return True


class InnerCompiler(CompilerBase):  # type: ignore[misc]
    def define_pipelines(self) -> list[Any]:
        steps, manager = DefaultPassBuilder, PassManager("inner")
        for part in (
            steps.define_untyped_pipeline,
            steps.define_typed_pipeline,
            steps.define_nopython_lowering_pipeline,
        ):
            manager.passes.extend(part(self.state).passes)
        manager.passes = [(InnerLowering if step is NativeLowering else step, text) for step, text in manager.passes]
        manager.finalize()
        return [manager]


compiled: Any = JIT(**INNER, pipeline_class=InnerCompiler)
joint: Any = JIT(**INNER, pipeline_class=InnerCompiler, forceinline=True)  # inlined into the calling loop
