"""The rows of the breadth suite: the dense work that people run, a line each. Data only; knows no library.

A row names an operation that every library's table of operations may have (`bench/libraries/ops_*.py`,
`bench/page/ops_*.mjs`, `bench/onnx_ops.py`), the arrays it takes and its attributes. `LACKS` says which
libraries have no such operation, and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

NATIVE = ("numpy", "torch")
PAGE = ("onnxruntime-web", "tfjs-wasm", "jax-js")


@dataclass(frozen=True)
class Operand:
    """An array of numbers in [low, high): a hash of the seed and the position, see `inputs.operand`."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: float = -1.0
    high: float = 1.0


@dataclass(frozen=True)
class Row:
    """One operation; with `gradients` also those of these operands, for a gradient of the output."""

    name: str
    family: str
    op: str
    operands: tuple[Operand, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    gradients: tuple[int, ...] = ()
    threads: tuple[int, ...] = (1,)
    page: bool = True  # whether a peer in the page may have it
    tolerance: float = 1e-3  # of the largest number
    check: str = "elements"  # or "moments", of random numbers

    @property
    def sizes(self) -> dict[str, Any]:
        """What the libraries are told."""
        return {
            "op": self.op,
            "operands": [vars(operand) for operand in self.operands],
            "attributes": self.attributes,
            "gradients": self.gradients,
            "check": self.check,
        }


ROW_FIELDS = ("gradients", "threads", "page", "tolerance", "check")


def family(name: str, *rows: tuple[Any, ...]) -> list[Row]:
    """Rows of (name, op, operands..., attributes); an operand is an Operand or the shape of a float32 one."""
    made = []
    for title, op, *rest in rows:
        settings = dict(rest.pop()) if isinstance(rest[-1], dict) else {}
        fields = {key: settings.pop(key) for key in ROW_FIELDS if key in settings}
        operands = tuple(x if isinstance(x, Operand) else Operand(x) for x in rest)
        made.append(Row(title, name, op, operands, settings, **fields))
    return made


def like(dtype: str, *shape: int, low: float = -1.0, high: float = 1.0) -> Operand:
    return Operand(shape, dtype, low, high)


SQUARE, HALF = (1024, 1024), (512, 512)
IMAGE, IMAGES, CHANNELS = (1, 64, 56, 56), (8, 64, 56, 56), (64,)
FILTER = (64, 64, 3, 3)
HEADS, SEQUENCE = (8, 12, 256, 64), (1, 12, 1024, 64)
SCORES, WIDE = (4096, 1024), (4096, 768)
BIG, ODD, CUBE = (2048, 2048), (1023, 1001), (64, 256, 256)
FLAT, MILLION = (4_194_304,), (1_048_576,)
BYTE, WORD = {"low": 0.0, "high": 256.0}, {"low": 0.0, "high": 4096.0}
INT8, INT32 = like("int8", *HALF, low=-128.0, high=128.0), like("int32", *FLAT, **WORD)
COARSE, EXACT = 2e-2, 0.0  # products in 16 bits; integers

NATIVELY = {"page": False}
TWO = {"threads": (1, 2)}  # one of the rows that stand for all with two threads

# fmt: off
ROWS: list[Row] = [
    *family(
        "product",
        ("NN 1024", "matmul", SQUARE, SQUARE, {**TWO}),
        ("NT 1024", "matmul", SQUARE, SQUARE, {"tb": True, **TWO}),
        ("TN 1024", "matmul", SQUARE, SQUARE, {"ta": True, **TWO}),
        ("TT 1024", "matmul", SQUARE, SQUARE, {"ta": True, "tb": True}),
        ("NN 512", "matmul", HALF, HALF, {**TWO}),
        ("NT 512", "matmul", HALF, HALF, {"tb": True}),
        ("TN 512", "matmul", HALF, HALF, {"ta": True}),
        ("TT 512", "matmul", HALF, HALF, {"ta": True, "tb": True}),
        ("tall 8192×256×64", "matmul", (8192, 256), (256, 64), {**TWO}),
        ("wide 64×256×8192", "matmul", (64, 256), (256, 8192)),
        ("odd 37×1000×129", "matmul", (37, 1000), (1000, 129), {**TWO}),
        ("inner 64×8192×64", "matmul", (64, 8192), (8192, 64)),
        ("few rows 8×4096×1000", "matmul", (8, 4096), (4096, 1000)),
        ("matrix·vector 2048", "matmul", BIG, (2048, 1), {**TWO}),
        ("vector·matrix 2048", "matmul", (1, 2048), BIG, {**TWO}),
        ("batched 96×128×64×128", "matmul", (96, 128, 64), (96, 64, 128), {**TWO}),
        ("batched NT 96×128×64×128", "matmul", (96, 128, 64), (96, 128, 64), {"tb": True}),
        ("float64 512", "matmul", like("float64", *HALF), like("float64", *HALF), {**TWO}),
        ("float16 512", "matmul", like("float16", *HALF), like("float16", *HALF), {"tolerance": COARSE}),
        ("bfloat16 512", "matmul", like("bfloat16", *HALF), like("bfloat16", *HALF),
         {"tolerance": COARSE, "page": False}),
        ("int8 512, int32 sums", "matmul_int8", INT8, INT8, {"tolerance": EXACT, **TWO}),
    ),
    *family(
        "linear",
        ("128×784→512 relu", "linear", (128, 784), (512, 784), (512,), {"activation": "relu", **TWO}),
        ("512×768→3072 gelu", "linear", (512, 768), (3072, 768), (3072,), {"activation": "gelu", **TWO}),
        ("1×1024→1000", "linear", (1, 1024), (1000, 1024), (1000,)),
        ("256×512→512 gelu, gradients", "linear", (256, 512), HALF, (512,),
         {"activation": "gelu", "gradients": (0, 1, 2), **TWO}),
    ),
    *family(
        "convolution",
        ("3×3", "conv", IMAGE, FILTER, {"padding": 1, **TWO}),
        ("3×3 batch 8", "conv", IMAGES, FILTER, {"padding": 1, **TWO}),
        ("3×3 stride 2", "conv", IMAGE, (128, 64, 3, 3), {"padding": 1, "stride": 2, **TWO}),
        ("3×3 stride 2 batch 8", "conv", IMAGES, (128, 64, 3, 3), {"padding": 1, "stride": 2}),
        ("3×3 37→53 odd", "conv", (1, 37, 61, 43), (53, 37, 3, 3), {"padding": 1}),
        ("3×3 256→256 at 14", "conv", (1, 256, 14, 14), (256, 256, 3, 3), {"padding": 1}),
        ("7×7", "conv", (1, 16, 64, 64), (32, 16, 7, 7), {"padding": 3}),
        ("7×7 stride 2", "conv", (1, 3, 224, 224), (64, 3, 7, 7), {"padding": 3, "stride": 2, **TWO}),
        ("7×7 stride 2 batch 8", "conv", (8, 3, 224, 224), (64, 3, 7, 7), {"padding": 3, "stride": 2}),
        ("1×1", "conv", IMAGE, (256, 64, 1, 1), {**TWO}),
        ("1×1 batch 8", "conv", IMAGES, (256, 64, 1, 1)),
        ("depthwise 3×3", "conv", (1, 96, 56, 56), (96, 1, 3, 3), {"padding": 1, "groups": 96, **TWO}),
        ("depthwise 3×3 batch 8", "conv", (8, 96, 56, 56), (96, 1, 3, 3), {"padding": 1, "groups": 96}),
        ("depthwise 3×3 stride 2", "conv", (1, 96, 56, 56), (96, 1, 3, 3),
         {"padding": 1, "stride": 2, "groups": 96}),
        ("depthwise 5×5 stride 2", "conv", (1, 96, 56, 56), (96, 1, 5, 5),
         {"padding": 2, "stride": 2, "groups": 96}),
        ("grouped 3×3", "conv", (1, 128, 28, 28), (128, 4, 3, 3), {"padding": 1, "groups": 32}),
        ("dilated 3×3", "conv", (1, 64, 28, 28), (64, 64, 3, 3), {"padding": 2, "dilation": 2}),
        ("1-D 9", "conv", (1, 64, 4096), (64, 64, 9), {"padding": 4, **TWO}),
        ("transposed 4×4 stride 2", "conv_transpose", (1, 64, 28, 28), (64, 32, 4, 4),
         {"padding": 1, "stride": 2}),
    ),
    *family(
        "convolution gradients",
        ("3×3, weight", "conv_weight_gradient", IMAGE, FILTER, IMAGE, {"padding": 1}),
        ("3×3, input", "conv_input_gradient", IMAGE, FILTER, IMAGE, {"padding": 1}),
        ("3×3 batch 8, weight", "conv_weight_gradient", IMAGES, FILTER, IMAGES, {"padding": 1, **TWO}),
        ("3×3 batch 8, input", "conv_input_gradient", IMAGES, FILTER, IMAGES, {"padding": 1, **TWO}),
        ("3×3 stride 2 batch 8, weight", "conv_weight_gradient", IMAGES, (128, 64, 3, 3), (8, 128, 28, 28),
         {"padding": 1, "stride": 2}),
        ("3×3 stride 2 batch 8, input", "conv_input_gradient", IMAGES, (128, 64, 3, 3), (8, 128, 28, 28),
         {"padding": 1, "stride": 2}),
    ),
    *family(
        "pooling",
        ("max 2×2", "max_pool", IMAGES, {"kernel": 2, "stride": 2, **TWO}),
        ("max 3×3 stride 2", "max_pool", IMAGES, {"kernel": 3, "stride": 2, "padding": 1}),
        ("max 2×2 of 57×57", "max_pool", (8, 64, 57, 57), {"kernel": 2, "stride": 2}),
        ("average 2×2", "avg_pool", IMAGES, {"kernel": 2, "stride": 2}),
        ("global average", "mean", IMAGES, {"axis": (2, 3)}),
        ("max 2×2, gradient", "max_pool", IMAGES, {"kernel": 2, "stride": 2, "gradients": (0,), **TWO}),
        ("average 2×2, gradient", "avg_pool", IMAGES, {"kernel": 2, "stride": 2, "gradients": (0,)}),
    ),
    *family(
        "attention",
        ("8×12×256×64", "attention", HEADS, HEADS, HEADS, {**TWO}),
        ("8×12×256×64 causal", "attention", HEADS, HEADS, HEADS, {"causal": True}),
        ("1×12×1024×64", "attention", SEQUENCE, SEQUENCE, SEQUENCE, {**TWO}),
        ("1×12×1024×64 causal", "attention", SEQUENCE, SEQUENCE, SEQUENCE, {"causal": True}),
        ("8×12×256×64, gradients", "attention", HEADS, HEADS, HEADS, {"gradients": (0, 1, 2), **TWO}),
        ("1×12×1024×64, gradients", "attention", SEQUENCE, SEQUENCE, SEQUENCE, {"gradients": (0, 1, 2)}),
    ),
    *family(
        "reduction",
        ("sum axis 0", "sum", BIG, {"axis": 0, **TWO}),
        ("sum axis 1", "sum", BIG, {"axis": 1, **TWO}),
        ("sum of all", "sum", BIG, {"axis": (0, 1), **TWO}),
        ("sum middle axis", "sum", CUBE, {"axis": 1}),
        ("sum axis 0, 1023×1001", "sum", ODD, {"axis": 0}),
        ("sum axis 1, 1023×1001", "sum", ODD, {"axis": 1}),
        ("mean per channel", "mean", IMAGES, {"axis": (0, 2, 3)}),
        ("max axis 0", "max", BIG, {"axis": 0}),
        ("max axis 1", "max", BIG, {"axis": 1}),
        ("argmax axis 0", "argmax", BIG, {"axis": 0, "tolerance": EXACT}),
        ("argmax axis 1", "argmax", BIG, {"axis": 1, "tolerance": EXACT}),
        ("var axis 0", "var", BIG, {"axis": 0}),
        ("var axis 1", "var", BIG, {"axis": 1, **TWO}),
        ("logsumexp axis 1", "logsumexp", BIG, {"axis": 1}),
        ("logsumexp axis 0", "logsumexp", BIG, {"axis": 0}),
        ("cumsum axis 1", "cumsum", SQUARE, {"axis": 1}),
    ),
    *family(
        "softmax",
        ("softmax", "softmax", SCORES, {"axis": 1, **TWO}),
        ("softmax 1023×1001", "softmax", ODD, {"axis": 1}),
        ("softmax axis 0", "softmax", SQUARE, {"axis": 0}),
        ("softmax, gradient", "softmax", SCORES, {"axis": 1, "gradients": (0,)}),
        ("log_softmax", "log_softmax", SCORES, {"axis": 1}),
        ("log_softmax, gradient", "log_softmax", SCORES, {"axis": 1, "gradients": (0,), **TWO}),
    ),
    *family(
        "normalisation",
        ("batch", "batch_norm", IMAGES, CHANNELS, CHANNELS, {**TWO}),
        ("batch, gradients", "batch_norm", IMAGES, CHANNELS, CHANNELS, {"gradients": (0, 1, 2)}),
        ("layer", "layer_norm", WIDE, (768,), (768,), {**TWO}),
        ("layer, gradients", "layer_norm", WIDE, (768,), (768,), {"gradients": (0, 1, 2), **TWO}),
        ("group", "group_norm", IMAGES, CHANNELS, CHANNELS, {"groups": 8}),
        ("group, gradients", "group_norm", IMAGES, CHANNELS, CHANNELS, {"groups": 8, "gradients": (0, 1, 2)}),
        ("RMS", "rms_norm", WIDE, (768,)),
        ("RMS, gradients", "rms_norm", WIDE, (768,), {"gradients": (0, 1)}),
    ),
    *family(
        "movement",
        ("transpose 2048", "permute", BIG, {"order": (1, 0), **TWO}),
        ("transpose 1023×1001", "permute", ODD, {"order": (1, 0)}),
        ("NCHW→NHWC", "permute", IMAGES, {"order": (0, 2, 3, 1)}),
        ("NHWC→NCHW", "permute", (8, 56, 56, 64), {"order": (0, 3, 1, 2)}),
        ("heads", "permute", (8, 256, 12, 64), {"order": (0, 2, 1, 3)}),
        ("reversed 3-D", "permute", CUBE, {"order": (2, 1, 0)}),
        ("concatenation axis 0", "cat", SQUARE, SQUARE, SQUARE, {"axis": 0}),
        ("concatenation axis 1", "cat", SQUARE, (1024, 333), SQUARE, {"axis": 1, **TWO}),
    ),
    *family(
        "cast",
        ("uint8 image→float NCHW", "normalize_image", like("uint8", 8, 224, 224, 3, **BYTE), {**TWO}),
        ("uint8→float32", "cast", like("uint8", *FLAT, **BYTE), {"to": "float32"}),
        ("int32→float32", "cast", like("int32", *FLAT, **WORD), {"to": "float32"}),
        ("float32→float16", "cast", FLAT, {"to": "float16"}),
        ("float32→int8", "quantize", FLAT, {"tolerance": EXACT}),
        ("int32 comparison, where", "where_less", INT32, INT32, FLAT, FLAT, {**TWO}),
    ),
    *family(
        "elementwise",
        ("add", "add", FLAT, FLAT, {**TWO}),
        ("add row", "add", BIG, (2048,)),
        ("add column", "add", BIG, (2048, 1)),
        ("erf", "erf", FLAT, {**TWO}),
        ("exp-sin-log-tanh", "chain", FLAT, {**TWO}),
        ("sigmoid", "sigmoid", FLAT),
        ("tanh", "tanh", FLAT),
        ("pow", "pow", like("float32", *FLAT, low=0.5, high=2.0), FLAT),
        ("gelu, gradient", "gelu", FLAT, {"gradients": (0,)}),
    ),
    *family(
        "random",
        ("uniform", "rand", {"shape": FLAT, "check": "moments", "tolerance": 5e-3, **TWO}),
        ("normal", "randn", {"shape": FLAT, "check": "moments", "tolerance": 5e-3}),
        ("dropout", "dropout", FLAT, {"check": "moments", "tolerance": 5e-3}),
    ),
    *family(
        "indexing",
        ("rows 8192 of 4096×256", "take_rows", (4096, 256), like("int32", 8192, **WORD), {**TWO}),
        ("rows, gradient", "take_rows", (4096, 256), like("int32", 8192, **WORD), {"gradients": (0,)}),
        ("gather axis 1", "gather", (1024, 4096), like("int32", 1024, 512, **WORD)),
        ("rows 4096 of 50000×256, gradient", "take_rows", (50_000, 256), like("int32", 4096, **WORD),
         {"gradients": (0,), **NATIVELY}),
        ("scatter add 1 M to 4096", "scatter_add", MILLION, like("int32", *MILLION, **WORD),
         {"size": 4096, **TWO}),
        ("write 50 rows of 512×300", "write_rows", (512, 300), like("int32", 50, low=0, high=512), (50, 300),
         {**NATIVELY}),
        ("scatter 50×300 into 512×300", "scatter", (512, 300), like("int32", 50, 300, low=0, high=512),
         (50, 300), {**NATIVELY}),
        ("histogram of 1 M", "histogram", MILLION, {"bins": 256, "tolerance": EXACT, **NATIVELY}),
    ),
    *family(
        "algorithm",
        ("cumsum of 4 M", "cumsum", FLAT, {"axis": 0, "threads": (1, 2), **NATIVELY}),
        ("cumprod axis 1", "cumprod", SCORES, {"axis": 1, **NATIVELY}),
        ("cummax axis 1", "cummax", SCORES, {"axis": 1, **NATIVELY}),
        ("sort 64×4096", "sort", (64, 4096), {**TWO}),
        ("sort 1 M", "sort", MILLION, {**NATIVELY}),
        ("argsort 256×1000", "argsort", (256, 1000)),
        ("topk 8 of 256×4096", "topk", (256, 4096), {"k": 8}),
    ),
]
# fmt: on

CONVOLUTIONS = ("conv", "conv_transpose", "conv_weight_gradient", "conv_input_gradient")
POOLING = ("max_pool", "avg_pool")


def each(ops: Iterable[str], reason: str) -> dict[str, str]:
    return dict.fromkeys(ops, reason)


# Library -> operation -> why it has none; "gradients": rows that ask for them; "convolutions of
# batches": those of several images; a dtype: rows with it.
LACKS: dict[str, dict[str, str]] = {
    "numpy": {
        "gradients": "has no gradients",
        "bfloat16": "has no bfloat16",
        **each(CONVOLUTIONS, "has no convolutions"),
        **each(POOLING, "has no pooling"),
        "erf": "has no erf",
        "topk": "has no topk",
    },
    "torch": {},
    "onnxruntime-web": {
        "gradients": "has no gradients",
        "conv_weight_gradient": "has no gradients",
        "conv_input_gradient": "has no gradients",
        "bfloat16": "computes nothing in bfloat16 on a processor",
    },
    "tfjs-wasm": {
        **each(("float64", "float16", "bfloat16", "int8", "uint8"), "has float32 and int32 only"),
        **each(("matmul_int8", "quantize", "normalize_image"), "has float32 and int32 only"),
        "gather": "gathers whole rows only",
        "conv_weight_gradient": "its WebAssembly backend has no gradients of filters",
    },
    "jax-js": {
        "convolutions of batches": "takes ten seconds and more; its convolutions of one image are measured",
        **each(("float16", "bfloat16", "int8", "uint8"), "its WebAssembly backend has no such dtype"),
        **each(("matmul_int8", "quantize", "normalize_image"), "its WebAssembly backend has no such dtype"),
        "scatter_add": "has no additions at positions",
    },
}


def reason_against(library: str, row: Row, reasons: Mapping[str, dict[str, str]] = LACKS) -> str | None:
    """Why `library` cannot run `row`, if it cannot."""
    lacks = reasons[library]
    if row.op in CONVOLUTIONS and row.operands[0].shape[0] > 1 and "convolutions of batches" in lacks:
        return lacks["convolutions of batches"]
    if row.gradients and "gradients" in lacks:
        return lacks["gradients"]
    dtypes = [x.dtype for x in row.operands] + [row.attributes.get("to")]
    return next((lacks[key] for key in (row.op, *dtypes) if key in lacks), None)
