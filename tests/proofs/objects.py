"""Calls of what is no method of Tensor: layers, optimizers, schedules, initialisers, states, dtypes."""

from __future__ import annotations

from proofs.calls import Calls
from tensor.tables.rows import floats, given, ints

LAYERS, OPTIMIZERS, SCHEDULERS, INITIALISERS, STATES, DTYPES, PACKAGE = (Calls() for _ in range(7))


def layer(
    names: str, arguments: str, *inputs: object, more: str = "", place: str = "", tolerance: float = 1e-4
) -> None:
    """A layer made with `arguments`: its outputs in training and not, its gradients, and how it starts."""
    for expression in (
        f"=kit.layer(f({arguments}), x{more})", f"=kit.layer(f({arguments}), x{more}, training=False)",
        f"=kit.slopes(f({arguments}), x{more})",
    ):  # fmt: skip
        LAYERS.add(names, expression, *inputs, place=place, tolerance=tolerance)  # type: ignore[arg-type]


layer("Linear", "4, 3", floats(2, 4), floats(2, 5, 4), floats(4))
layer("Linear", "4, 3, bias=False", floats(2, 4))
layer("Conv1d", "4, 6, 3, padding=1", floats(2, 4, 7))
layer("Conv2d", "4, 6, 3", floats(2, 4, 5, 6))
layer("Conv2d", "4, 6, 3, stride=2, padding=1, groups=2", floats(2, 4, 5, 6))
layer("Conv2d", "4, 6, (3, 2), 1, 1, 1, 2, False", floats(2, 4, 5, 6))
layer("Conv3d", "2, 3, 2", floats(1, 2, 4, 3, 5))
layer("ConvTranspose1d", "4, 3, 3, stride=2", floats(2, 4, 5))
layer("ConvTranspose2d", "4, 3, 3, stride=2, padding=1, output_padding=1", floats(2, 4, 4, 5))
layer("ConvTranspose3d", "2, 3, 2", floats(1, 2, 3, 2, 4))
layer("Bilinear", "3, 4, 2", (floats(5, 3), floats(5, 4)), more=", y")
layer("Embedding", "5, 3", ints(2, 4, low=0, high=4, dtype="int64"))
layer("LayerNorm", "4", floats(2, 3, 4))
layer("LayerNorm", "(3, 4), eps=0.1", floats(2, 3, 4))
layer("LayerNorm2d", "3", floats(2, 3, 4, 5))
layer("RMSNorm", "4", floats(2, 3, 4), place="torch")
layer("RMSNorm", "4", floats(2, 3, 4), place="tinygrad")
layer("GroupNorm", "2, 4", floats(3, 4, 5))
layer("GroupNorm", "2, 4, affine=False", floats(3, 4, 5, 2))
layer("InstanceNorm", "4", floats(3, 4, 5))
layer("BatchNorm BatchNorm2d", "3", floats(4, 3, 2, 5))
layer("BatchNorm2d", "3, eps=0.1, affine=False, momentum=0.3", floats(4, 3, 2, 5))
layer("BatchNorm3d", "3", floats(4, 3, 2, 2, 3))
layer("LSTMCell", "3, 4", floats(2, 3))
layer("LSTM", "3, 4", floats(5, 2, 3))
layer("LSTM", "3, 4, num_layers=2, batch_first=True, bidirectional=True", floats(2, 5, 3))
layer("GRU", "3, 4", floats(5, 2, 3))
layer("GRU", "3, 4, 2", floats(5, 2, 3))
layer(
    "MultiheadAttention",
    "4, 2, batch_first=True",
    (floats(2, 3, 4), floats(2, 5, 4), floats(2, 5, 4)),
    more=", y, z",
)
LAYERS.add("Linear", "=kit.initial(f(100, 200))")
LAYERS.add("Conv1d", "=kit.initial(f(40, 50, 5))")
LAYERS.add("Conv2d ConvTranspose2d", "=kit.initial(f(30, 30, 5))")
LAYERS.add("Conv3d", "=kit.initial(f(16, 16, 4))")
LAYERS.add("Embedding", "=kit.initial(f(200, 100))")
LAYERS.add("LayerNorm BatchNorm BatchNorm2d LayerNorm2d", "=kit.initial(f(8))")
LAYERS.add("GroupNorm", "=kit.initial(f(2, 8))")
LAYERS.add("LSTMCell", "=kit.initial(f(50, 50))")
LAYERS.add("LSTM GRU", "=kit.initial(f(50, 50))")
LAYERS.add("Bilinear", "=kit.initial(f(20, 20, 20))")
LAYERS.add("MultiheadAttention", "=kit.initial(f(64, 4))")

