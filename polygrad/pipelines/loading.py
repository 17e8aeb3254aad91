"""The files of a model, as they arrive, become the Pipeline of a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from polygrad.errors import ArgumentError, ModelError
from polygrad.hf.arriving import ArrivingModel
from polygrad.hf.instances import HFInstance
from polygrad.hf.load import LoadOptions
from polygrad.onnx.binding import Loading as LoadingOnnx
from polygrad.pipelines.onnx_module import onnx_instance
from polygrad.pipelines.tasks import Pipeline, make_pipeline, task_class

_ONNX_TASKS = {
    "feature-extraction": "text-features",
    "text-classification": "text-classification",
    "fill-mask": "masked-lm",
    "image-classification": "image-classification",
    "zero-shot-image-classification": "image-text",
    "object-detection": "object-detection",
}
_LOADED = ("max_batch", "max_seq_len", "dtype", "device", "quantize")  # options of LoadOptions


class _Arriving(Protocol):
    def feed(self, file: int, piece: bytes) -> bool: ...

    def begin(self, file: int, size: int | None) -> None: ...

    def finish(self) -> HFInstance: ...


class Loading:
    """A model on its way, for `task`. `files`: its small files by name. `weights`: the names of the files
    that are fed, as `ArrivingModel` says; an ONNX file, whose name ends so, is the only one. `options`: those
    of the task, and of `LoadOptions`. Raises ArgumentError, ModelError, OutOfMemoryError."""

    def __init__(
        self,
        task: str,
        files: Mapping[str, bytes],
        weights: Sequence[str],
        options: Mapping[str, Any],
    ) -> None:
        self._task, kind = task, task_class(task)
        loaded = LoadOptions(**{name: options[name] for name in _LOADED if name in options})
        self._options = {name: value for name, value in options.items() if name not in _LOADED}
        self._arriving: _Arriving
        if weights and weights[0].endswith(".onnx"):
            self._arriving = _ArrivingOnnx(task, kind, files, weights, loaded)
        else:
            if task == "object-detection":
                raise ModelError(
                    f"object-detection: no family of models does it here: expected an ONNX file of DETR or "
                    f"YOLOS, got {weights[0] if weights else 'no file'}"
                )
            self._arriving = ArrivingModel(files, weights, loaded)

    def feed(self, file: int, piece: bytes) -> bool:
        """Take the next bytes of a file; whether its header is known."""
        return self._arriving.feed(file, piece)

    def begin(self, file: int, size: int | None) -> None:
        """The next bytes of a file, which has `size` bytes, if that is known, are its first ones."""
        self._arriving.begin(file, size)

    def external(self) -> list[str]:
        """The names of further files, beside the first, that are to be fed after it."""
        return self._arriving.external() if isinstance(self._arriving, _ArrivingOnnx) else []

    def finish(self) -> Pipeline:
        """The model for the task."""
        return make_pipeline(self._task, self._arriving.finish(), self._options)


class _ArrivingOnnx:
    """An ONNX file, and the files of its external data."""

    def __init__(
        self,
        task: str,
        kind: type[Pipeline],
        files: Mapping[str, bytes],
        weights: Sequence[str],
        options: LoadOptions,
    ) -> None:
        if task not in _ONNX_TASKS:
            raise ModelError(
                f"{task}: {weights[0]}: ONNX files are for {', '.join(_ONNX_TASKS)} here: expected "
                "safetensors or GGUF"
            )
        if options.quantize is not None or options.dtype is not None:
            raise ArgumentError("pipeline: quantize and dtype are for safetensors and GGUF, got an ONNX file")
        self._task, self._kind, self._files, self._options = task, kind, files, options
        self._loading = LoadingOnnx(weights[0], options.device)

    def begin(self, file: int, size: int | None) -> None:
        self._loading.begin(file, size)

    def feed(self, file: int, piece: bytes) -> bool:
        return self._loading.feed(file, piece)

    def external(self) -> list[str]:
        return self._loading.external()

    def finish(self) -> HFInstance:
        instance = self._loading.instance()
        task, device = _ONNX_TASKS[self._task], self._options.device
        return onnx_instance(
            self._kind.model_class, task, instance, self._files, device, self._options.max_batch
        )
