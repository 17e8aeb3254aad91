"""Checks and conversion of tables and targets: arrays, DataFrames, Tensors, lists.

Errors are those of scikit-learn's estimators, so that its tools understand them. If scikit-learn is loaded,
its own classes of errors and warnings are used; it is not required.
"""

from __future__ import annotations

import importlib
import math
import sys
import warnings
from dataclasses import dataclass
from typing import Any

from polygrad.errors import ArgumentError, DTypeError
from polygrad.tensor.tensor import Tensor


@dataclass(frozen=True)
class Table:
    """A table as float32 (rows, features), and the names of its columns, if it has some."""

    values: Tensor
    names: list[str] | None

    @property
    def rows(self) -> int:
        return int(self.values.shape[0])

    @property
    def features(self) -> int:
        return int(self.values.shape[1])


def read_table(x: Any, owner: str) -> Table:
    """A table of finite numbers. Raises ArgumentError (a ValueError), DTypeError (a TypeError)."""
    names = _names(x)
    if _is_sparse(x):
        raise DTypeError(f"{owner}: sparse data was passed for X, dense data is required: use X.toarray()")
    if isinstance(x, Tensor):
        values = x.detach().cast("float32")
    else:
        values = _numbers(x, owner)
    if values.ndim == 1:
        raise ArgumentError(
            f"{owner}: Expected 2D array, got 1D array instead: Reshape your data: X.reshape(-1, 1) for one "
            "feature, X.reshape(1, -1) for one row"
        )
    if values.ndim != 2:
        raise ArgumentError(
            f"{owner}: Found array with dim {values.ndim}, expected <= 2: X of (rows, features)"
        )
    rows, features = values.shape
    if not rows:
        raise ArgumentError(
            f"{owner}: Found array with 0 sample(s) (shape={(rows, features)}), at least 1 is required"
        )
    if not features:
        raise ArgumentError(
            f"{owner}: 0 feature(s) (shape={(rows, features)}) while a minimum of 1 is required."
        )
    values = values.realize()
    if not math.isfinite(values.abs().max().item()):
        raise ArgumentError(f"{owner}: X: Input X contains NaN or infinity: expected finite numbers")
    return Table(values, names)


def read_target(y: Any, rows: int, owner: str) -> list[Any]:
    """A target for each row, as a list of numbers or of labels. Raises ArgumentError."""
    if y is None:
        raise ArgumentError(f"{owner}: requires y to be passed, but the target y is None")
    targets = _to_list(y)
    if targets and isinstance(targets[0], list):
        if any(len(row) != 1 for row in targets):
            raise ArgumentError(f"{owner}: y: expected one target for each row, got {len(targets[0])}")
        targets = [row[0] for row in targets]
        _warn_of_column()
    if len(targets) != rows:
        raise ArgumentError(
            f"{owner}: Found input variables with inconsistent numbers of samples: {rows} in X, "
            f"{len(targets)} in y"
        )
    for value in targets:
        if isinstance(value, complex):
            raise ArgumentError(f"{owner}: Complex data not supported: y has {value}")
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            raise ArgumentError(f"{owner}: y: Input y contains NaN or infinity")
    return targets


def as_array(values: list[Any]) -> Any:
    """A list as a numpy array, on hosts that have numpy; elsewhere the list."""
    try:
        numpy: Any = importlib.import_module("numpy")
    except ImportError:
        return values
    return numpy.array(values)


def not_fitted_error(owner: str) -> Exception:
    """The error of a method that needs `fit`."""
    message = f"This {owner} instance is not fitted yet: expected fit before it"
    kind = _sklearn("sklearn.exceptions", "NotFittedError")
    return ArgumentError(message) if kind is None else kind(message)


def _warn_of_column() -> None:
    kind = _sklearn("sklearn.exceptions", "DataConversionWarning") or UserWarning
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected: y.ravel() makes one", kind, stacklevel=5
    )


def _sklearn(module: str, name: str) -> Any:
    """A class of scikit-learn, where it is loaded."""
    submodule: Any = sys.modules.get(module)
    return None if submodule is None else getattr(submodule, name)


def _is_sparse(x: Any) -> bool:
    return hasattr(x, "toarray") and hasattr(x, "nnz")


def _names(x: Any) -> list[str] | None:
    columns = getattr(x, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    return names if all(isinstance(name, str) for name in names) else None


def _numbers(x: Any, owner: str) -> Tensor:
    """An object like an array, as float32."""
    if hasattr(x, "__array__") and not hasattr(x, "dtype"):
        x = x.__array__()
    if hasattr(x, "to_numpy"):
        x = x.to_numpy()
    kind = getattr(getattr(x, "dtype", None), "kind", None)
    if kind == "c":
        raise ArgumentError(f"{owner}: Complex data not supported: X has dtype {x.dtype}")
    array: Any = x
    shape: Any = getattr(array, "shape", None)
    if kind in ("b", "i", "u", "f") and shape and 0 not in shape:
        return Tensor(array.astype("float32"))
    values = _to_list(x)
    if shape is not None and 0 in shape:
        return Tensor.zeros(*shape)
    if not isinstance(values, list):
        raise ArgumentError(f"{owner}: Expected 2D array, got scalar array instead: X of (rows, features)")
    if values and isinstance(values[0], list):
        width = len(values[0])
        if any(not isinstance(row, list) or len(row) != width for row in values):
            raise ArgumentError(f"{owner}: X: expected rows of one length")
        if not width:
            return Tensor.zeros(len(values), 0)
        if any(isinstance(v, list) for v in values[0]):
            raise ArgumentError(f"{owner}: Found array with dim 3, expected <= 2: X of (rows, features)")
        return Tensor([[_number(v, owner) for v in row] for row in values], dtype="float32")
    if not values:
        raise ArgumentError(f"{owner}: Found array with 0 sample(s), at least 1 is required")
    return Tensor([_number(v, owner) for v in values], dtype="float32")


def _number(value: Any, owner: str) -> float:
    if isinstance(value, complex):
        raise ArgumentError(f"{owner}: Complex data not supported: X has {value}")
    if isinstance(value, (dict, set)) or value is None:
        raise DTypeError(f"{owner}: X: argument must be a string or a number, got {type(value).__name__}")
    try:
        return float(value)
    except (TypeError, ValueError) as e:
        raise ArgumentError(f"{owner}: X: expected numbers, got {value!r:.80}") from e


def _to_list(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x.tolist()
    if hasattr(x, "__array__") and not hasattr(x, "tolist"):
        x = x.__array__()
    if hasattr(x, "to_list"):
        return x.to_list()
    if hasattr(x, "tolist"):
        return x.tolist()
    if isinstance(x, (list, tuple)):
        return [_to_list(v) if isinstance(v, (list, tuple)) or hasattr(v, "tolist") else v for v in x]
    return x
