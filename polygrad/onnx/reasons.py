"""The reasons why ONNX ops are not in the table, for errors about them and for the list in `docs/onnx.md`."""

from __future__ import annotations

_MAP = "a map is no tensor, nor made of tensors"
_CLASSIC = "of exported scikit-learn models alone; LinearRegressor and TreeEnsemble are here"

REASONS: dict[tuple[str, str], str] = {
    ("", "ImageDecoder"): "image formats (JPEG, PNG, WebP, ...) need decoders that Python does not have",
    ("ai.onnx.ml", "CastMap"): _MAP,
    ("ai.onnx.ml", "CategoryMapper"): "LabelEncoder has taken its place",
    ("ai.onnx.ml", "DictVectorizer"): _MAP,
    ("ai.onnx.ml", "LinearClassifier"): _CLASSIC,
    ("ai.onnx.ml", "OneHotEncoder"): _CLASSIC,
    ("ai.onnx.ml", "SVMClassifier"): _CLASSIC,
    ("ai.onnx.ml", "SVMRegressor"): _CLASSIC,
    ("ai.onnx.ml", "TreeEnsembleClassifier"): "deprecated: TreeEnsemble has taken its place",
    ("ai.onnx.ml", "TreeEnsembleRegressor"): "deprecated: TreeEnsemble has taken its place",
    ("ai.onnx.ml", "ZipMap"): _MAP,
}
