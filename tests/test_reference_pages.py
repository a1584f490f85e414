"""Every public name is on the pages of the reference, and is documented as numpydoc has it."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

import seminmf

INDEX = Path(__file__).parents[1] / "docs/reference/index.rst"
MODULES = ["datasets", "plot", "report", "special", "stats"]


def names_in_the_reference():
    """Full names of the entries, each under the module that is current there."""
    module, names = "", set()
    for line in INDEX.read_text().splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif found := re.fullmatch(r"   ([A-Za-z_][\w.]*)", line):
            names.add(f"{module}.{found[1]}")
    return names


def public_names():
    own = {f"seminmf.{name}" for name in seminmf.__all__ if name not in [*MODULES, "__version__"]}
    for module in MODULES:
        own |= {
            f"seminmf.{module}.{name}"
            for name in importlib.import_module(f"seminmf.{module}").__all__
        }
    return own


def resolve(name):
    parts = name.split(".")
    value = seminmf
    for place, part in enumerate(parts[1:], 1):
        if not hasattr(value, part):
            importlib.import_module(".".join(parts[: place + 1]))
        value = getattr(value, part)
    return value


def test_modules_are_all_that_are_public():
    modules = {name for name in seminmf.__all__ if inspect.ismodule(getattr(seminmf, name))}
    assert modules == set(MODULES)


def test_every_public_name_is_in_the_reference():
    assert public_names() - names_in_the_reference() == set()


@pytest.mark.parametrize("name", sorted(names_in_the_reference()))
def test_what_is_in_the_reference_is_there_and_documented(name):
    value = resolve(name)
    text = inspect.getdoc(value)
    assert text, f"{name} has no docstring"
    if inspect.isfunction(value):
        parameters = [p for p in inspect.signature(value).parameters if not p.startswith("_")]
        missing = [p for p in parameters if not re.search(rf"^.*\b{p}\b.* : ", text, re.M)]
        assert not missing, f"{name} does not say what {missing} are"
