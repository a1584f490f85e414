"""Tables as text: parsed in parts, they are what they would be as a whole."""

import os

import numpy as np
import pandas as pd
import pytest

from seminmf._commands import formats, text
from seminmf._commands.text import Roles

TABLES = {
    "numbers": "a,b\n1.5,2\n,-3e2\n.25,NA\n7,8\n9,10\n",
    "integers": "a,b\n1,2\n3,4\n5,6\n7,8\n-9,10\n",
    "integers beside numbers": "a,b,c\n1,2,3\n3,4,4\n5,6.5,5\n7,8,\n-9,10,1\n",
    "integers that floats do not have": "a,b\n1,2\n3,9007199254740993\n5,6\n7,8\n9,10\n",
    "integers, and larger than any": "a,b\n1,2\n3,99999999999999999999\n5,6\n7,-8\n9,10\n",
    "text in a late row": "a,b\n1,2\n3,4\n5,6\n7,8\n9,x\n",
    "text in an early row": "a,b\n1,2\n3,x\n5,6\n7,8\n9,10\n",
    "truths": "a,b\n1,True\n3,False\n5,True\n7,False\n9,True\n",
    "truths and numbers": "a,b\n1,True\n3,False\n5,True\n7,8\n9,True\n",
    "gaps alone": "a,b\n,\n,\n,\n,\n,\n",
    "ids between": "a,id,b\n1,01,2\n3,,4\n5,NA,6\n7,x,8\n9,x,10\n",
    "ids alone": "id\n01\nx\nx\n",
    "empty lines": "\n\na,b\n\n1,2\n3,4\n\n\n5,6\n7,8\n\n",
    "one column": "a\n1\n\n3\n4\n5\n\n",
    "quotes": 'a,id,b\n1,"x\ny",2\n"3",",",4\n5,"""",6\n',
    "carriage returns": "a,b\r\n1,2\r\n3,4\r\n5,6\r\n",
    "a mark": "\ufeffa,b\n1,2\n3,4\n5,6\n",
    "no rows": "a,b\n",
    "no header": "1,2.5,3\n4,5,6\n7,8,9\n",
}


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("name", TABLES)
def test_parts_are_the_whole(name, rows, tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    path.write_bytes(TABLES[name].encode())
    header, roles = name != "no header", Roles(["id"])
    monkeypatch.setattr(text, "_joined", lambda parts, *others: None)
    whole = formats.read(str(path), header=header, roles=roles)
    monkeypatch.undo()
    monkeypatch.setattr(text, "_PARSED", rows * len(whole.frame.columns))
    found = formats.read(str(path), header=header, roles=roles)
    pd.testing.assert_frame_equal(found.frame, whole.frame, check_exact=True)
    pd.testing.assert_frame_equal(found.letters(), whole.letters())
    assert found.named == whole.named


def test_what_can_be_joined_is_not_parsed_twice(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    path.write_text(TABLES["integers beside numbers"])
    monkeypatch.setattr(text, "_whole", lambda parse, **options: pytest.fail("parsed again"))
    monkeypatch.setattr(text, "_PARSED", 3)
    found = formats.read(str(path))
    assert [dtype.kind for dtype in found.frame.dtypes] == ["i", "f", "f"]


def test_numbers_are_not_copied(tmp_path):
    """Tables are as large as memory allows, and X is the frame's own."""
    path = tmp_path / "table.csv"
    path.write_text(TABLES["numbers"])
    frame = formats.read(str(path)).frame
    values = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    assert np.shares_memory(values, frame.to_numpy()) and values.flags.c_contiguous


def test_a_file_that_changes_is_refused(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(TABLES["numbers"])
    found = formats.read(str(path))
    before = os.stat(path)
    path.write_text(TABLES["numbers"].replace("7", "8"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    with pytest.raises(ValueError, match="has changed while it was read"):
        found.letters()
