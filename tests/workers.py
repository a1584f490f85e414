"""Work that other processes do in tests: they must find it in a module, not in a test."""

import os
import signal
import time
from pathlib import Path
from typing import Any


def note(folder: str, name: str, fails: bool = False) -> dict:
    """Leave a trace, so that one can count how often this was done."""
    if fails:
        raise RuntimeError(name)
    with (Path(folder) / "done").open("a") as file:
        print(name, file=file)
    return {"value": len(name), "list": [1.0, float("nan")]}


def sleep(seconds: float) -> dict:
    """Take long."""
    time.sleep(seconds)
    return {}


def slow(block: Any, seconds: float) -> Any:
    """Hand on a block, late."""
    time.sleep(seconds)
    return block


def kill_soon(pid: int, note: str) -> None:
    """End a process at once, a little later, and leave a trace."""
    time.sleep(1.5)
    os.kill(pid, signal.SIGKILL)
    Path(note).touch()
