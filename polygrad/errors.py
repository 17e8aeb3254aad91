"""Every error polygrad raises on purpose.

Each message says the subject, what was expected, what came, and what to do next. A bug of ours is an
`InternalError`, whose message starts with `internal:`.
"""


class PolygradError(RuntimeError):
    """The base of all polygrad errors; a RuntimeError, as programs for torch and tinygrad expect."""


class ShapeError(PolygradError, ValueError):
    """Shapes that do not fit each other or the operation."""


class AxisError(PolygradError, IndexError):
    """An axis (or an index along one) outside the tensor's dimensions."""


class DTypeError(PolygradError, TypeError):
    """An unknown dtype, or one that the operation does not take."""


class ArgumentError(PolygradError, ValueError):
    """An argument of the wrong kind or value."""


class FetchError(PolygradError, OSError):
    """A download that failed, or that is not what was asked for."""


class OverflowError_(PolygradError, OverflowError):
    """A Python integer that does not fit the tensor's dtype."""


class GradientError(PolygradError):
    """A gradient that does not exist: a non-scalar root, an integer leaf, an op without a derivative."""


class LinAlgError(PolygradError, ValueError):
    """A matrix that an operation cannot take: a singular one to invert, say."""


class AnomalyError(PolygradError, FloatingPointError):
    """A NaN, in a result or in a gradient, found because somebody looked for it."""


class DeviceError(PolygradError):
    """A device that is unknown or not available on this host; says what to install."""


class OutOfMemoryError(PolygradError, MemoryError):
    """A device's memory cannot hold the allocation."""


class InterruptedWriteError(PolygradError):
    """Memory whose contents are lost: a run that was interrupted twice, or failed, has written a part of
    it."""


class RunTimeoutError(PolygradError, TimeoutError):
    """A run that has not ended within its time, and was ended."""


class CompileError(PolygradError):
    """A backend rejected a kernel, or the target cannot express it."""


class OptError(PolygradError, ValueError):
    """A decision of how to compute a kernel that does not apply to it."""


class ProgramError(PolygradError, ValueError):
    """Bytes that are not a Program of this version, or bindings that do not fit it."""


class SignatureError(PolygradError, ValueError):
    """A file that was not signed by the key that was asked for."""


class OnnxError(PolygradError, ValueError):
    """A damaged ONNX file, an op that does not exist here, or a node whose inputs do not fit."""


class ModelError(PolygradError, ValueError):
    """A configuration, a checkpoint or a tokenizer that is damaged, contradicts itself, or is of a kind that
    does not exist here.
    """


class CaptureError(PolygradError):
    """A captured function that does what a replay cannot, or a replay with other arguments than the
    captured.
    """


class DistributedError(PolygradError):
    """Several processes that do not work together: an engine that is missing, or one that reports an
    error."""


class RankError(DistributedError):
    """Another process that has ended, does not answer, or does something else. `ranks`: its number, or
    theirs."""

    def __init__(self, message: str, ranks: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.ranks = ranks


class InternalError(PolygradError, AssertionError):
    """A bug in polygrad."""

    def __init__(self, message: str) -> None:
        super().__init__(message if message.startswith("internal:") else f"internal: {message}")