# --- optimizers: the peer's defaults, and each argument
for _name, _calls in {
    "SGD": ("lr=0.1", "lr=0.1, momentum=0.9", "lr=0.1, momentum=0.9, nesterov=True", "lr=0.1, weight_decay=0.1"),
    "Adam": ("", "lr=0.1", "lr=0.1, eps=0.01"),
    "AdamW": ("", "lr=0.1", "lr=0.1, weight_decay=0.2"),
    "NAdam RAdam Adamax": ("", "lr=0.1"),
    "Adagrad Adadelta RMSprop Rprop ASGD": ("", "lr=0.1"),
    "RMSprop": ("lr=0.1, alpha=0.9, momentum=0.5", "lr=0.1, centered=True"),
    "Muon": ("lr=0.1", ""),
    "LARS LAMB": ("lr=0.1",),
}.items():  # fmt: skip
    OPTIMIZERS.add(_name, tuple(f"=kit.optimised(f, {a})" for a in _calls), tolerance=5e-4)
OPTIMIZERS.add("SGD Adam AdamW Adagrad RMSprop", "=kit.optimised(f, 0.05)", tolerance=5e-4)
OPTIMIZERS.add("Adam AdamW", "=kit.optimised(f, 0.05, (0.8, 0.9))", place="torch", tolerance=5e-4)
OPTIMIZERS.add("Adam AdamW", "=kit.optimised(f, 0.05, 0.8, 0.9, 0.01)", place="tinygrad", tolerance=5e-4)
OPTIMIZERS.add("Optimizer OptimizerGroup", "=f.__name__")

for _name, _texts in {
    "StepLR": ("3", "2, 0.5", "step_size=3, gamma=0.3"),
    "MultiStepLR": ("[2, 5]", "milestones=[1, 4], gamma=0.5"),
    "ExponentialLR": ("0.9", "gamma=0.5"),
    "CosineAnnealingLR": ("5", "T_max=4, eta_min=0.1"),
    "LinearLR": ("", "start_factor=0.5, total_iters=3", "start_factor=1.0, end_factor=0.1, total_iters=4"),
    "ConstantLR": ("", "factor=0.25, total_iters=4"),
    "PolynomialLR": ("total_iters=4", "total_iters=6, power=2.0"),
    "CosineAnnealingWarmRestarts": ("3", "2, T_mult=2, eta_min=0.01"),
    "CyclicLR": ("0.1, 0.5, 3, 2, 'triangular2'",),
    "LambdaLR": ("lambda i: 0.9**i",),
    "MultiplicativeLR": ("lambda i: 0.9 if i % 3 else 1.5",),
    "OneCycleLR": ("max_lr=1.0, total_steps=10", "max_lr=1.0, total_steps=9, pct_start=0.5, anneal_strategy='linear'"),
}.items():  # fmt: skip
    SCHEDULERS.add(_name, tuple(f"=kit.scheduled(f, {a})" for a in _texts))
SCHEDULERS.add("SequentialLR ChainedScheduler LRScheduler", "=f.__name__")

# --- initialisers
_zeros = floats(4, 3)
INITIALISERS.add("constant_", "=f(x.detach(), 0.3)", _zeros)
INITIALISERS.add("ones_ zeros_ eye_", "=f(x.detach())", _zeros)
INITIALISERS.add("dirac_", ("=f(x.detach())", "=f(x.detach(), 2)"), floats(4, 2, 3, 3))
INITIALISERS.add(
    "calculate_gain", tuple(f"=f({a!r})" for a in ("linear", "relu", "tanh", "sigmoid", "selu", "leaky_relu"))
)
INITIALISERS.add("calculate_gain", "=f('leaky_relu', 0.3)")
_large = given([[1.0] * 100] * 150)
INITIALISERS.add(
    "uniform_ normal_ trunc_normal_ xavier_normal_ xavier_uniform_ kaiming_normal_ kaiming_uniform_",
    "=moments(f(x.detach()))",
    _large,
)
INITIALISERS.add("uniform_", "=moments(f(x.detach(), -1.0, 0.5))", _large)
INITIALISERS.add("normal_ trunc_normal_", "=moments(f(x.detach(), 0.5, 0.3))", _large)
INITIALISERS.add("xavier_normal_ xavier_uniform_", "=moments(f(x.detach(), 3.0))", _large)
INITIALISERS.add(
    "kaiming_normal_ kaiming_uniform_",
    (
        "=moments(f(x.detach(), 0.5))",
        "=moments(f(x.detach(), mode='fan_out'))",
        "=moments(f(x.detach(), nonlinearity='relu'))",
    ),
    _large,
)
INITIALISERS.add("orthogonal_", "=(lambda q: q @ q.T)(f(x.detach()))", floats(3, 5), tolerance=1e-4)
INITIALISERS.add("sparse_", "=[int(n) for n in (f(x.detach(), 0.25) == 0).sum(0).tolist()]", floats(8, 5))

