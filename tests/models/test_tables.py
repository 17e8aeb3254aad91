"""Estimators for tables: scikit-learn's own checks, its data sets, and each network by itself."""

from __future__ import annotations

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from polygrad.models.tables import (
    MLPClassifier,
    MLPRegressor,
    NAMClassifier,
    NAMRegressor,
    TabMClassifier,
    TabMRegressor,
)

ALL = [MLPClassifier, MLPRegressor, TabMClassifier, TabMRegressor, NAMClassifier, NAMRegressor]


def small(kind: Any) -> Any:
    """An estimator that fits quickly."""
    options: dict[str, Any] = {"hidden": (16,), "max_iter": 60, "batch_size": 32, "dropout": 0.0}
    if kind in (TabMClassifier, TabMRegressor):
        options["members"] = 4
    return kind(learning_rate=0.02, n_iter_no_change=0, **options)


@parametrize_with_checks([small(kind) for kind in ALL])
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)
