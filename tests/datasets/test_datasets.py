"""Generators against their laws, the loader against files made here, the splits against their
formula.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.io import savemat
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import ncx2, norm

from fitonce import datasets
from fitonce.datasets import (
    BAYES_ERROR,
    RAETSCH,
    fetch_raetsch,
    generators,
    raetsch,
    raetsch_splits,
)

WIDTH = {
    "torus": 2,
    "twonorm": 20,
    "ringnorm": 20,
    "waveform": 21,
    "threenorm": 20,
    "checkerboard": 2,
}
LAWS = tuple(WIDTH)

needs_data = pytest.mark.skipif(
    not os.environ.get(raetsch.FOLDER_VARIABLE),
    reason=f"{raetsch.FOLDER_VARIABLE} does not name a folder with the benchmark data",
)


def make(law, n_samples, random_state):
    return getattr(datasets, f"make_{law}")(n_samples, random_state=random_state)


def bayes(law, X):
    return getattr(datasets, f"{law}_bayes")(X)


# ---- generators ----------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
def test_shapes_labels_and_seeds(law):
    X, y = make(law, 101, 3)
    assert X.shape == (101, WIDTH[law]) and y.shape == (101,)
    assert set(y) == {-1, 1} and np.isfinite(X).all()
    again, _ = make(law, 101, 3)
    from_generator, _ = make(law, 101, np.random.default_rng(3))
    other, _ = make(law, 101, 4)
    assert (
        np.array_equal(X, again)
        and np.array_equal(X, from_generator)
        and not np.array_equal(X, other)
    )
    old = [make(law, 101, np.random.RandomState(3))[0] for _ in range(2)]
    assert np.array_equal(*old)
    for bad in (0, -1, 2.5, "ten"):
        with pytest.raises(ValueError, match="n_samples must be an integer of at least 1"):
            make(law, bad, 0)
    with pytest.raises(ValueError, match=rf"X must have shape \(n, {WIDTH[law]}\)"):
        bayes(law, X[:, 1:])


@pytest.mark.parametrize("law", LAWS)
def test_monte_carlo_error_of_the_bayes_rule(law):
    X, y = make(law, 200_000, 11)
    error, expected = np.mean(np.sign(bayes(law, X)) != y), BAYES_ERROR[law]
    assert abs(error - expected) < 4 * np.sqrt(expected * (1 - expected) / len(y))


@pytest.mark.parametrize(
    "law", [law for law in LAWS if law != "checkerboard"]
)  # which knows 0.1 and 0.9 only
def test_log_odds_are_calibrated(law):
    X, y = make(law, 200_000, 12)
    p = 1 / (1 + np.exp(-bayes(law, X)))
    for low, high in ((0.02, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 0.98)):
        bin_ = (p > low) & (p <= high)
        assert bin_.sum() > 500
        assert abs(np.mean(y[bin_] > 0) - p[bin_].mean()) < 4 * 0.5 / np.sqrt(bin_.sum())


def test_bayes_errors_in_closed_form():
    assert BAYES_ERROR["twonorm"] == pytest.approx(norm.cdf(-2), abs=1e-7)

    # ringnorm: predict +1 outside a ball around 4a/3 of squared radius 8/3 (20 log 2 + 2/3)
    squared = 8 / 3 * (20 * np.log(2) + 2 / 3)
    missed = ncx2.cdf(squared / 4, 20, 16 / 9), ncx2.sf(squared, 20, 4 / 9)
    assert BAYES_ERROR["ringnorm"] == pytest.approx(np.mean(missed), abs=1e-7)

    # threenorm in the plane of its centres: (±2, 0) for one class, (0, 2) for the other
    def boundary(u):
        return 0.5 * np.log(np.cosh(2 * u))

    first = quad(
        lambda u: (norm.pdf(u - 2) + norm.pdf(u + 2)) / 2 * norm.cdf(-boundary(u)),
        -12,
        12,
        epsabs=1e-12,
    )[0]
    second = quad(lambda u: norm.pdf(u) * norm.cdf(boundary(u) - 2), -12, 12, epsabs=1e-12)[0]
    assert BAYES_ERROR["threenorm"] == pytest.approx((first + second) / 2, abs=1e-7)

    def inner(r):
        return 0.25 * r * np.exp(-0.5 * r**2)

    def outer(r):
        return 0.75 * (norm.pdf(r - 4) + norm.pdf(r + 4))

    edges = [brentq(lambda r: inner(r) - outer(r), *bracket) for bracket in ((1e-6, 0.1), (0.1, 5))]
    integral = quad(
        lambda r: min(inner(r), outer(r)), 0, 20, points=edges, epsabs=1e-12, limit=200
    )[0]
    assert BAYES_ERROR["torus"] == pytest.approx(integral, abs=1e-7)


def test_torus_has_the_papers_law():
    X, y = datasets.make_torus(40_000, random_state=0)
    assert np.sum(y == 1) == 10_000
    assert np.cov(X[y == 1].T) == pytest.approx(np.eye(2), abs=0.06)
    radius = np.linalg.norm(X[y == -1], axis=1)
    assert radius.mean() == pytest.approx(4, abs=0.03) and radius.std() == pytest.approx(
        1, abs=0.03
    )
    assert X[y == -1].mean(axis=0) == pytest.approx([0, 0], abs=0.08)


A = 2 / np.sqrt(20)
MOMENTS = {  # mean and covariance of a class, and how near a sample comes to each
    ("ringnorm", 1): (np.zeros(20), 4 * np.eye(20), 0.07, 0.24),
    ("ringnorm", -1): (np.full(20, A), np.eye(20), 0.04, 0.06),
    ("twonorm", 1): (np.full(20, A), np.eye(20), 0.04, 0.06),
    ("twonorm", -1): (np.full(20, -A), np.eye(20), 0.04, 0.06),
    ("threenorm", 1): (np.zeros(20), np.eye(20) + A**2, 0.04, 0.06),  # centers at ±A add A² to all
    ("threenorm", -1): (A * np.tile([1.0, -1.0], 10), np.eye(20), 0.04, 0.06),
}


@pytest.mark.parametrize(("law", "label"), MOMENTS)
def test_breimans_moments(law, label):
    mean, covariance, mean_error, covariance_error = MOMENTS[law, label]
    X, y = make(law, 40_000, 0)
    assert X[y == label].mean(axis=0) == pytest.approx(mean, abs=mean_error)
    assert np.cov(X[y == label].T) == pytest.approx(covariance, abs=covariance_error)


def test_checkerboard_fields():
    at = np.array([[0.1, 0.1], [0.3, 0.1], [0.3, 0.3], [0.1, 0.9], [0.9, 0.9]])
    assert np.sign(datasets.checkerboard_bayes(at)).tolist() == [1, -1, 1, -1, 1]
    assert datasets.checkerboard_bayes(at[:1]) == pytest.approx(np.log(9))


def test_three_waveforms():
    X, y = datasets.make_waveform3(200_000, random_state=11)
    assert set(y) == {0, 1, 2}
    log_p = datasets.waveform3_bayes(X)
    assert np.exp(log_p).sum(axis=1) == pytest.approx(1.0)
    expected = BAYES_ERROR["waveform3"]
    assert abs(np.mean(log_p.argmax(axis=1) != y) - expected) < 4 * np.sqrt(
        expected * (1 - expected) / len(y)
    )
    assert np.exp(log_p).mean(axis=0) == pytest.approx(np.bincount(y) / len(y), abs=0.005)
    two, signs = datasets.make_waveform(200, random_state=11)  # its first class against the others
    assert np.array_equal(two, datasets.make_waveform3(200, random_state=11)[0])
    assert np.array_equal(signs == 1, datasets.make_waveform3(200, random_state=11)[1] == 0)


def waves():
    at = np.arange(1, 22)
    return {peak: np.maximum(6 - abs(at - peak), 0) for peak in (7, 11, 15)}


def test_waveform_log_odds_equal_a_sum_over_mixing_proportions():
    X, _ = datasets.make_waveform(50, random_state=0)
    u = (np.arange(20_000) + 0.5)[:, None] / 20_000

    def log_density(a, b):
        centres = u * waves()[a] + (1 - u) * waves()[b]
        return np.array([logsumexp(-0.5 * ((x - centres) ** 2).sum(axis=1)) for x in X])

    expected = log_density(7, 11) - np.logaddexp(log_density(11, 15), log_density(7, 15))
    assert datasets.waveform_bayes(X) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(("low", "high"), [(-1, 2), (10, 12), (-12, -10), (30, 31), (-0.1, 40)])
def test_normal_probability_far_in_the_tails(low, high):
    with mpmath.workdps(500):
        expected = float(mpmath.log(mpmath.ncdf(high) - mpmath.ncdf(low)))
    assert generators._log_normal_probability(np.array([low]), np.array([high])) == pytest.approx(
        [expected], rel=1e-12
    )


# ---- splits --------------------------------------------------------------------------------------


def test_splits_follow_their_formula():
    splits = list(raetsch_splits("heart", 270))
    assert len(splits) == 100
    rows = np.random.default_rng([2001, 7]).permutation(270)
    assert np.array_equal(splits[7][0], rows[:170]) and np.array_equal(splits[7][1], rows[170:270])
    later = next(iter(raetsch_splits("heart", 270, start=1000)))
    assert np.array_equal(later[0], np.random.default_rng([2001, 1000]).permutation(270)[:170])
    assert (
        len(list(raetsch_splits("image"))) == 20
        and len(list(raetsch_splits("image", start=5, stop=8))) == 3
    )


@pytest.mark.parametrize("name", RAETSCH)
def test_splits_have_the_published_sizes(name):
    train, test = next(iter(raetsch_splits(name)))
    assert len(train) == RAETSCH[name].n_train and len(test) == RAETSCH[name].n_test
    assert not set(train) & set(test)


def test_splits_say_what_is_wrong():
    with pytest.raises(ValueError, match=r"name must be one of banana, .* got 'bananas' instead"):
        raetsch_splits("bananas")
    with pytest.raises(
        ValueError, match=r"n_samples must be at least 270 for heart \(170 \+ 100\), got 100"
    ):
        raetsch_splits("heart", 100)


# ---- the loader ----------------------------------------------------------------------------------


def thyroid_like(rng):
    X, y = rng.normal(size=(215, 5)), rng.choice([-1, 1], size=215)
    rows = np.array([rng.permutation(215) for _ in range(100)])
    return X, y, rows[:, :140], rows[:, 140:]


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """No folder named in the environment, and a data home that is empty."""
    monkeypatch.delenv(raetsch.FOLDER_VARIABLE, raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))
    return tmp_path


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def site(tmp_path):
    """The address of a folder served on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def archive(elsewhere, site, monkeypatch):
    """A small archive like the published one, in place of that."""
    X, y, train, test = thyroid_like(np.random.default_rng(0))
    path = elsewhere / "published.mat"
    savemat(
        path,
        {"thyroid": {"x": X, "t": y[:, None], "train": train + 1, "test": test + 1}},
        do_compression=True,
    )
    monkeypatch.setattr(raetsch, "ARCHIVE_URL", f"{site}/{path.name}")
    monkeypatch.setattr(raetsch, "ARCHIVE_SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    return X, y, train, test


def test_nothing_is_downloaded_unless_asked(archive, elsewhere):
    with pytest.raises(
        FileNotFoundError,
        match=r"neither thyroid\.npz nor benchmarks\.mat is in .*FITONCE_RAETSCH.*download=True",
    ):
        fetch_raetsch("thyroid")
    assert not (elsewhere / "home").exists()


def test_import_touches_neither_network_nor_disk():
    code = (
        "import sys\n"
        "sys.addaudithook(lambda event, _: event.startswith(('socket.connect', 'urllib.Request')) "
        "and sys.exit(event))\n"
        "import fitonce.datasets\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_download_keeps_the_archive_and_reads_it(archive, elsewhere, site, monkeypatch):
    X, y, train, test = archive
    bunch = fetch_raetsch("thyroid", download=True)
    assert np.array_equal(bunch.data, X) and np.array_equal(bunch.target, y)
    assert len(bunch.splits) == 100
    assert np.array_equal(bunch.splits[41][0], train[41]) and np.array_equal(
        bunch.splits[41][1], test[41]
    )
    folder = elsewhere / "home" / "fitonce"
    assert [path.name for path in folder.iterdir()] == ["benchmarks.mat"]
    monkeypatch.setattr(raetsch, "ARCHIVE_URL", f"{site}/gone.mat")
    assert np.array_equal(fetch_raetsch("thyroid").data, X)  # from the folder, without asking again
    assert np.array_equal(fetch_raetsch("thyroid", data_home=folder, download=True).data, X)


def test_a_damaged_download_leaves_nothing(archive, elsewhere, monkeypatch):
    monkeypatch.setattr(raetsch, "ARCHIVE_SHA256", "0" * 64)
    with pytest.raises(
        OSError, match=r"could not be downloaded .*checksum .*[0-9a-f]{64}.* differs .*0{64}"
    ):
        fetch_raetsch("thyroid", data_home=elsewhere / "here", download=True)
    assert list((elsewhere / "here").iterdir()) == []


def test_a_failed_download_says_what_to_do(archive, elsewhere, site, monkeypatch):
    monkeypatch.setattr(raetsch, "ARCHIVE_URL", f"{site}/gone.mat")
    with pytest.raises(
        OSError,
        match=r"could not be downloaded .*Download it manually into a folder.*FITONCE_RAETSCH",
    ):
        fetch_raetsch("thyroid", data_home=elsewhere / "here", download=True)
    assert list((elsewhere / "here").iterdir()) == []


def test_the_real_address_and_hash_are_the_public_ones():
    assert raetsch.ARCHIVE_URL.startswith(
        "https://github.com/tdiethe/gunnar_raetsch_benchmark_datasets/"
    )
    assert (
        raetsch.ARCHIVE_SHA256 == "47c19e4bc4716edc4077cfa5ea61edf4d02af4ec51a0ecfe035626ae8b561c75"
    )


def test_a_folder_of_npz_files_by_argument_or_environment(elsewhere, monkeypatch):
    X, y, _, _ = thyroid_like(np.random.default_rng(1))
    np.savez(elsewhere / "thyroid.npz", X=X, y=y.astype(np.int8))
    by_argument = fetch_raetsch("thyroid", data_home=elsewhere)
    monkeypatch.setenv(raetsch.FOLDER_VARIABLE, str(elsewhere))
    by_environment = fetch_raetsch("thyroid")
    for bunch in (by_argument, by_environment):
        assert np.array_equal(bunch.data, X) and np.array_equal(bunch.target, y)
        assert (
            bunch.splits is None
            and bunch.data.dtype == np.float64
            and bunch.target.dtype == np.int64
        )
    ringnorm = fetch_raetsch("ringnorm")
    assert np.array_equal(ringnorm.data, datasets.make_ringnorm(7400, random_state=7)[0])


def test_files_that_are_not_the_published_ones_are_refused(elsewhere):
    X, y, _, _ = thyroid_like(np.random.default_rng(2))
    for wrong_X, wrong_y in ((X[:, 1:], y), (X, y + 1), (X[1:], y)):
        np.savez(elsewhere / "thyroid.npz", X=wrong_X, y=wrong_y)
        with pytest.raises(ValueError, match="thyroid must have 5 features and labels -1 and"):
            fetch_raetsch("thyroid", data_home=elsewhere)
    savemat(elsewhere / "benchmarks.mat", {"banana": {"x": X}})
    with pytest.raises(ValueError, match="has no data set 'heart'"):
        fetch_raetsch("heart", data_home=elsewhere)
    with pytest.raises(ValueError, match="name must be one of"):
        fetch_raetsch("iris", data_home=elsewhere)


@needs_data
@pytest.mark.parametrize("name", RAETSCH)
def test_the_real_sets_have_their_sizes(name):
    bunch = fetch_raetsch(name)
    design = RAETSCH[name]
    assert bunch.data.shape == (design.n_train + design.n_test, design.n_features)
    assert np.isfinite(bunch.data).all()


@needs_data
def test_generators_have_the_law_of_the_real_sets():
    twonorm = fetch_raetsch("twonorm")
    error = np.mean(np.sign(datasets.twonorm_bayes(twonorm.data)) != twonorm.target)
    assert abs(error - BAYES_ERROR["twonorm"]) < 4 * np.sqrt(0.023 / 7400)

    waveform = fetch_raetsch(
        "waveform"
    )  # published in standard units: compare class means in these, then undo them
    X, y = datasets.make_waveform(50_000, random_state=0)
    mean, deviation = X.mean(axis=0), X.std(axis=0)

    def contrast(Z, labels):
        return Z[labels == 1].mean(axis=0) - Z[labels == -1].mean(axis=0)

    assert contrast(waveform.data, waveform.target) == pytest.approx(
        contrast(X / deviation, y), abs=0.1
    )
    error = np.mean(
        np.sign(datasets.waveform_bayes(waveform.data * deviation + mean)) != waveform.target
    )
    assert abs(error - BAYES_ERROR["waveform"]) < 4 * np.sqrt(0.08 / 5000)


def test_no_data_files_in_the_package():
    suffixes = {path.suffix for path in Path(datasets.__file__).parent.iterdir() if path.is_file()}
    assert suffixes <= {".py"}
