"""Estimators for tables, with the interface of scikit-learn's: `fit`, `predict`, `predict_proba`, `score`.

They work with scikit-learn's tools (pipelines, searches, `clone`) where it is installed, and without it.
"""

from __future__ import annotations

import importlib
import inspect
import time
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from polygrad.errors import ArgumentError
from polygrad.models.instance import Instance
from polygrad.models.tables.arrays import Table, as_array, not_fitted_error, read_table, read_target
from polygrad.models.tables.fitting import Fitted, Recipe, Standard, fit_network, predict, split_rows
from polygrad.models.tables.networks import MLPNetwork, NAMNetwork, TableNetwork, TabMNetwork
from polygrad.tensor.core.generator import generator
from polygrad.tensor.tensor import Tensor


class TableEstimator:
    """The base of the estimators.

    All have these arguments. `hidden`: sizes of the hidden layers. `dropout`: of what comes out of them, in
    training. `max_iter`: the most epochs. `batch_size`, `learning_rate`, `weight_decay`: of AdamW.
    `validation_fraction`: the part of the rows that is held out, `n_iter_no_change`: after as many epochs in
    which its loss got no better, fitting ends, and the best weights are kept; 0: nothing is held out.
    `random_state`: a seed, or an object with `randint`; None: another one each time.

    After `fit`: `network_`, `n_features_in_`, `n_iter_` (epochs), `loss_curve_`, `validation_curve_`,
    `best_iter_`; `feature_names_in_` where columns have names.
    """

    _is_classifier: ClassVar[bool]
    hidden: Sequence[int]
    dropout: float
    max_iter: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    validation_fraction: float
    n_iter_no_change: int
    random_state: Any
    network_: TableNetwork

    def _assign(self, parameters: dict[str, Any]) -> None:
        """Keep the arguments of `__init__` unchanged, as scikit-learn requires."""
        for name in self._names():
            setattr(self, name, parameters[name])

    # --- scikit-learn's protocol

    @classmethod
    def _names(cls) -> list[str]:
        return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Self:
        """Change arguments; the estimator. Raises ArgumentError for a name that is none."""
        names = self._names()
        for name, value in params.items():
            if name not in names:
                raise ArgumentError(
                    f"{type(self).__name__}: Invalid parameter {name!r}: expected one of {', '.join(names)}"
                )
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        """The tags that scikit-learn asks for; it has to be loaded."""
        utils: Any = importlib.import_module("sklearn.utils")
        tags = utils.Tags(
            estimator_type="classifier" if self._is_classifier else "regressor",
            target_tags=utils.TargetTags(required=True),
            input_tags=utils.InputTags(),
        )
        if self._is_classifier:
            tags.classifier_tags = utils.ClassifierTags()
        else:
            tags.regressor_tags = utils.RegressorTags()
        tags.non_deterministic = False
        return tags

    @property
    def _estimator_type(self) -> str:
        return "classifier" if self._is_classifier else "regressor"

    def __sklearn_is_fitted__(self) -> bool:
        return "network_" in vars(self)

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        non_defaults = {k: v for k, v in self.get_params().items() if not _same(v, defaults[k].default)}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in non_defaults.items())})"

    # --- fitting

    def _network(self, features: int, outputs: int) -> TableNetwork:
        raise NotImplementedError(type(self).__name__)

    def _hidden(self, least: int = 0) -> tuple[int, ...]:
        """The sizes of the hidden layers, at least `least` of them."""
        sizes = (self.hidden,) if isinstance(self.hidden, int) else tuple(self.hidden)
        if not all(isinstance(n, int) and n > 0 for n in sizes):
            raise ArgumentError(
                f"{type(self).__name__}: hidden: expected sizes of layers, got {self.hidden!r}"
            )
        if len(sizes) < least:
            raise ArgumentError("hidden: expected at least one layer, got none")
        return sizes

    def _recipe(self) -> Recipe:
        owner = type(self).__name__
        for name, low in (("max_iter", 1), ("batch_size", 1), ("n_iter_no_change", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < low:
                raise ArgumentError(f"{owner}: {name}: expected an int of at least {low}, got {value!r}")
        if not 0 <= self.validation_fraction < 1:
            raise ArgumentError(
                f"{owner}: validation_fraction: expected a number from 0 on and below 1, got "
                f"{self.validation_fraction!r}"
            )
        for name in ("learning_rate", "weight_decay"):
            if not getattr(self, name) >= 0:
                raise ArgumentError(f"{owner}: {name}: expected at least 0, got {getattr(self, name)!r}")
        return Recipe(
            self.max_iter,
            self.batch_size,
            self.learning_rate,
            self.weight_decay,
            self.validation_fraction,
            self.n_iter_no_change,
            _seed(self.random_state, owner),
        )

    def _fit(self, table: Table, targets: Tensor, outputs: int, groups: list[int] | None) -> None:
        recipe = self._recipe()
        parts = split_rows(table.rows, recipe, groups)
        self._standard = Standard.of(table.values[Tensor(parts[0], dtype="int32")])
        x = self._standard.apply(table.values).realize()
        with generator.restored():
            network, fitted = fit_network(
                lambda: self._network(table.features, outputs), x, targets, parts, recipe
            )
        self._keep(table, network, fitted)

    def _keep(self, table: Table, network: TableNetwork, fitted: Fitted) -> None:
        self.network_, self.n_features_in_ = network, table.features
        self.loss_curve_, self.validation_curve_ = fitted.losses, fitted.held_out
        self.n_iter_, self.best_iter_ = len(fitted.losses), fitted.best
        if table.names is not None:
            self.feature_names_in_ = as_array(table.names)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    # --- the fitted network

    @property
    def instance_(self) -> Instance:
        """The fitted network as an Instance, for standardised rows: `forward`, `weights`, `export`."""
        self._check_fitted()
        return Instance(self.network_)

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise not_fitted_error(type(self).__name__)

    def _standardise(self, x: Any) -> Tensor:
        """Rows, standardised like those of `fit`. Raises ArgumentError."""
        self._check_fitted()
        owner = type(self).__name__
        table = read_table(x, owner)
        if table.features != self.n_features_in_:
            raise ArgumentError(
                f"{owner}: X has {table.features} features, but {owner} is expecting {self.n_features_in_} "
                "features as input"
            )
        feature_names = getattr(self, "feature_names_in_", None)
        if feature_names is not None and table.names is not None and table.names != list(feature_names):
            raise ArgumentError(
                f"{owner}: The feature names should match those that were passed during fit: expected "
                f"{', '.join(feature_names)}, got {', '.join(table.names)}"
            )
        return self._standard.apply(table.values)

    def _predictions(self, x: Any) -> Tensor:
        rows, network = self._standardise(x), self.network_
        return predict(lambda part: network.forward(part)["prediction"], rows)


class TableClassifier(TableEstimator):
    """The base of classifiers: labels are numbers, text or booleans; `classes_`: those there are, sorted."""

    _is_classifier = True

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to a table X (rows, features) and a label for each row; the estimator.

        Raises ArgumentError (a ValueError), also for targets that are no classes; DTypeError (a TypeError).
        """
        owner = type(self).__name__
        table = read_table(X, owner)
        labels = read_target(y, table.rows, owner)
        if any(isinstance(v, float) and v != int(v) for v in labels):
            raise ArgumentError(f"{owner}: Unknown label type: continuous: expected classes, got numbers")
        classes = sorted(set(labels))
        if len(classes) < 2:
            raise ArgumentError(f"{owner}: y: expected at least two classes, got one class: {classes[0]!r}")
        number = {label: i for i, label in enumerate(classes)}
        codes = [number[label] for label in labels]
        self._fit(table, Tensor(codes, dtype="int32"), len(classes), codes)
        self._labels = classes
        self.classes_ = _like(y, classes)
        return self

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class, in the order of `classes_`: (rows, classes)."""
        return _host(self._predictions(X))

    def predict(self, X: Any) -> Any:
        """The most probable class of each row."""
        best = self._predictions(X).argmax(-1).tolist()
        predictions = [self._labels[i] for i in best]
        return (
            as_array(predictions).astype(self.classes_.dtype)
            if hasattr(self.classes_, "dtype")
            else predictions
        )

    def score(self, X: Any, y: Any) -> float:
        """The part of the rows whose class is right."""
        predictions = list(self.predict(X))
        targets = read_target(y, len(predictions), type(self).__name__)
        return sum(a == b for a, b in zip(predictions, targets)) / len(predictions)


class TableRegressor(TableEstimator):
    """The base of regressors, whose targets are standardised, too."""

    _is_classifier = False

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to a table X (rows, features) and a number for each row; the estimator.

        Raises ArgumentError (a ValueError), DTypeError (a TypeError).
        """
        owner = type(self).__name__
        table = read_table(X, owner)
        try:
            numbers = [[float(v)] for v in read_target(y, table.rows, owner)]
        except (TypeError, ValueError) as e:
            raise ArgumentError(f"{owner}: y: expected numbers: {e}") from e
        targets = Tensor(numbers, dtype="float32")
        self._target = Standard.of(targets)
        self._fit(table, self._target.apply(targets).realize(), 1, None)
        return self

    def predict(self, X: Any) -> Any:
        """A number for each row."""
        self._check_fitted()
        return _host(self._target.undo(self._predictions(X)).reshape(-1))

    def score(self, X: Any, y: Any) -> float:
        """R², the part of the variance of y that is explained: 1 is all of it."""
        predictions = [float(v) for v in self.predict(X)]
        targets = [float(v) for v in read_target(y, len(predictions), type(self).__name__)]
        mean = sum(targets) / len(targets)
        total = sum((v - mean) ** 2 for v in targets)
        missed = sum((a - b) ** 2 for a, b in zip(targets, predictions))
        return 1 - missed / total if total else float(missed == 0)


class _MLP(TableEstimator):
    def __init__(
        self,
        hidden: Sequence[int] = (128, 128),
        dropout: float = 0.1,
        max_iter: int = 200,
        batch_size: int = 128,
        learning_rate: float = 0.002,
        weight_decay: float = 3e-4,
        validation_fraction: float = 0.15,
        n_iter_no_change: int = 20,
        random_state: Any = None,
    ) -> None:
        self._assign(locals())

    def _network(self, features: int, outputs: int) -> TableNetwork:
        return MLPNetwork(features, outputs, self._is_classifier, self._hidden(), self.dropout)


class MLPClassifier(_MLP, TableClassifier):
    """A multilayer perceptron that says classes. Arguments are those of `TableEstimator`.

    >>> model = MLPClassifier(hidden=(8,), max_iter=60, n_iter_no_change=0, random_state=0)
    >>> model = model.fit([[0.0], [0.1], [0.9], [1.0]], ["low", "low", "high", "high"])
    >>> list(model.predict([[0.05], [0.95]]))
    [...'low'..., ...'high'...]
    """


class MLPRegressor(_MLP, TableRegressor):
    """A multilayer perceptron that says numbers. Arguments are those of `TableEstimator`."""


class _TabM(TableEstimator):
    members: int

    def __init__(
        self,
        hidden: Sequence[int] = (128, 128),
        members: int = 32,
        dropout: float = 0.1,
        max_iter: int = 200,
        batch_size: int = 128,
        learning_rate: float = 0.002,
        weight_decay: float = 3e-4,
        validation_fraction: float = 0.15,
        n_iter_no_change: int = 20,
        random_state: Any = None,
    ) -> None:
        self._assign(locals())

    def _network(self, features: int, outputs: int) -> TableNetwork:
        if not isinstance(self.members, int) or self.members < 1:
            raise ArgumentError(f"members: expected an int of at least 1, got {self.members!r}")
        sizes = self._hidden(least=1)
        return TabMNetwork(features, outputs, self._is_classifier, sizes, self.dropout, self.members)


class TabMClassifier(_TabM, TableClassifier):
    """TabM (Gorishniy et al., 2024) that says classes: `members` MLPs that share their matrices. Other
    arguments are those of `TableEstimator`."""


class TabMRegressor(_TabM, TableRegressor):
    """TabM (Gorishniy et al., 2024) that says numbers; see `TabMClassifier`."""


class _NAM(TableEstimator):
    units: str
    feature_dropout: float

    def __init__(
        self,
        hidden: Sequence[int] = (64, 32),
        units: str = "relu",
        dropout: float = 0.1,
        feature_dropout: float = 0.05,
        max_iter: int = 200,
        batch_size: int = 128,
        learning_rate: float = 0.005,
        weight_decay: float = 3e-4,
        validation_fraction: float = 0.15,
        n_iter_no_change: int = 20,
        random_state: Any = None,
    ) -> None:
        self._assign(locals())

    def _network(self, features: int, outputs: int) -> TableNetwork:
        if self.units not in ("relu", "exu"):
            raise ArgumentError(f"units: expected relu or exu, got {self.units!r}")
        sizes = self._hidden(least=1)
        return NAMNetwork(
            features,
            outputs,
            self._is_classifier,
            sizes,
            self.dropout,
            self.feature_dropout,
            self.units == "exu",
        )

    def contributions(self, X: Any) -> Any:
        """What each feature adds to the scores of each row: (rows, features, outputs). For classifiers scores
        are logits; for regressors they are in standard deviations of the target."""
        self._check_fitted()
        network = self.network_
        assert isinstance(network, NAMNetwork)
        return _host(predict(network.contributions, self._standardise(X)))


class NAMClassifier(_NAM, TableClassifier):
    """A neural additive model (Agarwal et al., 2020) that says classes: the sum of a function of each
    feature.

    `units`: of the first layer, "relu" or "exu". `feature_dropout`: whole functions are dropped in training.
    Other arguments are those of `TableEstimator`.
    """


class NAMRegressor(_NAM, TableRegressor):
    """A neural additive model (Agarwal et al., 2020) that says numbers; see `NAMClassifier`."""


def _host(values: Tensor) -> Any:
    """Values as a numpy array on hosts that have numpy, else as lists."""
    listed = values.tolist()
    return as_array(listed)


def _like(y: Any, classes: list[Any]) -> Any:
    """The classes as an array of the dtype that y has, if it has one."""
    array = as_array(classes)
    dtype = getattr(y, "dtype", None)
    return (
        array.astype(dtype)
        if hasattr(array, "astype") and getattr(dtype, "kind", "") in ("i", "u", "b", "f", "U", "O")
        else array
    )


def _seed(random_state: Any, owner: str) -> int:
    if random_state is None:
        return time.time_ns() % (1 << 31)
    if hasattr(random_state, "randint"):
        return int(random_state.randint(0, (1 << 31) - 1))
    try:
        return int(random_state.__index__())
    except AttributeError as e:
        raise ArgumentError(f"{owner}: random_state: expected an int or None, got {random_state!r}") from e


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)
