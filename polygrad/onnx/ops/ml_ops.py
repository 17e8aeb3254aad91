"""Ops of the domain ai.onnx.ml that are functions of tensors: features, labels, linear models, trees."""

from __future__ import annotations

import math
from typing import Any

from polygrad.dtype import dtypes
from polygrad.errors import OnnxError
from polygrad.onnx.op_table import op
from polygrad.onnx.values import Constant, Strings, Value, element_of_value, numbers_of, shape_of
from polygrad.tensor.tensor import Tensor

DOMAIN = "ai.onnx.ml"


@op("ArrayFeatureExtractor", 1, domain=DOMAIN)
def array_feature_extractor(x: Tensor, indices: Tensor) -> Tensor:
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    return rows[..., indices.flatten()]


@op("Binarizer", 1, domain=DOMAIN)
def binarizer(x: Tensor, *, threshold: float = 0.0) -> Tensor:
    return (x > threshold).cast(x.dtype)


@op("Scaler", 1, domain=DOMAIN)
def scaler(x: Tensor, *, offset: list[float], scale: list[float], device: str | None) -> Tensor:
    return (x.float() - Tensor(offset, device)) * Tensor(scale, device)


@op("Normalizer", 1, domain=DOMAIN)
def normalizer(x: Tensor, *, norm: str = "MAX") -> Tensor:
    y = x.float()
    if norm == "MAX":
        return y / y.max(-1, keepdim=True)
    if norm not in ("L1", "L2"):
        raise OnnxError(f"expected norm MAX, L1 or L2, got {norm!r}")
    size = y.norm(float(norm[1]), -1, keepdim=True)
    return y / size.eq(0).where(1.0, size)


@op("Imputer", 1, domain=DOMAIN)
def imputer(
    x: Tensor,
    *,
    imputed_value_floats: list[float] | None = None,
    imputed_value_int64s: list[int] | None = None,
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
    device: str | None,
) -> Tensor:
    if x.dtype.is_float:
        is_missing = x.isnan() if math.isnan(replaced_value_float) else x.eq(replaced_value_float)
        return is_missing.where(Tensor(imputed_value_floats or [0.0], device, x.dtype), x)
    return x.eq(replaced_value_int64).where(Tensor(imputed_value_int64s or [0], device, x.dtype), x)


@op("FeatureVectorizer", 1, domain=DOMAIN)
def feature_vectorizer(*xs: Tensor, inputdimensions: list[int] | None = None) -> Tensor:
    rows = [x.reshape(1, -1) if x.ndim == 1 else x for x in xs]
    return rows[0].float().cat(*[x.float() for x in rows[1:]], dim=1)


@op("LinearRegressor", 1, domain=DOMAIN)
def linear_regressor(
    x: Tensor,
    *,
    coefficients: list[float],
    intercepts: list[float] | None = None,
    post_transform: str = "NONE",
    targets: int = 1,
    device: str | None,
) -> Tensor:
    out = x.float().dot(Tensor(coefficients, device).reshape(targets, -1).T)
    out = out if intercepts is None else out + Tensor(intercepts, device)
    return _transform(out, post_transform)


_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def _transform(x: Tensor, name: str) -> Tensor:
    """Scores after the function that `post_transform` names."""
    if name == "NONE":
        return x
    if name == "SOFTMAX":
        return x.softmax(-1)
    if name == "LOGISTIC":
        return x.sigmoid()
    if name == "SOFTMAX_ZERO":  # zeros stay
        return x.eq(0).where(0.0, x.eq(0).where(-math.inf, x).softmax(-1))
    if name == "PROBIT":
        return (x * 2.0 - 1.0).erfinv() * math.sqrt(2.0)
    raise OnnxError(f"expected post_transform {', '.join(_TRANSFORMS)}, got {name!r}")


# --- labels


@op("LabelEncoder", 2, 4, domain=DOMAIN)
def label_encoder(
    x: Value,
    *,
    default_float: float = -0.0,
    default_int64: int = -1,
    default_string: str = "_Unused",
    default_tensor: Value = None,
    keys_floats: list[float] | None = None,
    keys_int64s: list[int] | None = None,
    keys_strings: list[str] | None = None,
    keys_tensor: Value = None,
    values_floats: list[float] | None = None,
    values_int64s: list[int] | None = None,
    values_strings: list[str] | None = None,
    values_tensor: Value = None,
) -> Value:
    keys = next(
        (_elements(v) for v in (keys_tensor, keys_floats, keys_int64s, keys_strings) if v is not None), []
    )
    if values_tensor is not None:
        values, kind = _elements(values_tensor), _kind(values_tensor)
        default = _elements(default_tensor)[0] if default_tensor is not None else _default(kind)
    elif values_strings is not None:
        values, kind, default = values_strings, None, default_string
    elif values_int64s is not None:
        values, kind, default = values_int64s, dtypes.int64, default_int64
    else:
        values, kind, default = values_floats or [], dtypes.float32, default_float
    if len(keys) != len(values):
        raise OnnxError(f"expected as many values as keys, got {len(values)} and {len(keys)}")
    table = {_key(k): v for k, v in zip(keys, values)}
    encoded = [table.get(_key(e), default) for e in _elements(x)]
    return Strings(shape_of(x), encoded) if kind is None else Constant(kind, shape_of(x), encoded)


