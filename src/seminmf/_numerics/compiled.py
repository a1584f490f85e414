"""How the kernels are compiled: wide vectors, no global lock, and one word to the user."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba import njit, types
from numba.core import event
from numba.extending import intrinsic

# "reassoc" allows a sum over cells to run in several lanes; nothing allows to ignore NaN, which
# marks the gaps.
_options: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc", "nsz"},
    "no_cfunc_wrapper": True,  # nobody calls it, and it takes time to compile
}
kernel = njit(**_options)

# A piece of a kernel that stands apart to be read: compiled with it, not on its own as well, which
# would take the compiler the same time again.
part = njit(inline="always", error_model="numpy")


@intrinsic
def prefer_wide_vectors(typing_context):
    """Let the function that calls this use 512-bit vectors where the machine has them.

    LLVM keeps to 256 bits by default, for the sake of code that has few vector instructions. The
    cell loops have nothing else: measured, 1.3 times as fast. Without effect on other machines.
    """

    def codegen(context, builder, signature, args):
        # llvmlite checks the names of attributes and does not know those with a value.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), codegen


class _Announcement(event.Listener):
    """Says once in a process that kernels are being compiled."""

    made = False

    def on_start(self, event: Any) -> None:
        if not _Announcement.made:
            _Announcement.made = True
            print(
                "seminmf: compiling for this machine, once; it takes some seconds.",
                file=sys.stderr,
                flush=True,
            )

    def on_end(self, event: Any) -> None:
        """Nothing to say."""


@contextmanager
def announced() -> Iterator[None]:
    """Tell the user if something is compiled inside, rather than taken from the disk's cache."""
    with event.install_listener("numba:compile", _Announcement()):
        yield
