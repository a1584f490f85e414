#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.5"]
# ///
"""What continuous integration does, for everyone's machine: ``nox -l`` lists it."""

from pathlib import Path

import nox

nox.needs_version = ">=2025.5"
nox.options.default_venv_backend = "uv|virtualenv"

PYTHONS = ["3.11", "3.12", "3.13", "3.14", "3.15"]
# Every estimator, every kind of input and every command, in a few minutes.
QUICK = [
    "tests/estimators",
    "tests/commands",
    "tests/data",
    "tests/datasets",
    "tests/model",
    "tests/numerics",
    "tests/test_import.py",
    "tests/test_sklearn.py",
]


@nox.session(python="3.11", default=True)
def lint(session: nox.Session) -> None:
    """Style and types."""
    session.install(".[test]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session(python=PYTHONS, default=False)
def tests(session: nox.Session) -> None:
    """The whole suite, or what is asked for: ``nox -s tests-3.13 -- tests/estimators``."""
    session.install(".[test]")
    session.run("pytest", *session.posargs)


@nox.session(python="3.11", venv_backend="uv", default=False)
def lowest(session: nox.Session) -> None:
    """The oldest dependencies that pyproject.toml accepts."""
    session.install("--resolution=lowest-direct", ".[test]")
    session.run("pytest", *(session.posargs or QUICK))


@nox.session(python="3.15", default=False)
def newest(session: nox.Session) -> None:
    """The newest dependencies, those before their release too."""
    session.install("--pre", "--upgrade", ".[test]")
    session.run("pytest", *(session.posargs or QUICK))


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """The site with its gallery in docs/_build/html; ``-- -D plot_gallery=0`` leaves that out."""
    session.install(".[docs]")
    build = ["-W", "--keep-going", "-b", "html", *session.posargs, "docs", "docs/_build/html"]
    session.run("python", "-m", "sphinx", *build)
    session.run("python", "tools/check_site.py", "docs/_build/html")


@nox.session(default=False)
def package(session: nox.Session) -> None:
    """Build wheel and sdist, check them, and run the demo from the wheel alone."""
    session.install("build", "twine")
    for old in Path("dist").glob("seminmf-*"):
        old.unlink()
    session.run("python", "-m", "build")
    files = [str(file) for file in sorted(Path("dist").glob("seminmf-*"))]
    session.run("twine", "check", "--strict", *files)
    session.install(*(file for file in files if file.endswith(".whl")))
    with session.chdir(session.create_tmp()):
        session.run("seminmf", "demo")


@nox.session(default=False)
def review(session: nox.Session) -> None:
    """How the repository is set up, against Scientific Python's guide."""
    session.install("sp-repo-review[cli]")
    session.run("repo-review", ".", success_codes=[0, 1])


if __name__ == "__main__":
    nox.main()
