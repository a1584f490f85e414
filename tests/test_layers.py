"""Imports go down: no part of the library knows what is built on it.

A part is a module or a folder of the package. All imports count: those inside functions and those
for types as well.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "seminmf"

# From top to bottom. A part imports from its own layer and from those below.
LAYERS = (
    ("cli", "demo", "_commands", "experiments"),
    ("report", "plot", "io", "imputer", "annotated"),
    ("selection", "prior_learning", "_selection", "_prior_learning", "_resampling"),
    ("skellam", "bayesian", "euclidean", "tensor"),
    ("_estimators",),
    ("_algorithms",),
    ("_kernels", "generate", "_views"),
    ("_data", "_model"),
    ("_numerics", "special", "divergence", "stats", "datasets"),
)
DEPTH = {part: depth for depth, parts in enumerate(LAYERS) for part in parts}
# Neighbours that know nothing of each other, and parts that know nothing of any other.
STRANGERS = {frozenset(("_data", "_model"))}
LEAVES = {"datasets", "_views"}


class Import(NamedTuple):
    """A part that imports another, and where."""

    part: str
    target: str
    place: str

    @property
    def is_allowed(self) -> bool:
        """Whether it stays in its part, or goes down to one that the part may know."""
        if self.part == self.target:
            return True
        pair = {self.part, self.target}
        if self.part in LEAVES or pair in STRANGERS:
            return False
        return DEPTH[self.part] <= DEPTH[self.target]


def parts_of(package: Path) -> set[str]:
    """Names of all parts."""
    return {path.stem for path in package.iterdir() if _is_part(path)}


def _is_part(path: Path) -> bool:
    if path.is_dir():
        return (path / "__init__.py").exists()
    return path.suffix == ".py" and path.stem != "__init__"


def imports_of(package: Path) -> Iterator[Import]:
    """What the parts import from each other, wherever in their modules."""
    parts, exported = parts_of(package), _exported(package)
    for path in sorted(package.rglob("*.py")):
        names = path.relative_to(package).with_suffix("").parts
        if names == ("__init__",):
            continue  # the face of the whole: it hands on what the parts have
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            for target in _names(node, package.name, names[:-1]):
                # What is no part comes from one, or is of the face alone, as the version is.
                target = exported.get(target, target)
                if target in parts:
                    yield Import(names[0], target, f"{path.relative_to(package)}:{node.lineno}")


def _names(node: ast.AST, package: str, folder: tuple[str, ...]) -> Iterator[str]:
    """What a statement, in a module of this folder, imports directly below the package."""
    if isinstance(node, ast.Import):
        modules = [alias.name.split(".") for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        base = node.module.split(".") if node.module else []
        if node.level:
            base = [package, *folder[: len(folder) + 1 - node.level], *base]
        modules = [[*base, alias.name] for alias in node.names]
    else:
        return
    for root, *names in modules:
        if root == package and names:
            yield names[0]


def _exported(package: Path) -> dict[str, str]:
    """The part that each name comes from that the package hands on."""
    found = {}
    for node in ast.walk(ast.parse((package / "__init__.py").read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(package.name):
            found |= {alias.name: node.module.split(".")[1] for alias in node.names}
    return found


# --- the library ----------------------------------------------------------------------------------


def test_each_part_has_a_layer():
    assert parts_of(PACKAGE) == set(DEPTH)


@pytest.fixture(scope="module")
def imports():
    return list(imports_of(PACKAGE))


@pytest.mark.parametrize("part", DEPTH)
def test_imports_go_down(imports, part):
    wrong = [
        f"{found.place} imports {found.target}"
        for found in imports
        if found.part == part and not found.is_allowed
    ]
    assert not wrong


def test_the_parts_import_each_other(imports):
    """Nothing is found where nothing is looked at."""
    above = {part for parts in LAYERS[:6] for part in parts}
    assert above <= {found.part for found in imports if found.part != found.target}


# --- the checker ----------------------------------------------------------------------------------

FACE = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from seminmf.bayesian import BayesianSkellamSNMF
__version__ = "1"
"""


@pytest.fixture
def tree(tmp_path):
    """A package in which all parts are there, and empty."""
    package = tmp_path / "seminmf"
    package.mkdir()
    (package / "__init__.py").write_text(FACE)
    for part in DEPTH:
        (package / part).mkdir()
        (package / part / "__init__.py").touch()
    (package / "_data" / "chunked").mkdir()
    return package


def wrong_imports(tree, path, code):
    """Targets of what is not allowed, if a module has this code."""
    (tree / path).write_text(code)
    return [found.target for found in imports_of(tree) if not found.is_allowed]


@pytest.mark.parametrize(
    ("path", "code", "target"),
    [
        ("_data/source.py", "from .._estimators import base", "_estimators"),
        ("_data/source.py", "from .. import _estimators", "_estimators"),
        ("_data/chunked/source.py", "from ..._kernels.em import estep", "_kernels"),
        ("_kernels/estep.py", "import seminmf._algorithms.em", "_algorithms"),
        ("_kernels/estep.py", "from seminmf import io", "io"),
        ("_kernels/estep.py", "def f():\n    from ..report import report", "report"),
        ("_algorithms/em.py", "if TYPE_CHECKING:\n    from ..bayesian import B", "bayesian"),
        ("_estimators/base.py", "from .. import BayesianSkellamSNMF", "bayesian"),
        ("_estimators/base.py", "class A:\n    def f(self):\n        import seminmf.io", "io"),
        ("_data/source.py", "from .._model import model", "_model"),
        ("_model/model.py", "from .._data.source import Data", "_data"),
        ("_views/markup.py", "from .._numerics import gamma", "_numerics"),
        ("datasets/jester.py", "from ..stats import skellam", "stats"),
    ],
)
def test_an_import_that_is_not_allowed_is_found(tree, path, code, target):
    assert wrong_imports(tree, path, code) == [target]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("_estimators/base.py", "from . import runs\nfrom .._data.source import Data"),
        ("_data/chunked/source.py", "from ..executor import Executor\nfrom . import workers"),
        ("selection/__init__.py", "from .._prior_learning import nodes"),
        ("_estimators/checkpoint.py", "from .. import __version__"),
        ("_kernels/estep.py", "import numpy\nfrom numba import njit\nfrom . import rows"),
        ("experiments/online.py", "from .. import BayesianSkellamSNMF"),
    ],
)
def test_an_import_that_is_allowed_is_not_found(tree, path, code):
    assert wrong_imports(tree, path, code) == []
