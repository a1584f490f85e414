"""What several files say of the package is the same in all of them."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize(
    ("file", "pattern"),
    [("CITATION.cff", r"^version: (.+)$"), ("recipe/recipe.yaml", r'^  version: "(.+)"$')],
)
def test_one_version(file, pattern):
    assert re.findall(pattern, (ROOT / file).read_text(), re.M) == [PROJECT["version"]]


def test_the_changelog_speaks_of_this_version_or_of_the_next():
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert headings[0] == "Unreleased"
    assert headings[1:] == [] or headings[1] == PROJECT["version"]


def test_the_recipe_has_the_dependencies_of_the_package():
    recipe = (ROOT / "recipe/recipe.yaml").read_text()
    run = recipe.split("  run:\n")[1].split("\n\n")[0]
    wanted = {line.replace(">=", " >=") for line in PROJECT["dependencies"]}
    found = {line.removeprefix("    - ") for line in run.splitlines()}
    found = {line.replace("matplotlib-base", "matplotlib") for line in found}
    assert found == wanted | {"python >=${{ python_min }}"}
    assert f'python_min: "{PROJECT["requires-python"].removeprefix(">=")}"' in recipe


def test_one_address_of_the_repository():
    address = PROJECT["urls"]["Source"]
    for file in ["CITATION.cff", "docs/conf.py", "recipe/recipe.yaml"]:
        assert f'"{address}"' in (ROOT / file).read_text().replace(f" {address}\n", f' "{address}"')


def test_readme_has_no_relative_link_on_the_package_index():
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    text = (ROOT / "README.md").read_text()
    for rule in tool["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert len(links) > 10
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert all(
        "raw.githubusercontent" in link for link in re.findall(r"!\[.*?\]\((.*?png)\)", text)
    )
