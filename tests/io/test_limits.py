"""Files that ask for more than a model needs: refused before it is taken."""

from __future__ import annotations

import io
import json
import time

import numpy as np
import pytest
import scipy.sparse as sp
from model_files import assert_same_outputs, rewritten, round_trip, two_classes

from fitonce import LeastSquaresSVC, load, save
from fitonce.io import contents


@pytest.fixture
def sparse(tmp_path):
    X, y = two_classes()
    X[np.abs(X) < 0.5] = 0.0
    model = LeastSquaresSVC(gamma=0.5, alpha=0.1).fit(sp.csr_matrix(X), y)
    return save(model, tmp_path / "sparse.skops")


def with_attribute(path, node, name="forged_", **members):
    """The same model with one more attribute."""

    def change(found):
        schema = json.loads(found["schema.json"])
        content = schema["content"]
        content["content"][name] = node
        content["key_types"]["content"].append(content["key_types"]["content"][0])
        found["schema.json"] = json.dumps(schema).encode()
        found.update(members)

    return rewritten(path, change)


def with_array(path, ending, change):
    """The same model with another content of its first member of a kind; `change` gets the old
    one and a buffer for the new one.
    """

    def changed(members):
        name = next(name for name in members if name.endswith(ending))
        buffer = io.BytesIO()
        change(io.BytesIO(members[name]), buffer)
        members[name] = buffer.getvalue()

    return rewritten(path, changed)


def listed(items, number):
    return {
        "__class__": "list",
        "__module__": "builtins",
        "__loader__": "ListNode",
        "__id__": number,
        "content": items,
    }


def assert_refused(path, match):
    start = time.process_time()
    with pytest.raises(ValueError, match=match):
        load(path)
    assert time.process_time() - start < 5.0


# ---- sparse matrices -----------------------------------------------------------------------------


def out_of_range(matrix):
    matrix["indices"][3] = 10_000_000


def negative(matrix):
    matrix["indices"][3] = -5


def falling(matrix):
    matrix["indptr"][2] = matrix["indptr"][-1]
    matrix["indptr"][3] = 0


@pytest.mark.parametrize("forge", [out_of_range, negative, falling])
def test_indices_outside_a_sparse_matrix(sparse, forge):
    """They would be read as addresses by compiled code."""

    def change(old, new):
        matrix = dict(np.load(old))
        forge(matrix)
        np.savez(new, **matrix)

    assert_refused(with_array(sparse, ".npz", change), "is damaged: its parts cannot be read")


@pytest.mark.parametrize("loader", ["ObjectNode", "ConstructorFromReduceNode", "TypeNode"])
@pytest.mark.parametrize("home", ["scipy.sparse._csr", "scipy.sparse"])
def test_a_sparse_matrix_that_is_built_by_other_means(saved, loader, home):
    node = {**listed([], 7001), "__class__": "csr_matrix", "__module__": home, "__loader__": loader}
    assert_refused(with_attribute(saved, node), f"a sparse matrix is read by {loader}")


# ---- more than a model needs ---------------------------------------------------------------------


def test_lists_that_share_each_other(saved):
    """Sixty lists, each of which has the next one twice: 2⁶⁰ visits."""
    node = listed([], 8000)
    for number in range(8001, 8061):
        node = listed([node, {"__id__": node["__id__"]}], number)
    assert_refused(with_attribute(saved, node), "its parts of number 80.. differ from each other")


def test_a_part_that_contains_itself(saved):
    node = listed([listed([{"__id__": 8000}], 8001)], 8000)
    assert_refused(with_attribute(saved, node), "its parts of number 8000 differ from each other")


