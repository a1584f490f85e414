"""Writes in compiled code that numba would drop.

Where overloads are inlined, numba looks for dead code, and takes a write to an array that is an
attribute of a tuple for dead. Arrays are taken out of their tuple before they are written to.
"""

import ast
from pathlib import Path

import pytest

import seminmf

SOURCE = Path(seminmf.__file__).parent
COMPILED = sorted([*SOURCE.glob("_kernels/*/*.py"), SOURCE / "_model/priors.py"])


def writes_to_attributes(text):
    """Lines in which compiled functions assign to an entry of an attribute."""
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef) and is_compiled(function):
            for node in ast.walk(function):
                store = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
                if store and isinstance(node.value, ast.Attribute):
                    yield node.lineno


def is_compiled(function):
    names = {getattr(decorator, "id", "") for decorator in function.decorator_list}
    overloads = any(
        isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "overload"
        for decorator in function.decorator_list
    )
    return overloads or bool(names & {"kernel", "part", "scalar_function"})


@pytest.mark.parametrize("path", COMPILED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_entry_of_an_attribute_is_assigned_to(path):
    assert list(writes_to_attributes(path.read_text())) == []


def test_such_a_write_is_found():
    text = "@kernel\ndef f(room):\n    x = room.x\n    x[0] = 1\n    room.x[0], y = 1, 2\n"
    assert list(writes_to_attributes(text)) == [5]
