"""Work that other processes do in tests: they must find it in a module, not in a test."""

import time
from pathlib import Path


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
