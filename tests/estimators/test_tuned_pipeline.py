"""Pipelines that choose their preprocessing, beside literal refits by scikit-learn."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import SelectFromModel, SelectKBest
from sklearn.impute import IterativeImputer, KNNImputer
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.model_selection import cross_val_predict as literal_predict
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler, TargetEncoder

import fitonce
from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC, TunedPipeline
from fitonce.assessment import significance
from fitonce.assessment.chance import quick
from fitonce.crossval.depends import depends
from fitonce.estimators.fitted import with_first_steps
from fitonce.estimators.probability import fit_calibration
from fitonce.estimators.tuned_pipeline import step_with_targets

N = 90
RARE = "columns__categories__min_frequency"
WEIGHT = "columns__transformer_weights"
MODEL = LeastSquaresSVC(gamma="scale")
CANDIDATES = [
    {RARE: rare, WEIGHT: {"categories": weight}} for rare in (1, 4) for weight in (1.0, 0.3)
]


def table(seed=0, telling=True):
    """Three numbers and a category, of which many levels are rare."""
    rng = np.random.default_rng(seed)
    level = np.minimum(rng.geometric(0.12, N), 25)
    X = pd.DataFrame(rng.normal(size=(N, 3)), columns=list("abc"))
    effect = np.where(level % 2, 1.5, -1.5) if telling else 0.0
    score = X["a"].to_numpy() * 2 + effect + 0.3 * rng.normal(size=N)
    X = X.assign(city=[f"c{k}" for k in level])
    return X, np.where(score > np.quantile(score, 0.3), "yes", "no"), score


def steps(model):
    one_hot = OneHotEncoder(handle_unknown="infrequent_if_exist", sparse_output=False)
    parts = [("numbers", StandardScaler(), ["a", "b", "c"]), ("categories", one_hot, ["city"])]
    columns = ColumnTransformer(parts, sparse_threshold=0.0)
    return [("columns", columns), ("model", model)]


def literally_chosen(model, X, y, **params):
    """Every candidate fitted by hand; the first of the best."""
    fitted = [
        Pipeline([(n, clone(s)) for n, s in steps(model)]).set_params(**one).fit(X, y, **params)
        for one in CANDIDATES
    ]
    scores = [one[-1].best_score_ for one in fitted]
    return CANDIDATES[int(np.argmax(scores))], fitted[int(np.argmax(scores))], scores


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("telling", [False, True])
def test_the_best_candidate_is_kept(telling, grouped):
    """Levels that say nothing are made light, others are not."""
    X, y, _ = table(1, telling)
    given = {"model__groups": np.arange(N) // 6} if grouped else {}
    model = TunedPipeline(steps(MODEL), CANDIDATES).fit(X, y, **given)
    chosen, fitted, scores = literally_chosen(MODEL, X, y, **given)
    assert chosen[WEIGHT]["categories"] == (1.0 if telling else 0.3)
    assert model.chosen_ == chosen
    np.testing.assert_array_equal(model.candidate_scores_, scores)
    np.testing.assert_array_equal(model.predict_proba(X), fitted.predict_proba(X))
    again = clone(model).fit(X, y, **given)  # from the chosen parameters, all are tried again
    np.testing.assert_array_equal(again.candidate_scores_, scores)


@pytest.mark.parametrize(
    "model", [KernelFisherDiscriminant(gamma="scale"), KernelRidge(gamma="scale")], ids=repr
)
def test_the_choice_is_made_anew_in_every_training_set(model):
    X, y, score = table(3)
    y = score if isinstance(model, KernelRidge) else y
    groups = np.arange(N) // 5 if isinstance(model, KernelRidge) else None
    cv = StratifiedKFold(4) if groups is None else GroupKFold(4)
    tuned = TunedPipeline(steps(model), CANDIDATES)
    assert depends(tuned, X).rows == "preprocessing is chosen on each training set"
    ours = fitonce.cross_val_predict(tuned, X, y, cv=cv, groups=groups)
    np.testing.assert_array_equal(ours, literal_predict(tuned, X, y, cv=cv, groups=groups))
    by_hand = np.empty(N, dtype=ours.dtype)
    for train, test in cv.split(X, y, groups):
        by_hand[test] = literally_chosen(model, X.iloc[train], y[train])[1].predict(X.iloc[test])
    np.testing.assert_array_equal(ours, by_hand)


def test_a_permutation_test_chooses_again():
    """Scores of permuted labels are those of the whole search, refitted."""
    X, y, _ = table(2)
    cv = StratifiedKFold(3)
    tuned = TunedPipeline(steps(LeastSquaresSVC(gamma="scale", alpha=0.1)), CANDIDATES)
    assert depends(tuned, X).labels and not depends(tuned.plain(), X).labels
    given = {"cv": cv, "n_permutations": 4, "random_state": 0, "permute": "within-folds"}
    with pytest.warns(fitonce.RefitWarning, match="preprocessing is chosen"):
        test = fitonce.permutation_test_score(tuned, X, y, **given)
    same = literal_predict(tuned, X, y, cv=cv)
    folds = [np.mean(same[rows] == y[rows]) for _, rows in cv.split(X, y)]
    assert test.score == pytest.approx(np.mean(folds), abs=1e-12)
    first = fitonce.permutation_test_score(tuned.plain(), X, y, **given)
    assert len(set(test.permutation_scores) ^ set(first.permutation_scores)) > 0


def test_an_assessment_tells_what_was_chosen_and_tests_the_first_candidate():
    X, y, _ = table(0)
    tuned = TunedPipeline(steps(MODEL), CANDIDATES)
    assert isinstance(quick(tuned), Pipeline) and not isinstance(quick(tuned), TunedPipeline)
    answer = fitonce.assess(tuned, X, y, cv=3, permutations=19)
    assert {one[RARE] for one in answer.choices} <= {1, 4}
    assert "the first candidate for preprocessing" in answer.permutation_statistic


def test_groups_stay_together_in_a_choice_under_permutations():
    """The city of a group tells its label, of no use for other groups: only groups show that."""
    X, _, _ = table(0)
    groups = np.arange(N) // 5
    kind = groups % 2
    X = X.assign(city=[f"c{k}" for k in groups], a=X["a"] + 1.5 * kind)
    weights = [{WEIGHT: {"categories": weight}} for weight in (2.0, 0.1)]
    tuned = TunedPipeline(steps(LeastSquaresSVC(gamma=0.1, alpha=0.1)), weights)
    assert tuned.fit(X, kind).chosen_ != tuned.fit(X, kind, model__groups=groups).chosen_
    given = {"groups": groups, "cv": GroupKFold(3), "random_state": 0}
    with pytest.warns(fitonce.RefitWarning):
        test, _ = significance(tuned, X, kind, **given, permutations=2, statistic="same")
    answer = fitonce.assess(tuned, X, kind, **given, permutations=0)
    assert test.score == pytest.approx(answer.accuracy.value, abs=1e-12)


def test_a_failed_fit_leaves_the_model_whole():
    X, y, _ = table(0)
    model = TunedPipeline(steps(MODEL), CANDIDATES).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="infinity"):
        model.fit(X.assign(a=np.inf), y)
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize(
    ("candidates", "said"),
    [
        ([], "at least one"),
        ([{RARE: 1}, {WEIGHT: None}], "the same parameters"),
        ({RARE: 1}, "a list of at least one dict"),
        ([{"model__gamma": 0.1}], "itself tunes the parameters"),
    ],
)
def test_candidates_that_mean_nothing_are_refused(candidates, said):
    X, y, _ = table(0)
    with pytest.raises(ValueError, match=said):
        TunedPipeline(steps(MODEL), candidates).fit(X, y)


def test_models_that_do_not_judge_themselves_are_refused():
    X, y, score = table(0)
    with pytest.raises(TypeError, match="GridSearchCV"):
        TunedPipeline(steps(LogisticRegression()), CANDIDATES).fit(X, y)
    ridge = TunedPipeline(steps(KernelRidge("linear")), CANDIDATES)
    with pytest.raises(ValueError, match="no target has a say"):
        fitonce.permutation_test_targets(ridge, X, np.c_[score, score], n_permutations=3)


NOISE = [("best", SelectKBest(k=10)), ("model", KernelFisherDiscriminant("linear"))]


@pytest.mark.parametrize("kind", ["temperature", "sigmoid", "isotonic"])
@pytest.mark.parametrize("model", [KernelFisherDiscriminant("linear"), LeastSquaresSVC("linear")])
def test_probabilities_after_a_selection_know_that_columns_are_noise(model, kind):
    """The best 10 of 300 columns of noise: probabilities near one half, not near 0 and 1."""
    losses = {Pipeline: [], TunedPipeline: []}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(560, 300)), np.arange(560) % 2
        for one, found in losses.items():
            made = one([("best", SelectKBest(k=10)), ("model", clone(model))])
            made.set_params(model__calibration=kind).fit(X[:60], y[:60])
            found.append(log_loss(y[60:], made.predict_proba(X[60:])))
            assert accuracy_score(y[60:], made.predict(X[60:])) == pytest.approx(0.5, abs=0.08)
    bound, least = (1.0, 1.2) if kind == "isotonic" else (0.75, 0.9)  # steps of 60 rows are coarse
    assert np.mean(losses[TunedPipeline]) < bound < least < np.mean(losses[Pipeline])


@pytest.mark.parametrize("grouped", [False, True])
def test_a_whole_pipeline_is_calibrated_on_its_literal_refits(grouped):
    """Groups and weights reach the refits, classes are stratified; the threshold moves once."""
    X, y, _ = table(4)
    X = np.random.default_rng(1).normal(size=(N, 20)) + 0.5 * X["a"].to_numpy()[:, None]
    groups, weights = np.arange(N) // 3, np.random.default_rng(0).uniform(0.5, 2.0, N)
    chain = [("best", SelectKBest(k=3)), ("model", LeastSquaresSVC(gamma=0.1, alpha=1.0))]
    given = {"model__sample_weight": weights} | ({"model__groups": groups} if grouped else {})
    model = TunedPipeline(chain).set_params(model__calibration="sigmoid").fit(X, y, **given)
    plain = Pipeline(chain).set_params(model__calibration=None)
    cv = GroupKFold(5) if grouped else StratifiedKFold(5, shuffle=True, random_state=0)
    decision = np.empty(N)
    for train, test in cv.split(X, y, groups):
        own = {name: values[train] for name, values in given.items()}
        decision[test] = plain.fit(X[train], y[train], **own).decision_function(X[test])
    found = fit_calibration("sigmoid", decision, (y == "yes").astype(int), weights)
    moved = plain.fit(X, y, **given).decision_function(X) + found.shift[1] - found.shift[0]
    np.testing.assert_allclose(model.decision_function(X), moved, atol=1e-8)
    assert model[-1].temperature_ == pytest.approx(1 / found.beta, rel=1e-8)


def test_sets_and_intervals_after_a_step_that_uses_targets_are_refused():
    X, y = np.random.default_rng(0).normal(size=(40, 30)), np.arange(40) % 2
    model = TunedPipeline(NOISE).fit(X, y)
    with pytest.raises(ValueError, match="the step 'best' before it has used their targets"):
        model[-1].predict_set(model[:-1].transform(X))
    ridge = TunedPipeline([NOISE[0], ("model", KernelRidge(1.0, gamma=0.1))]).fit(X, y)
    with pytest.raises(ValueError, match="used their targets"):
        ridge[-1].predict_interval(ridge[:-1].transform(X))
    alone = model[-1].fit(X, y)  # a fit of its own has no steps before it
    assert alone.predict_set(X).shape == (40, 2)


@pytest.mark.parametrize(
    ("step", "uses"),
    [
        (SelectKBest(), True),
        (SelectFromModel(LogisticRegression()), True),
        (PLSRegression(), True),
        (ColumnTransformer([("city", TargetEncoder(), [0])]), True),
        (KernelFisherDiscriminant(), True),
        (StandardScaler(), False),
        (KNNImputer(), False),
        (ColumnTransformer([("n", IterativeImputer(BayesianRidge()), [0])]), False),
        (ColumnTransformer([("city", OneHotEncoder(), [0])]), False),
        ("passthrough", False),
    ],
)
def test_steps_that_use_targets_are_known(step, uses):
    made = Pipeline([("first", StandardScaler()), ("step", step), ("model", MODEL)])
    assert step_with_targets(made) == ("step" if uses else None)


def test_an_assessment_warns_of_probabilities_that_are_too_sure():
    X, y = np.random.default_rng(0).normal(size=(40, 30)), np.arange(40) % 2
    given = {"cv": 3, "permutations": 0}
    with pytest.warns(UserWarning, match="the step .best. uses y"):
        fitonce.assess(Pipeline(NOISE), X, y, **given)
    plain = Pipeline(NOISE).set_params(model__calibration=None)
    for quiet in (plain, TunedPipeline(NOISE), Pipeline([NOISE[0], ("m", LogisticRegression())])):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fitonce.RefitWarning)
            warnings.filterwarnings("error", message=".*uses y")
            fitonce.assess(quiet, X, y, **given)


def test_steps_before_the_model_fit_alone():
    X, y = np.random.default_rng(0).normal(size=(40, 30)), np.arange(40) % 2
    alone = with_first_steps(TunedPipeline(NOISE))[:-1].fit_transform(X, y)
    np.testing.assert_array_equal(alone, SelectKBest(k=10).fit_transform(X, y))


def test_saved_and_exported_as_chosen(tmp_path):
    """Levels merged and weighed in the file as in memory; unknown ones too."""
    onnxruntime = pytest.importorskip("onnxruntime")
    X, y, _ = table(0)
    model = TunedPipeline(steps(MODEL), CANDIDATES[3:]).fit(X, y)
    new = X.assign(city=["never seen", *X["city"][1:]])
    loaded = fitonce.load(fitonce.save(model, tmp_path / "model.skops"))
    assert loaded.chosen_ == model.chosen_
    np.testing.assert_array_equal(loaded.predict_proba(new), model.predict_proba(new))
    graph = fitonce.to_onnx(model, new, dtype="float64")
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    feeds = {name: new[name].to_numpy()[:, None] for name in "abc"}
    cities = new["city"].to_numpy(object)[:, None]
    found = session.run(["probabilities"], feeds | {"city": cities})[0]
    np.testing.assert_allclose(found, model.predict_proba(new), atol=1e-8)
