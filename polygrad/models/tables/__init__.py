"""Models for tables, with the interface of scikit-learn's estimators: MLP, TabM and NAM.

    from polygrad.models.tables import TabMClassifier
    model = TabMClassifier(random_state=0).fit(X, y)
    model.predict_proba(X_test)

`networks.py` has the networks, `fitting.py` their training, `arrays.py` the checks of arguments, and
`estimators.py` the interface.
"""

from __future__ import annotations

from polygrad.models.tables.estimators import (
    MLPClassifier,
    MLPRegressor,
    NAMClassifier,
    NAMRegressor,
    TabMClassifier,
    TabMRegressor,
)

__all__ = [
    "MLPClassifier",
    "MLPRegressor",
    "NAMClassifier",
    "NAMRegressor",
    "TabMClassifier",
    "TabMRegressor",
]