@op("LabelEncoder", 1, domain=DOMAIN)
def label_encoder_1(
    x: Value,
    *,
    classes_strings: list[str],
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Value:
    """Text to its place among the classes, or places to text."""
    places = list(range(len(classes_strings)))
    if isinstance(x, Strings):
        return label_encoder(
            x, keys_strings=classes_strings, values_int64s=places, default_int64=default_int64
        )
    return label_encoder(x, keys_int64s=places, values_strings=classes_strings, default_string=default_string)


def _elements(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return value.texts if isinstance(value, Strings) else numbers_of(value)


def _kind(value: Value) -> Any:
    return None if isinstance(value, Strings) else element_of_value(value).dtype


def _default(kind: Any) -> Any:
    return "_Unused" if kind is None else -0.0 if kind.is_float else -1


def _key(x: Any) -> Any:
    """The key of an element in a table: all NaNs have the same key."""
    return "NaN" if x != x else x


# --- trees

_TESTS = {
    0: lambda x, t: x <= t,
    1: lambda x, t: x < t,
    2: lambda x, t: x >= t,
    3: lambda x, t: x > t,
    4: lambda x, t: x.eq(t),
    5: lambda x, t: x.ne(t),
}
_MEMBER = 6
_MOST_TARGETS = 1 << 16  # a limit of memory, whatever the file says


@op("TreeEnsemble", 5, domain=DOMAIN)
def tree_ensemble(
    x: Tensor,
    *,
    aggregate_function: int = 1,
    leaf_targetids: list[int],
    leaf_weights: Value,
    membership_values: Value = None,
    n_targets: int = 1,
    nodes_falseleafs: list[int],
    nodes_falsenodeids: list[int],
    nodes_featureids: list[int],
    nodes_hitrates: Value = None,
    nodes_missing_value_tracks_true: list[int] | None = None,
    nodes_modes: Value,
    nodes_splits: Value,
    nodes_trueleafs: list[int],
    nodes_truenodeids: list[int],
    post_transform: int = 0,
    tree_roots: list[int],
    device: str | None,
) -> Tensor:
    """All tests of all nodes for all rows at once; a leaf counts where all tests on its path hold."""
    if not 0 < n_targets <= _MOST_TARGETS:
        raise OnnxError(f"n_targets: expected 1 to {_MOST_TARGETS}, got {n_targets}")
    modes, splits = numbers_of(nodes_modes), numbers_of(nodes_splits)
    weights = numbers_of(leaf_weights)
    members = _member_sets([] if membership_values is None else numbers_of(membership_values))
    missing = nodes_missing_value_tracks_true or [0] * len(modes)
    sets = iter(members)
    tests = []
    for i, mode in enumerate(modes):
        feature = x[:, nodes_featureids[i]]
        if mode == _MEMBER:
            test = feature.isin(Tensor(next(sets, []), device, x.dtype))
        else:
            test = _TESTS[mode](feature, splits[i])
        tests.append(test | feature.isnan() if missing[i] else test)
    targets: list[list[Tensor]] = [[] for _ in range(n_targets)]
    for root in tree_roots:
        scores: list[Tensor | None] = [None] * n_targets
        stack: list[tuple[int, Tensor | None]] = [(root, None)]
        visited = 0
        while stack:
            node, way = stack.pop()
            visited += 1
            if visited > len(modes):
                raise OnnxError("a tree with a cycle")
            ends = (
                (nodes_trueleafs[node], nodes_truenodeids[node], tests[node]),
                (nodes_falseleafs[node], nodes_falsenodeids[node], tests[node].logical_not()),
            )
            if ends[0][:2] == ends[1][:2] and ends[0][0]:  # a tree of one leaf
                ends = ((ends[0][0], ends[0][1], Tensor.ones(x.shape[0], dtype=dtypes.bool)),)  # type: ignore[assignment]
            for is_leaf, at, test in ends:
                is_taken = test if way is None else way & test
                if not is_leaf:
                    stack.append((at, is_taken))
                    continue
                old = scores[leaf_targetids[at]]
                scores[leaf_targetids[at]] = is_taken.where(weights[at], 0.0 if old is None else old)
        for k, score in enumerate(scores):
            if score is not None:
                targets[k].append(score.cast(x.dtype))
    columns = [_aggregate(t, aggregate_function, len(tree_roots), x) for t in targets]
    return _transform(columns[0].stack(*columns[1:], dim=1), _TRANSFORMS[post_transform])


def _member_sets(values: list[float]) -> list[list[float]]:
    """Lists that NaNs end."""
    out: list[list[float]] = [[]]
    for v in values:
        if v != v:
            out.append([])
        else:
            out[-1].append(v)
    return out


def _aggregate(scores: list[Tensor], how: int, trees: int, x: Tensor) -> Tensor:
    if not scores:
        return Tensor.zeros(x.shape[0], dtype=x.dtype)
    together = scores[0].stack(*scores[1:])
    if how == 2:
        return together.min(0)
    if how == 3:
        return together.max(0)
    total = together.sum(0)
    return total / trees if how == 0 else total
