"""Files that are not model files: refused before anything in them is looked up, imported or run."""

from __future__ import annotations

import errno
import io
import itertools
import json
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from model_files import assert_same_outputs, rewritten, round_trip, skops_io, two_classes
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from fitonce import KernelRidge, LeastSquaresSVC, Subsampling, load
from fitonce.io import contents, saving


def with_schema(change):
    def rewrite(members):
        schema = json.loads(members["schema.json"])
        change(schema)
        members["schema.json"] = json.dumps(schema).encode()

    return rewrite


def parameter(schema, name):
    return schema["content"]["content"][name]


IDS = itertools.count(1)


def node(loader, module, name, content=None):
    return {
        "__class__": name,
        "__module__": module,
        "__loader__": loader,
        "__id__": next(IDS),
        "content": content,
    }


def text(value):
    return {
        "__class__": "str",
        "__module__": "builtins",
        "__loader__": "JsonNode",
        "content": json.dumps(value),
        "is_json": True,
    }


def command(marker):
    return f"touch {marker}"


def arguments(marker, loader="TupleNode", kind="tuple"):
    return {**node(loader, "builtins", kind), "content": [text(command(marker))]}


ATTACKS = {
    "function": (lambda marker: node("FunctionNode", "posix", "system"), "posix.system"),
    "object": (lambda marker: node("ObjectNode", "subprocess", "Popen", None), "subprocess.Popen"),
    "constructor": (
        lambda marker: node("ConstructorFromReduceNode", "os", "system", arguments(marker)),
        "os.system",
    ),
    "list": (
        lambda marker: node("ListNode", "subprocess", "Popen", [text(command(marker))]),
        "subprocess.Popen",
    ),
    "type": (lambda marker: node("TypeNode", "os", "system"), "os.system"),
    "module": (lambda marker: node("TypeNode", "planted", "anything"), "planted.anything"),
    "name of a splitter": (lambda marker: node("TypeNode", "planted", "KFold"), "planted.KFold"),
    "import of ours": (
        lambda marker: node("TypeNode", "fitonce.estimators.fitted", "Pipeline"),
        "fitonce.estimators.fitted.Pipeline",
    ),
    "partial": (
        lambda marker: node(
            "PartialNode",
            "functools",
            "partial",
            {
                "func": node("FunctionNode", "os", "system"),
                "args": arguments(marker),
                "kwds": text(None),
                "namespace": text(None),
            },
        ),
        "functools.partial",
    ),
    "method": (
        lambda marker: node("MethodNode", "builtins", "str", {"func": "format", "obj": text("x")}),
        "builtins.str.format",
    ),
    "operator": (
        lambda marker: {
            **node("OperatorFuncNode", "operator", "methodcaller"),
            "attrs": arguments(marker),
        },
        "operator.methodcaller",
    ),
    "disguised method": (
        lambda marker: node(
            "MethodNode",
            "sklearn.linear_model._logistic",
            "LogisticRegression",
            {"func": "system", "obj": node("TypeNode", "os", "os")},
        ),
        "is damaged: .*got os.os",
    ),
    "key type": (
        lambda marker: {
            **node("DictNode", "builtins", "dict", {command(marker): text(1)}),
            "key_types": node("ListNode", "builtins", "list", [node("TypeNode", "os", "system")]),
        },
        "os.system",
    ),
    "unknown": (lambda marker: node("NoSuchNode", "os", "system", arguments(marker)), "is damaged"),
    "reduce": (
        lambda marker: {
            **node("TreeNode", "os", "system", text({})),
            "__reduce__": {"args": arguments(marker)},
        },
        "os.system",
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_malicious_file_runs_nothing(name, saved, tmp_path, monkeypatch):
    """Each attack as a parameter of an otherwise good model.

    Importing, calling and starting programs would all leave a mark.
    """
    marker = tmp_path / "ran"
    (tmp_path / "planted.py").write_text(
        f"open({str(marker)!r}, 'w').close()\nanything = None\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    attack, named = ATTACKS[name]

    def plant(schema):
        schema["content"]["content"]["kernel_params"] = attack(marker)

    rewritten(saved, with_schema(plant))
    with pytest.raises(ValueError, match=named) as refusal:
        load(saved)
    assert "damaged" in named or "which fitonce does not trust" in str(refusal.value)
    assert not marker.exists() and "planted" not in sys.modules


def test_attacks_that_mark_do_mark_when_trusted(saved, tmp_path):
    """The marker of the test above can be written.

    The same file leaves it where the caller trusts everything.
    """
    marker = tmp_path / "ran"
    rewritten(
        saved,
        with_schema(
            lambda schema: schema["content"]["content"].update(
                kernel_params=ATTACKS["constructor"][0](marker)
            )
        ),
    )
    load(saved, trusted=["os.system"])
    assert marker.exists()


class Marks:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return open, (str(self.marker), "w")


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_in_disguise_is_not_read(protocol, tmp_path):
    path, marker = tmp_path / "model.skops", tmp_path / "ran"
    path.write_bytes(pickle.dumps(Marks(marker), protocol=protocol))
    with pytest.raises(
        ValueError, match="is a pickle, not a model file" if protocol > 1 else "is not a model file"
    ):
        load(path)
    assert not marker.exists()
    pickle.loads(path.read_bytes()).close()
    assert marker.exists()


def test_a_pickle_inside_an_array_is_not_read(saved, tmp_path):
    marker = tmp_path / "ran"
    buffer = io.BytesIO()
    np.save(buffer, np.array([Marks(marker)], dtype=object), allow_pickle=True)

    def plant(members):
        for name in members:
            if name.endswith(".npy"):
                members[name] = buffer.getvalue()

    rewritten(saved, plant)
    with pytest.raises(ValueError, match="is damaged"):
        load(saved)
    assert not marker.exists()


def as_ours(model, path):
    """A file that skops wrote, with our header."""
    skops_io.dump(model, path)
    header = {"format": 1, "model": "x", "versions": {}, "metadata": {}}
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("fitonce.json", json.dumps(header))
    return path


FORGEABLE = {
    "svc": SVC(),
    "tree": DecisionTreeClassifier(),
    "neighbors": KNeighborsClassifier(algorithm="kd_tree"),
    "boosting": HistGradientBoostingClassifier(max_iter=2),
    "words": CountVectorizer(vocabulary={"a": 10**8}),
    "random numbers": Subsampling(KernelRidge(), random_state=np.random.RandomState(0)),
}


@pytest.mark.parametrize("name", FORGEABLE)
def test_models_that_believe_their_arrays_are_refused(name, tmp_path):
    """Compiled code uses numbers from the file as addresses: only what checks them is loaded."""
    X, y = two_classes()
    model = FORGEABLE[name]
    path = as_ours(
        model if name in ("words", "random numbers") else model.fit(X, y), tmp_path / "m"
    )
    with pytest.raises(ValueError, match="which fitonce does not trust"):
        load(path)


def encoded(**options):
    """A fitted pipeline with a one-hot encoder of three columns with seven categories."""
    rows = np.arange(60).reshape(20, 3) % 7.0
    encoder = OneHotEncoder(**options)
    return make_pipeline(encoder, LeastSquaresSVC("linear", alpha=0.1)).fit(rows, rows[:, 0] > 2)


FAR = 10**8
ENCODERS = {
    "width": lambda encoder: encoder._n_features_outs.__setitem__(2, 1),
    "widths": lambda encoder: vars(encoder).update(_n_features_outs=np.array([7, 7, 7])),
    "group": lambda encoder: encoder._default_to_infrequent_mappings[0].fill(FAR),
    "not grouped": lambda encoder: vars(encoder).update(_infrequent_enabled=False),
    "before the first": lambda encoder: encoder._default_to_infrequent_mappings[1].fill(-FAR),
    "dropped": lambda encoder: vars(encoder).update(
        _drop_idx_after_grouping=np.array([-1, -1, -1], dtype=object)
    ),
    "order": lambda encoder: encoder.categories_.__setitem__(2, np.arange(7.0)[::-1].copy()),
    "more categories": lambda encoder: encoder.categories_.__setitem__(2, np.arange(9.0)),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_forged_one_hot_encoders(name, tmp_path):
    """Their codes are places in memory that compiled code writes to."""
    grouped = name in ("group", "not grouped", "before the first")
    model = encoded(handle_unknown="infrequent_if_exist", min_frequency=9 if grouped else None)
    ENCODERS[name](model[0])
    with pytest.raises(ValueError, match="a one-hot encoder has categories without a column"):
        load(as_ours(model, tmp_path / "m.skops"), trusted=[LeastSquaresSVC])


@pytest.mark.parametrize(
    "options", [{}, {"drop": "first"}, {"drop": "if_binary"}, {"min_frequency": 9}]
)
@pytest.mark.parametrize("labels", ["numbers", "texts", "gaps"])
def test_honest_one_hot_encoders_are_loaded(options, labels, tmp_path):
    rows = (np.arange(60).reshape(20, 3) % 7).astype(object if labels == "texts" else float)
    rows[3, 0] = None if labels == "texts" else np.nan if labels == "gaps" else 1
    rows = np.where(rows == 2, "two", rows) if labels == "texts" else rows
    encoder = OneHotEncoder(handle_unknown="ignore", **options)
    rows = rows.astype(str).astype(object) if labels == "texts" else rows
    model = make_pipeline(encoder, LeastSquaresSVC("linear", alpha=0.1))
    model.fit(rows, np.arange(20) % 2)
    assert_same_outputs(model, round_trip(model, tmp_path), rows)


def test_forged_arrays_never_end_the_process():
    """As many as take a few seconds; the script makes more."""
    script = Path(__file__).parent / "forged.py"
    done = subprocess.run([sys.executable, script, "60", "0"], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_what_is_not_an_estimator_is_not_returned(tmp_path):
    path = as_ours({"a": 1}, tmp_path / "m.skops")
    with pytest.raises(ValueError, match="contains an object of type dict, not an estimator"):
        load(path)


def with_header(**changes):
    def rewrite(members):
        members["fitonce.json"] = json.dumps(
            {**json.loads(members["fitonce.json"]), **changes}
        ).encode()

    return rewrite


def test_newer_and_unknown_formats_say_so(saved):
    rewritten(saved, with_header(format=saving.FORMAT + 1, versions={"fitonce": "9.0"}))
    for read in (load, saving.read_metadata):
        with pytest.raises(
            ValueError,
            match=r"was written by fitonce 9\.0 in file format 2, but this version, .*update "
            r"fitonce",
        ):
            read(saved)
    for unknown in (0, -1, "1", None, 1.5, [1]):
        rewritten(saved, with_header(format=unknown))
        with pytest.raises(ValueError, match="does not name a known format"):
            load(saved)
    rewritten(saved, lambda members: members.update({"fitonce.json": b"[]"}))
    with pytest.raises(ValueError, match="does not name a known format"):
        load(saved)


def test_classes_of_another_version_are_told_from_foreign_ones(saved):
    rewritten(saved, with_header(versions={"fitonce": "9.0"}))
    later = node("ObjectNode", "fitonce.estimators.svc", "LaterClass", text({}))
    rewritten(
        saved, with_schema(lambda schema: schema["content"]["content"].update(kernel_params=later))
    )
    with pytest.raises(
        ValueError,
        match=r"contains fitonce\.estimators\.svc\.LaterClass, .* written by fitonce 9\.0, and",
    ):
        load(saved)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.95, 0.999])
def test_truncated_files(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=r"is incomplete or damaged: .*Copy it again"):
        load(saved)


def test_flipped_bytes_never_pass_as_another_model(saved):
    """Every tenth byte or so, flipped.

    An error of one sentence, or (in the zip's own bookkeeping) the model as it was.
    """
    X, _ = two_classes()
    expected = load(saved).decision_function(X)
    content = saved.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for position in rng.integers(len(content), size=150):
        damaged = bytearray(content)
        damaged[position] ^= 0xFF
        saved.write_bytes(bytes(damaged))
        try:
            assert np.array_equal(load(saved).decision_function(X), expected)
        except (ValueError, OSError) as error:
            refused += 1
            assert str(saved) in str(error)
    assert refused > 100


def test_other_files(tmp_path):
    path = tmp_path / "x.skops"
    for content, message in (
        (b"", "is empty"),
        (b"a,b\n1,2\n", "is not a model file"),
        (b"PK\x03\x04rubbish", "is incomplete or damaged"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "a")
    with pytest.raises(
        ValueError, match=r"is an archive, but not a model file .* no fitonce\.json"
    ):
        load(path)
    skops_io.dump(LogisticRegression(), path)
    with pytest.raises(ValueError, match=r"no fitonce\.json"):
        load(path)
    with pytest.raises(FileNotFoundError, match=r"there is no file .*absent\.skops"):
        load(tmp_path / "absent.skops")
    with pytest.raises(IsADirectoryError, match="is a folder, not a model file"):
        load(tmp_path)


def test_a_schema_that_is_nonsense(saved):
    for nonsense in (b"", b"{", b"[]", b"{}", b'{"protocol": 2}', b"[" * 100_000):
        rewritten(
            saved, lambda members, nonsense=nonsense: members.update({"schema.json": nonsense})
        )
        with pytest.raises(ValueError, match="damaged"):
            load(saved)
    rewritten(saved, lambda members: members.pop("schema.json"))
    with pytest.raises(ValueError, match=r"is damaged: .*no item named .schema\.json"):
        load(saved)


def test_a_file_that_would_fill_the_memory(saved, monkeypatch):
    monkeypatch.setattr(contents, "MOST_UNFOLDED", 1 << 20)
    with zipfile.ZipFile(saved, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros.npy", bytes(1 << 27))
    with pytest.raises(ValueError, match=r"claims to expand to 1\.3e\+08 bytes"):
        load(saved)


def test_permission_is_told_whoever_runs_this(saved, monkeypatch):
    def denied(self):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(PermissionError, match=r"model\.skops cannot be read: permission denied\.$"):
        load(saved)
