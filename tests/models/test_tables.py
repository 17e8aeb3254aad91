"""Estimators for tables: scikit-learn's own checks, its data sets, and each network by itself."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.utils.estimator_checks import parametrize_with_checks

from polygrad import Tensor
from polygrad.errors import ArgumentError, DTypeError
from polygrad.models.tables import (
    MLPClassifier,
    MLPRegressor,
    NAMClassifier,
    NAMRegressor,
    TabMClassifier,
    TabMRegressor,
)
from polygrad.models.tables.networks import NAMNetwork, TabMNetwork

ALL = [MLPClassifier, MLPRegressor, TabMClassifier, TabMRegressor, NAMClassifier, NAMRegressor]


def small(kind: Any) -> Any:
    """An estimator that fits quickly."""
    options: dict[str, Any] = {"hidden": (16,), "max_iter": 60, "batch_size": 32, "dropout": 0.0}
    if kind in (TabMClassifier, TabMRegressor):
        options["members"] = 4
    return kind(learning_rate=0.02, n_iter_no_change=0, **options)


@parametrize_with_checks([small(TabMClassifier), small(MLPRegressor)])
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([small(kind) for kind in ALL if kind not in (TabMClassifier, MLPRegressor)])
def test_scikit_learns_checks_of_the_others(estimator: Any, check: Any) -> None:
    check(estimator)


def parts(name: str) -> tuple[Any, ...]:
    """A data set that scikit-learn ships: rows to fit to and others, their targets."""
    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return tuple(train_test_split(x, y, test_size=0.25, random_state=0))


# The least score of each, by data set: what tells a model that learned from one that did not.
_CLASSES = {"breast_cancer": 0.93, "wine": 0.9}


@pytest.mark.parametrize("kind", [MLPClassifier, TabMClassifier, NAMClassifier])
@pytest.mark.parametrize("name", _CLASSES)
def test_classes_of_real_data_are_found(kind: Any, name: str) -> None:
    x, x_test, y, y_test = parts(name)
    model = kind(random_state=0, max_iter=60).fit(x, y)
    assert model.score(x_test, y_test) >= _CLASSES[name]
    shown = model.predict_proba(x_test)
    np.testing.assert_allclose(shown.sum(1), 1, atol=1e-5)
    assert np.array_equal(model.classes_[shown.argmax(1)], model.predict(x_test))


@pytest.mark.parametrize("kind", [MLPRegressor, TabMRegressor, NAMRegressor])
def test_numbers_of_real_data_are_found(kind: Any) -> None:
    x, x_test, y, y_test = parts("diabetes")
    model = kind(random_state=0, max_iter=60).fit(x, y)
    assert model.score(x_test, y_test) > 0.2  # a linear model has 0.36
    assert abs(model.predict(x_test).mean() - y_test.mean()) < 20


def test_fitting_ends_where_the_held_out_part_gets_no_better_and_keeps_the_best() -> None:
    x, _, y, _ = parts("wine")
    model = MLPClassifier(hidden=(32,), n_iter_no_change=5, max_iter=500, learning_rate=0.02, random_state=0)
    model.fit(x, y)
    assert model.n_iter_ < 500 and len(model.validation_curve_) == model.n_iter_ == len(model.loss_curve_)
    assert model.validation_curve_[model.best_iter_] == min(model.validation_curve_)
    assert model.best_iter_ == model.n_iter_ - 1 - 5
    whole = MLPClassifier(hidden=(32,), n_iter_no_change=0, max_iter=7, random_state=0).fit(x, y)
    assert whole.n_iter_ == 7 and whole.validation_curve_ == []


def test_seeds_decide_all_and_the_program_goes_on_with_its_own() -> None:
    x, x_test, y, _ = parts("wine")
    Tensor.manual_seed(1)
    want = [Tensor.rand(2).tolist(), Tensor.rand(2).tolist()]
    Tensor.manual_seed(1)
    found = [Tensor.rand(2).tolist()]
    one, two, other = (
        MLPClassifier(max_iter=5, random_state=seed).fit(x, y).predict_proba(x_test) for seed in (3, 3, 4)
    )
    assert np.array_equal(one, two) and not np.array_equal(one, other)
    assert [*found, Tensor.rand(2).tolist()] == want


def test_members_of_tabm_are_mlps_with_scaled_matrices_within_1e_5() -> None:
    Tensor.manual_seed(0)
    network = TabMNetwork(5, 3, True, (8, 6), 0.0, members=4)
    with Tensor.no_grad():
        for layer in network.layers:
            layer.scale_out.assign(Tensor.randn(*layer.scale_out.shape)).realize()
    x = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    got = network.scores(Tensor(x)).numpy()
    for member in range(4):
        out = x
        for layer in network.layers:
            weight, a, b, bias = (
                t.numpy() for t in (layer.weight, layer.scale_in, layer.scale_out, layer.bias)
            )
            out = np.maximum(out @ (b[member][:, None] * weight * a[member]).T + bias[member], 0)
        want = out @ network.head.numpy()[member] + network.head_bias.numpy()[member]
        np.testing.assert_allclose(got[:, member], want, atol=1e-5)
    signs = network.layers[0].scale_in.numpy()
    assert set(np.unique(signs)) == {-1.0, 1.0} and len(np.unique(signs, axis=0)) > 1


@pytest.mark.parametrize("has_exu", [False, True])
def test_a_nam_is_the_sum_of_functions_of_single_features(has_exu: bool) -> None:
    Tensor.manual_seed(0)
    network = NAMNetwork(4, 2, False, (8, 5), 0.0, 0.0, has_exu)
    x = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    shares = network.contributions(Tensor(x)).numpy()
    scores = network.scores(Tensor(x)).numpy()[:, 0]
    np.testing.assert_allclose(shares.sum(1) + network.bias.numpy(), scores, atol=1e-5)
    changed = x.copy()
    changed[:, 2] += 1
    after = network.contributions(Tensor(changed)).numpy()
    assert np.array_equal(np.delete(after, 2, 1), np.delete(shares, 2, 1))
    assert not np.allclose(after[:, 2], shares[:, 2])


def test_contributions_say_which_feature_matters() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (400, 3))
    y = 3 * x[:, 0] ** 2 - x[:, 1]
    model = NAMRegressor(random_state=0, max_iter=100).fit(x, y)
    assert model.score(x, y) > 0.9
    spread = model.contributions(x)[:, :, 0].std(0)
    assert spread[0] > spread[1] > 4 * spread[2]


def test_it_needs_neither_numpy_nor_scikit_learn() -> None:
    code = """
