"""Sources that change between passes, and damaged files: told, never fitted."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from fitonce import LeastSquaresSVC
from fitonce.rows import BlockRows, open_rows
from optional import require

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 3))
Y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
OTHERS = "returned different rows than before"


def model(**settings):
    return LeastSquaresSVC(gamma=0.5, alpha=0.1, landmarks=20, random_state=0, **settings)


def blocks(order=None, size=60):
    order = np.arange(len(X)) if order is None else order
    return [(X[rows], Y[rows]) for rows in np.split(order, len(X) // size)]


def shuffled_rows():
    return blocks(RNG.permutation(len(X)))


def shuffled_blocks():
    parts = blocks()
    return [parts[number] for number in RNG.permutation(len(parts))]


def swapped_once(counter=iter(range(100))):  # noqa: B008 - one counter for all passes
    """Two neighbouring rows change places in the third pass, and stay there."""
    order = np.arange(len(X))
    if next(counter) >= 2:
        order[[200, 201]] = [201, 200]
    return blocks(order)


@pytest.mark.parametrize("source", [shuffled_rows, shuffled_blocks, swapped_once])
def test_blocks_that_come_in_another_order(source):
    with pytest.raises(ValueError, match=rf"the source of the blocks {OTHERS}, within its first"):
        model().fit(open_rows(source))


def test_rows_that_are_drawn_anew():
    rows = BlockRows(lambda: [RNG.normal(size=(120, 3)) for _ in range(2)], len(X), name="noise")
    with pytest.raises(ValueError, match=rf"noise {OTHERS}.*fixed seed"):
        model().fit(rows, Y)


def test_a_shuffle_that_is_copied_once_is_as_good_as_memory():
    parts = shuffled_rows()
    order = np.concatenate([part for part, _ in parts])
    fitted = model().fit(open_rows(iter(parts)))
    again = model().fit(open_rows([(order, np.concatenate([y for _, y in parts]))]))
    np.testing.assert_allclose(fitted.dual_coef_, again.dual_coef_, rtol=1e-9)


def test_another_cut_of_the_same_rows_is_fine():
    sizes = iter([60, 40, 80, 240, 10, 20, 120] * 10)
    cuts = open_rows(lambda: blocks(size=next(sizes)))
    expected = model().fit(open_rows(blocks()))
    np.testing.assert_array_equal(model().fit(cuts).held_out_decision_, expected.held_out_decision_)


def test_folds_of_a_source_that_changes():
    rows = open_rows(blocks())
    subset = rows.subset(np.arange(0, 200))
    rows.blocks = lambda: [X[::-1]]
    with pytest.raises(ValueError, match=OTHERS):
        subset.take(np.arange(10))


# ---- files ---------------------------------------------------------------------------------------


def written(path, order=None, drop=()):
    pandas = require("pandas")
    require("pyarrow")
    order = np.arange(len(X)) if order is None else order
    frame = pandas.DataFrame(X, columns=["u", "v", "w"]).assign(label=Y).iloc[order]
    frame = frame.drop(columns=list(drop))
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
    return path


def keeping_its_stamp(path, write):
    """Write a file so that its size and time say nothing of it; a size that differs is padded."""
    before = path.stat()
    write()
    assert path.stat().st_size == before.st_size, "choose another change"
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_file_that_is_written_again_after_opening(tmp_path, kind):
    path = written(tmp_path / f"t.{kind}")
    for options in ({"target": "label"}, {"columns": ["u", "v", "w"]}):
        rows = open_rows(path, **options)
        written(path, order=RNG.permutation(len(X)))
        os.utime(path, ns=(0, path.stat().st_mtime_ns + 10**9))
        with pytest.raises(ValueError, match=r"has changed since it was opened.*open it again"):
            model().fit(rows, None if "target" in options else Y)


def test_a_file_reordered_behind_its_stamp(tmp_path):
    path = written(tmp_path / "t.csv")
    rows = open_rows(path, target="label")
    keeping_its_stamp(path, lambda: written(path, order=RNG.permutation(len(X))))
    with pytest.raises(ValueError, match=r"has different values in 'label', in rows 0 to 240"):
        model().fit(rows)


def test_features_reordered_behind_their_targets(tmp_path):
    """Rows of one class change places between two passes: only their features tell."""
    path = written(tmp_path / "t.csv")
    rows = open_rows(path, target="label")
    rows.take(np.arange(3))
    order = np.arange(len(X))
    order[Y == "same"] = order[Y == "same"][::-1]
    keeping_its_stamp(path, lambda: written(path, order=order))
    with pytest.raises(ValueError, match=rf"t\.csv' {OTHERS}"):
        model().fit(rows)


def test_a_column_or_a_file_that_is_gone(tmp_path):
    path = written(tmp_path / "t.parquet")
    rows = open_rows(path, target="label")
    written(path, drop=["v"])
    with pytest.raises(ValueError, match=r"has changed .* \(the column 'v' is missing\)"):
        model().fit(rows)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"t\.parquet' no longer exists, but every pass"):
        model().fit(rows)


FLIPS = """
import sys, pathlib, random
import numpy as np, pyarrow as pa, pyarrow.feather
from fitonce.rows import open_rows
path, kind = pathlib.Path(sys.argv[1]), sys.argv[2]
X = np.random.default_rng(0).normal(size=(200, 2))
table = pa.table({"a": X[:, 0], "label": np.where(X[:, 1] > 0, "ill", "healthy")})
if kind == "arrow":
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
else:
    pa.feather.write_feather(table, path, compression="uncompressed")
good, refused = path.read_bytes(), 0
for seed in range(250):
    bad, bit = bytearray(good), random.Random(seed).randrange(8 * len(good))
    bad[bit // 8] ^= 1 << bit % 8
    path.write_bytes(bad)
    try:
        open_rows(path, target="label").take(np.arange(3))
    except ValueError:
        refused += 1
print(refused)
"""


@pytest.mark.parametrize("kind", ["arrow", "feather"])
def test_a_damaged_arrow_file_does_not_end_the_process(tmp_path, kind):
    """One bit flipped, 250 times; what can be read is read, the rest refused."""
    require("pyarrow")
    done = subprocess.run(
        [sys.executable, "-c", FLIPS, str(tmp_path / f"t.{kind}"), kind],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20


# ---- Dask ----------------------------------------------------------------------------------------


def test_partitions_that_are_drawn_anew():
    da = require("dask.array")
    noisy = da.from_array(X, chunks=(60, 3)).map_blocks(
        lambda block: block + np.random.default_rng().normal(size=block.shape), dtype=float
    )
    with pytest.raises(ValueError, match=rf"the Dask collection {OTHERS}, in partition 0.*persist"):
        model().fit(noisy, Y)
    kept = noisy.persist()
    expected = model().fit(kept.compute(), Y).decision_function(X)
    np.testing.assert_allclose(model().fit(kept, Y).decision_function(X), expected, atol=1e-9)


@pytest.mark.parametrize("given", [50, 70])
def test_a_partition_of_another_length(given):
    da = require("dask.array")
    dask = require("dask")
    parts = [X[:60], X[60 : 60 + given], X[120:180], X[180:]]
    chunks = [da.from_delayed(dask.delayed(part), shape=(60, 3), dtype=float) for part in parts]
    with pytest.raises(
        ValueError,
        match=rf"partition 1 \(from row 60\) has {given} rows, but the collection announces 60",
    ):
        model().fit(da.concatenate(chunks), Y)