# --- states and files
_two = (floats(2, 3), ints(4))
STATES.add(
    "get_state_dict",
    (
        "=[(k, tuple(t.shape)) for k, t in f(kit.model()).items()]",
        "=list(f(kit.model(), 'a.b.').keys())",
        "=list(f(kit.model()).values())",
    ),
)
STATES.add("get_parameters", ("=f(kit.model())", "=len(f([kit.model(), 3, None]))"))
STATES.add("load_state_dict", ("=kit.loaded(f)", "=kit.loaded(lambda m, s: f(m, s, verbose=False))"))
STATES.add(
    "safe_save",
    "=kit.in_a_folder(lambda p: (f({'a': x, 'b': y}, str(p)), kit.safetensors(p))[1])",
    _two,
    gradient=False,
)
STATES.add(
    "safe_load",
    "=kit.in_a_folder(lambda p: [t.to(x.device) + 0 for t in f(str(kit.safe_file(p))).values()])",
    floats(1),
    gradient=False,
)
STATES.add(
    "safe_load", "=kit.in_a_folder(lambda p: list(f(str(kit.safe_file(p)))))", floats(1), gradient=False
)
STATES.add(
    "torch_load",
    "=kit.in_a_folder(lambda p: [t.to(x.device) + 0 for t in f(str(kit.torch_file(p))).values()])",
    floats(1),
    gradient=False,
)
STATES.add(
    "tar_extract zip_extract",
    "=kit.in_a_folder(lambda p: [bytes(t.tolist()) for t in f(str(kit.archive(p, f.__name__[:3]))).values()])",
)
STATES.add(
    "TensorIO",
    ("=f(x).read()", "=(lambda i: (i.read(3), i.tell(), i.seek(10), i.read(4)))(f(x))"),
    ints(30, low=0, high=255, dtype="uint8"),
)

# --- dtypes
for _name in ("bool", "char", "double", "float", "float16", "float32", "float64", "half", "int", "int16", "int32", "int64", "int8",
              "long", "short", "uchar", "uint", "uint16", "uint32", "uint64", "uint8", "ulong", "ushort", "bfloat16",
              "fp8e4m3", "fp8e5m2", "default_float", "default_int"):  # fmt: skip
    DTYPES.add(_name, "=(f.itemsize, Tensor([1]).cast(f).dtype == f, Tensor([1]).cast(f).element_size())")
DTYPES.add("void", "=f.itemsize")
DTYPES.add(
    "is_bool is_float is_int is_unsigned",
    "=[bool(f(d)) for d in (dt.bool, dt.int8, dt.uint8, dt.int64, dt.float16, dt.float32, dt.float64)]",
)
DTYPES.add("from_py", ("=f(True)", "=f(3)", "=f(2.5)", "=f([1, 2.5])"))
DTYPES.add("finfo", ("=f(dt.float32)", "=f(dt.float16)", "=f(dt.float64)"))
DTYPES.add("floats ints uints sints fp8s all", "=sorted(str(d.itemsize) for d in f)")

# --- the package
PACKAGE.add(
    "Tensor",
    (
        "=f([1.0, 2.0]) * 2",
        "=f(3) + make(np.zeros(1, 'int32'))",
        "=f([[1, 2], [3, 4]])",
        "=f([True, False])",
        "=f(2.5) + make(np.zeros(1, 'float32'))",
        "=f([])",
        "=f([1, 2.5])",
        "=f([1, 2], dtype=dt.float16)",
        "=f(np.arange(4))",
        "=f(b'abc')",
    ),
)
PACKAGE.add("dtypes", "=f.default_float")
PACKAGE.add("getenv", ("=f('NO_SUCH_VARIABLE')", "=f('NO_SUCH_VARIABLE', 3)", "=f('NO_SUCH_VARIABLE', 'a')"))
PACKAGE.add("Context", "=[type(f(DEBUG=0)).__enter__ is not None, f(DEBUG=0).__exit__ is not None]")
PACKAGE.add("GlobalCounters", "=(f.reset(), f.kernel_count)")
PACKAGE.add("Device", "=(isinstance(f.DEFAULT, str), f[f.DEFAULT] is not None)")
PACKAGE.add("Variable", ("=f('n', 1, 10).bind(3).unbind()[1]", "=(f('n', 1, 10).vmin, f('n', 1, 10).vmax)"))
PACKAGE.add(
    "TinyJit",
    "=[(lambda j: [j(make(np.full(3, i, 'float32'))) for i in range(4)])(f(lambda t: (t * 2 + 1).realize()))[i].tolist() for i in (0, 1, 2, 3)][3]",
)
PACKAGE.add("UOp", "=sorted(op.name for op in type(f.sink().op))")
