"""Functions that are compiled with those that call them, and may be chosen by type.

By default numba optimises a function, and makes machine code of it, when it is first called from
another one, and does so again with each of its callers. Most of ours are only ever called by
kernels: they are kept as they were written down until a kernel has gathered all that it calls, and
then everything is optimised together, once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from numba import extending, njit, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.registry import CPUDispatcher
from numba.core.typing.templates import builtin_registry as typing_registry


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

    def finalize(self) -> None:
        """Nothing else is part of it: kernels are linked with each function once."""
        _make_mergeable(self._final_module)
        self._finalized = True

    @property
    def alone(self) -> Any:
        """The function's own code, as a module."""
        self._ensure_finalized()
        return self._final_module

    def _get_module_for_linking(self) -> Any:
        """For others than kernels: with all that the function calls."""
        if self._shared_module is None:
            self._shared_module = self.alone.clone()
            _link(self._shared_module, self._linking_libraries)
        return self._shared_module

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    @property
    def codegen(self) -> Any:
        """What numba tells where the function's Python objects are; we have none."""
        return self

    def set_env(self, env_name: str, env: Any) -> None:
        """Nothing to tell."""


def _make_mergeable(module: Any) -> None:
    """Let a module's functions come to a kernel more than once."""
    for function in module.functions:
        if not function.is_declaration and function.linkage == llvm.Linkage.external:
            function.linkage = llvm.Linkage.linkonce_odr


def _link(module: Any, libraries: list[Any]) -> set[Any]:
    """Add the code of libraries to a module, and of all that they call, each once."""
    seen: set[Any] = set()
    waiting = list(reversed(libraries))
    while waiting:
        library = waiting.pop()
        if library not in seen:
            seen.add(library)
            if isinstance(library, _Unfinished):
                module.link_in(library.alone, preserve=True)
                waiting.extend(reversed(library._linking_libraries))
            else:
                module.link_in(library._get_module_for_linking(), preserve=True)
    return seen


class LinkingLibrary(JITCodeLibrary):
    """Code that is linked with all that it calls, and all that those call, at once."""

    def add_ir_module(self, ir_module: Any) -> None:
        prefer_wide_vectors(ir_module)
        super().add_ir_module(ir_module)

    def finalize(self) -> None:
        linked = _link(self._final_module, self._linking_libraries)
        if hasattr(self, "_reload_init"):  # which older versions of numba do not have
            for library in linked:
                self._reload_init.update(library._reload_init)
        self._linking_libraries = []
        super().finalize()


class _Optimised(LinkingLibrary):
    """Code that is optimised before others have it, but never runs by itself either."""

    def _finalize_final_module(self) -> None:
        _make_mergeable(self._final_module)
        self._shared_module = self._final_module
        self._finalized = True

    get_pointer_to_function = _Unfinished.get_pointer_to_function
    codegen = _Unfinished.codegen
    set_env = _Unfinished.set_env


# Passes of numba's compiler for what our functions do not have: closures, functions that are
# inlined as source, `with`, expressions of whole arrays, branches that are dead by type, variables
# that change their type (which SSA would keep apart). Each goes over a function's every statement.
_NEEDLESS = {
    "WithLifting",
    "InlineClosureLikes",
    "RewriteSemanticConstants",
    "DeadBranchPrune",
    "RewriteDynamicRaises",
    "MakeFunctionToJitFunction",
    "InlineInlinables",
    "FindLiterallyCalls",
    "LiteralUnroll",
    "ReconstructSSA",
    "PreLowerStripPhis",
    "LiteralPropagationSubPipelinePass",
    "InlineOverloads",
    "NopythonRewrites",
    "NoPythonSupportedFeatureValidation",
    "AnnotateTypes",
    "DumpParforDiagnostics",
}


class _SettledFlags(Flags):
    """Options of a compilation that has begun, which are compared some ten thousand times."""

    __slots__ = ("_hash", "_settled")

    def __init__(self, copy_from: Flags) -> None:
        super().__init__(copy_from)
        self._settled = super().values()
        self._hash = super().__hash__()

    def values(self) -> dict[str, Any]:
        return self._settled

    def __eq__(self, other: object) -> bool:
        return self is other or super().__eq__(other)

    def __hash__(self) -> int:
        return self._hash


class _Flags(Flags):
    """Options, a copy of which is what a compilation has for the time that it takes."""

    def copy(self) -> Flags:
        return _SettledFlags(self)


class LeanCompiler(Compiler):
    """Numba's compiler with the passes that our functions need, or with all if one needs more."""

    def __init__(self, *args: Any, lean: bool = True) -> None:
        super().__init__(*args)
        self.state.flags = _Flags(self.state.flags)
        self._args, self._lean = args, lean

    def define_pipelines(self) -> list[Any]:
        pipelines = super().define_pipelines()
        if self._lean:
            for pipeline in pipelines:
                steps = pipeline.passes
                pipeline.passes = [step for step in steps if step[0].__name__ not in _NEEDLESS]
        return pipelines

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        try:
            return super().compile_extra(func)
        except Exception:  # numba raises many kinds where it meets what a pass should have removed
            if not self._lean:
                raise
        return type(self)(*self._args, lean=False).compile_extra(func)


class _PieceCompiler(LeanCompiler):
    """The compiler, but for the code that it makes."""

    code: type[JITCodeLibrary] = _Unfinished

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


def intrinsic(function: Callable[..., Any]) -> Any:
    """As numba's `intrinsic`, but that calls of types that it has seen are looked up at once.

    Numba first goes through all that it knows of, for each call that it meets.
    """
    made = extending.intrinsic(function)
    template = typing_registry.functions[-1]
    if template.key is made:
        template.generic = _remembering(template.generic)
    return made


def _remembering(find: Callable[..., Any]) -> Callable[..., Any]:
    def generic(self: Any, args: tuple, kws: dict[str, Any]) -> Any:
        known = self._impl_cache.get((self.context, args, tuple(kws.items())))
        return find(self, args, kws) if known is None else known

    return generic


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