def test_one_array_named_many_times(saved, monkeypatch):
    monkeypatch.setattr(contents, "MOST_UNFOLDED", 1 << 24)
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(1 << 17))
    array = {
        "__class__": "ndarray",
        "__module__": "numpy",
        "__loader__": "NdArrayNode",
        "type": "numpy",
        "file": "zeros.npy",
    }
    shared = listed([{**array, "__id__": 9001} for _ in range(60)], 8000)
    again = load(with_attribute(saved, shared, **{"zeros.npy": buffer.getvalue()}))
    assert len(again.forged_) == 60 and all(item is again.forged_[0] for item in again.forged_)
    many = listed([{**array, "__id__": 9100 + number} for number in range(60)], 8100)
    assert_refused(with_attribute(saved, many, "many_"), r"claims to expand to 6\.\de\+07 bytes")
    without = listed([array for _ in range(60)], 8200)
    assert_refused(with_attribute(saved, without, "many_"), r"claims to expand to 6\.\de\+07 bytes")


def test_an_archive_inside_a_member(sparse, monkeypatch):
    monkeypatch.setattr(contents, "MOST_UNFOLDED", 1 << 24)

    def change(old, new):
        np.savez_compressed(new, **np.load(old), more=np.zeros(1 << 22))

    load(sparse)
    assert_refused(with_array(sparse, ".npz", change), r"claims to expand to 3\.\de\+07 bytes")


@pytest.mark.parametrize(
    "shape, kind",
    [
        ((2 * 10**10,), "<U0"),
        ((2 * 10**10, 0), "<f8"),
        ((10**10,), "V0"),
        ((10**10,), [("a", "<U0")]),
    ],
)
def test_arrays_of_items_without_size(saved, shape, kind):
    """Nothing is stored, and going through them never ends."""

    def change(_, new):
        header = {"descr": kind, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(new, header)

    assert_refused(with_array(saved, ".npy", change), r"claims to expand to \d\.\de\+1\d bytes")


@pytest.mark.parametrize("kind", ["csc", "coo", "bsr", "dia"])
def test_sparse_matrices_of_other_kinds(sparse, kind):
    def change(old, new):
        sp.save_npz(new, sp.load_npz(old).asformat(kind))

    assert_refused(with_array(sparse, ".npz", change), f"a sparse matrix is in format {kind}")


@pytest.mark.parametrize("member", ["fitonce.json", "schema.json"])
def test_a_text_of_brackets(saved, member):
    """Some 16 MB that fold to 16 kB, and would be a gigabyte of empty lists."""
    text = b"[" + b"[]," * ((contents.MOST_HEADER - 10) // 3) + b"[]]"
    rewritten(saved, lambda members: members.update({member: text}))
    assert saved.stat().st_size < 100_000
    assert_refused(saved, r"claims to expand to 1\.\de\+09 bytes")


def test_a_text_of_brackets_inside_the_schema(saved):
    """JSON inside JSON is counted too."""
    text = {**listed([], 7001), "__class__": "str", "__loader__": "JsonNode"}
    text["content"] = "[" + "[]," * 5_500_000 + "[]]"
    assert_refused(with_attribute(saved, text), r"claims to expand to 1\.\de\+09 bytes")


def test_a_long_header(saved):
    text = b" " * (contents.MOST_HEADER + 1)
    rewritten(saved, lambda members: members.update({"fitonce.json": text}))
    assert_refused(saved, r"fitonce\.json .*more than 16777216 bytes")


def test_metadata_that_could_not_be_read_are_not_written(tmp_path):
    with pytest.raises(ValueError, match=r"takes 1.* the limit is .* in a separate file\.$"):
        save(LeastSquaresSVC(), tmp_path / "m.skops", metadata={"text": "a" * 10_000_000})
    assert list(tmp_path.iterdir()) == []
    long = "b" * 8_000_000
    path = save(LeastSquaresSVC(), tmp_path / "m.skops", metadata={"text": long})
    assert isinstance(load(path), LeastSquaresSVC)


def test_many_names_of_columns_are_no_fault(tmp_path):
    """Ten thousand columns, named in the file one by one."""
    import pandas as pd

    X, y = two_classes()
    wide = pd.DataFrame(np.tile(X, (1, 3334)), columns=[f"gene[{i}]" for i in range(10_002)])
    model = LeastSquaresSVC("linear", alpha=0.1).fit(wide, y)
    assert_same_outputs(model, round_trip(model, tmp_path), wide)
