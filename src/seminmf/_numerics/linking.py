"""Functions that are compiled with those that call them, and may be chosen by type.

By default numba optimises a function, and makes machine code of it, when it is first called from
another one, and does so again with each of its callers. Most of ours are only ever called by
kernels: they are kept as they were written down until a kernel has gathered all that it calls, and
then everything is optimised together, once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher


def prefer_wide_vectors(module: Any) -> None:
    """Let functions use 512-bit vectors where the machine has them.

    LLVM keeps to 256 bits by default, for the sake of code that has few vector instructions. The
    cell loops have nothing else: measured, 1.3 times as fast. Without effect on other machines.
    """
    for function in module.functions:
        # llvmlite checks the names of attributes and does not know those with a value.
        set.add(function.attributes, '"prefer-vector-width"="512"')


class _Unfinished(JITCodeLibrary):
    """Code of a function that waits for a kernel to be optimised, and never runs by itself."""

    def add_ir_module(self, ir_module: Any) -> None:
        prefer_wide_vectors(ir_module)
        super().add_ir_module(ir_module)

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Left to the kernel."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    @property
    def codegen(self) -> Any:
        """What numba tells where the function's Python objects are; we have none."""
        return self

    def set_env(self, env_name: str, env: Any) -> None:
        """Nothing to tell."""


class _Optimised(_Unfinished):
    """Code that is optimised before others have it, but never runs by itself either."""

    def _optimize_functions(self, ll_module: Any) -> None:
        JITCodeLibrary._optimize_functions(self, ll_module)

    def _optimize_final_module(self) -> None:
        JITCodeLibrary._optimize_final_module(self)


class _PieceCompiler(Compiler):
    """Numba's compiler, but for the code that it makes."""

    code: type[_Unfinished] = _Unfinished

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        self.state.library = self.code(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)


class _OptimisingPieceCompiler(_PieceCompiler):
    code = _Optimised


class _Piece(CPUDispatcher):
    """A function for others to call that are compiled, not for Python."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self.py_func.__name__} exists in compiled code only.")


_options: dict[str, Any] = {
    "error_model": "numpy",
    "no_cpython_wrapper": True,  # nobody calls them
    "no_cfunc_wrapper": True,
}


def piece(*, optimised: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """As `njit` with these options, for functions that only others call that are compiled.

    `optimised` ones are so on their own, before others have them.
    """
    compiler = _OptimisingPieceCompiler if optimised else _PieceCompiler

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = njit(pipeline_class=compiler, **_options, **options)(function)
        dispatcher.__class__ = _Piece
        return dispatcher

    return decorate


def handed_to(typing_context: Any, function: Any, *kinds: Any, first: int = 0) -> Any:
    """For an intrinsic whose call is that of another function, with its arguments from `first` on.

    So a function may be chosen by the types of the arguments. Numba's `overload` does as well, but
    compiles one more function for each choice.
    """
    callee = types.Dispatcher(function)
    signature: Any = callee.get_call_type(typing_context, kinds[first:], {})

    def codegen(context: Any, builder: Any, _: Any, args: Any) -> Any:
        implementation = context.get_function(callee, signature)
        context.add_linking_libs(getattr(implementation, "libs", ()))
        return implementation(builder, args[first:])

    return signature.return_type(*kinds), codegen
