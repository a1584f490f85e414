"""How the kernels are compiled: wide vectors, no global lock, and one word to the user."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding as llvm
from numba import njit
from numba.core import event

from .kernel_cache import cache_of, say_once
from .linking import LeanCompiler, LinkingLibrary, piece


class _OwnCode(LinkingLibrary):
    """Machine code of a kernel that calls its own copies of the kernels that it calls.

    A kernel is linked with copies of those that it calls, and the compiler goes over them once
    more: they may add up in another order. By default a process runs the first copy that it meets
    under a name, be it the one compiled on its own or one that came with a caller, so that the last
    bits would depend on what else was compiled or loaded, and when. Others link what they always
    did, and so the code is as fast as it was.
    """

    def _optimize_functions(self, ll_module: Any) -> None:
        """Left to what follows, which does the same with all functions together."""
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Optimise once; numba does so twice, and by default loops are unrolled.

        That is a fifth of the time that a compilation takes, and gives code that is no faster: what
        there is to unroll, is (`looping_function`, `products`).
        """
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        options.loop_vectorization = True
        options.loop_unrolling = False
        builder = llvm.create_pass_builder(self._codegen._tm, options)
        passes = builder.getModulePassManager()
        passes.add_refprune_pass()
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        self._shared_module = self._final_module.clone()
        for function in self._shared_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.external:
                function.linkage = llvm.Linkage.linkonce_odr
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.linkonce_odr:
                function.linkage = llvm.Linkage.internal
        super()._finalize_final_module()


class _KernelCompiler(LeanCompiler):
    """The compiler, but for the code that it makes."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        self.state.library = _OwnCode(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        with _uncollected():
            return super().compile_extra(func)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without garbage collection, which takes a tenth of a compilation's time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def cached_njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """As `njit` with these options, with a cache, and with the same bits in every process.

    A process that compiles runs the very code that later ones load. What is damaged in the cache is
    compiled again; if there is no place for a cache, everything is.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = njit(pipeline_class=_KernelCompiler, **options)(function)
        dispatcher._cache = cache_of(function)
        return dispatcher

    return decorate


# "reassoc" allows a sum over cells to run in several lanes; nothing allows to ignore NaN, which
# marks the gaps.
_options: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc", "nsz"},
    "no_cfunc_wrapper": True,  # nobody calls it, and it takes time to compile
}
# Most kernels make no arrays, and need not count who refers to one: that is half of their code
# before it is optimised.
kernel = cached_njit(_nrt=False, **_options)
kernel_with_arrays = cached_njit(**_options)

# A piece of a kernel that stands apart: to be read, or because several kernels have it.
part = piece(_nrt=False, fastmath=_options["fastmath"])
# One that makes arrays or returns one, for kernels with arrays.
part_with_arrays = piece(fastmath=_options["fastmath"])
# Where it is measured that the code is faster for it.
part_optimised = piece(optimised=True, _nrt=False, fastmath=_options["fastmath"])


class _Announcement(event.Listener):
    """Says once in a process that kernels are being compiled."""

    def on_start(self, event: Any) -> None:
        say_once("compiling", "compiling for this machine, once; it takes some seconds.")

    def on_end(self, event: Any) -> None:
        """Nothing to say."""


@contextmanager
def announced() -> Iterator[None]:
    """Tell the user if something is compiled inside, rather than taken from the disk's cache."""
    with event.install_listener("numba:compile", _Announcement()):
        yield