import sys
for name in ("numpy", "sklearn"): sys.modules[name] = None
from polygrad.models.tables import MLPRegressor, TabMClassifier
quick = {"max_iter": 80, "n_iter_no_change": 0, "learning_rate": 0.02, "dropout": 0.0, "random_state": 0}
x = [[i / 20, 1 - i / 20] for i in range(20)]
y = ["low"] * 10 + ["high"] * 10
model = TabMClassifier(hidden=(8,), members=2, **quick).fit(x, y)
assert model.classes_ == ["high", "low"], model.classes_
assert model.score(x, y) > 0.9 and type(model.predict(x)) is list
assert len(model.predict_proba(x)[0]) == 2
line = MLPRegressor(hidden=(16,), **quick).fit(x, [a for a, _ in x])
assert line.score(x, [a for a, _ in x]) > 0.9
try:
    MLPRegressor().predict(x)
except ValueError as e:
    assert "not fitted" in str(e)
else:
    raise SystemExit("expected an error")
"""
    environment = {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_fitted_one_is_pickled_and_is_an_instance() -> None:
    x, x_test, y, _ = parts("wine")
    model = TabMClassifier(hidden=(16,), members=4, max_iter=5, random_state=0).fit(x, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(x_test), model.predict_proba(x_test))
    rows = model._standard.apply(Tensor(x_test.astype(np.float32)))
    shown = model.instance_.forward(x=rows)["prediction"].numpy()
    np.testing.assert_allclose(shown, model.predict_proba(x_test), atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": (0,)}, "hidden"),
        ({"max_iter": 0}, "max_iter"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_bad_arguments_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        MLPClassifier(**options).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ArgumentError, match="Invalid parameter 'depth'"):
        MLPClassifier().set_params(depth=3)


@pytest.mark.parametrize(
    ("x", "kind", "message"),
    [
        ([1.0, 2.0], ArgumentError, "Expected 2D"),
        ([[1.0], [float("nan")]], ArgumentError, "NaN"),
        ([[1.0], [2.0, 3.0]], ArgumentError, "one length"),
        ([[1.0], ["x"]], ArgumentError, "expected numbers"),
        ([[{}], [{}]], DTypeError, "string or a number"),
        ([], ArgumentError, "0 sample"),
        ([[], []], ArgumentError, "0 feature"),
    ],
)
def test_bad_tables_are_named(x: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        MLPRegressor().fit(x, [0.0, 1.0])
