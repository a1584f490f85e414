"""Where data are that do not come with the package: in a folder that the user names."""

import os
from pathlib import Path

FOLDER_VARIABLE = "SEMINMF_DATA"

DataHome = str | os.PathLike[str] | None


def find_file(name: str, data_home: DataHome) -> Path | None:
    """The path of ``name.csv.gz`` or ``name.csv``, or None."""
    folder = _folder(data_home)
    if folder is None:
        return None
    paths = (folder / file for file in _files(name))
    return next((path for path in paths if path.is_file()), None)


def require_file(name: str, data_home: DataHome, *, source: str, columns: str) -> Path:
    """The path of ``name.csv.gz`` or ``name.csv``; if it is missing, say how to get it."""
    path = find_file(name, data_home)
    if path is None:
        raise FileNotFoundError(
            f"{not_found(name, data_home)}; save {source} under that name, with {columns}, in a "
            f"folder that data_home or the environment variable {FOLDER_VARIABLE} names."
        )
    return path


def not_found(name: str, data_home: DataHome) -> str:
    """The beginning of a sentence: which file was not found, and where."""
    folder = _folder(data_home)
    where = (
        f", as neither data_home nor the environment variable {FOLDER_VARIABLE} names a folder"
        if folder is None
        else f" in the folder {folder}"
    )
    return f"{' or '.join(_files(name))} was not found{where}"


def _folder(data_home: DataHome) -> Path | None:
    if data_home is not None:
        return Path(data_home).expanduser()
    folder = os.environ.get(FOLDER_VARIABLE)
    return Path(folder).expanduser() if folder else None


def _files(name: str) -> tuple[str, str]:
    return f"{name}.csv.gz", f"{name}.csv"
