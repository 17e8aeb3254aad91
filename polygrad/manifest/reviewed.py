"""What the manifest says that the package's signatures do not: reviewed by people, checked by tests.

Types are written in a small vocabulary (`TYPES`), alternatives joined by ` | `. Keys are ids: `Tensor.add`,
`nn.Linear.weight`; of arguments `Tensor.pool(k)`, or `(k)` wherever an argument is called that.
"""

from __future__ import annotations

# The vocabulary. Quoted words are themselves: 'mean'.
TYPES = {
    "None": "nothing",
    "bool": "true or false",
    "int": "an integer",
    "float": "a number",
    "str": "text",
    "scalar": "a bool, an integer or a number",
    "size": "an integer, or a symbolic one (a Variable)",
    "ints": "a sequence of integers",
    "sizes": "a sequence of sizes",
    "pairs": "a sequence of (before, after) or (low, high), or None for an axis that stays",
    "dtype": "a dtype, by its name",
    "device": "a device, by its name",
    "data": "a scalar, nested sequences of them, an array, or a Tensor",
    "operand": "a Tensor, a scalar, or nested sequences of scalars",
    "index": "what stands between brackets: integers, slices, `...`, None, Tensors, sequences of integers",
    "Tensor": "a Tensor",
    "Tensors": "a sequence of Tensors",
    "layers": "a sequence of functions of one Tensor",
    "model": "an object with Tensors in it",
    "callback": "a function",
    "state_dict": "Tensors by name",
    "strings": "text by name",
    "bytes": "the bytes of a file, or its path",
    "path": "the path of a file",
    "Optimizer": "an optimizer",
    "Optimizers": "a sequence of optimizers",
    "any": "anything",
}

# Annotations as they are written in the source, in that vocabulary.
ANNOTATIONS = {
    "bool": "bool",
    "bool | None": "bool | None",
    "int": "int",
    "int | None": "int | None",
    "float": "float",
    "str": "str",
    "str | None": "str | None",
    "Self": "Tensor",
    "Self | None": "Tensor | None",
    "Tensor": "Tensor",
    "Sequence[Tensor]": "Tensors",
    "Axes": "int | ints | None",
    "int | Sequence[int]": "int | ints",
    "int | tuple[int, ...]": "int | ints",
    "int | tuple[int, ...] | None": "int | ints | None",
    "int | tuple[int, ...] | str": "int | ints | 'same' | 'valid'",
    "tuple[int, ...]": "ints",
    "tuple[Sint, ...]": "sizes",
    "Literal['trunc', 'floor'] | None": "'trunc' | 'floor' | None",
    "Sequence[tuple[Sint, Sint] | None]": "pairs",
    "Mapping[str, Tensor]": "state_dict",
    "Callable[..., Any]": "callback",
    "str | os.PathLike[str] | None": "path | None",
    "Optimizer": "Optimizer",
    "Optimizer | OptimizerGroup": "Optimizer",
}

# Arguments that are annotated Any, or str where only some words will do.
ARGUMENTS = {
    "(dtype)": "dtype | None",
    "(device)": "device | None",
    "(x)": "operand",
    "(y)": "operand",
    "(other)": "operand",
    "(shape)": "sizes",
    "(stride)": "int | ints | None",
    "(dilation)": "int | ints",
    "(value)": "scalar",
    "(fill_value)": "scalar",
    "(min_)": "operand | None",
    "(max_)": "operand | None",
    "(reduction)": "'mean' | 'sum' | 'none'",
    "(model)": "model",
    "(obj)": "model",
    "Tensor(data)": "data",
    "Tensor.arange(start)": "size | float",
    "Tensor.arange(stop)": "size | float | None",
    "Tensor.arange(step)": "int | float",
    "Tensor.assign(x)": "data",
    "Tensor.bitcast(dtype)": "dtype",
    "Tensor.cast(dtype)": "dtype",
    "Tensor.einsum(operands)": "Tensor",
    "Tensor.expand(args)": "size",
    "Tensor.expand(shape)": "sizes | size",
    "Tensor.flip(args)": "int",
    "Tensor.flip(axis)": "int | ints",
    "Tensor.gelu(approximate)": "'tanh' | 'none'",
    "Tensor.is_class(num_classes)": "size",
    "Tensor.lerp(weight)": "operand",
    "Tensor.masked_fill(value)": "operand",
    "Tensor.meshgrid(indexing)": "'ij' | 'xy'",
    "Tensor.pad(mode)": "'constant' | 'reflect' | 'replicate' | 'circular'",
    "Tensor.pad(padding)": "pairs | ints",
    "Tensor.pad_to(args)": "size | None",
    "Tensor.pad_to(shape)": "sizes | size | None",
    "Tensor.permute(args)": "int",
    "Tensor.permute(order)": "int | ints",
    "Tensor.randint(dtype)": "dtype",
    "Tensor.randperm(dtype)": "dtype",
    "Tensor.repeat(args)": "size",
    "Tensor.repeat(repeats)": "sizes | size",
    "Tensor.reshape(args)": "size | None",
    "Tensor.reshape(shape)": "sizes | size | None",
    "Tensor.roll(shifts)": "size | sizes",
    "Tensor.scatter(reduce)": "'add' | 'multiply' | None",
    "Tensor.scatter(src)": "Tensor | scalar",
    "Tensor.scatter_reduce(reduce)": "'sum' | 'prod' | 'mean' | 'amax' | 'amin'",
    "Tensor.sequential(ll)": "layers",
    "Tensor.split(sizes)": "size | sizes",
    "Tensor.shrink_to(args)": "size | None",
    "Tensor.shrink_to(shape)": "sizes | size | None",
    "Tensor.view(args)": "size | None",
    "Tensor.view(shape)": "sizes | size | None",
    "Tensor.__getitem__(indices)": "index",
    "Tensor.__setitem__(indices)": "index",
    "Tensor.__setitem__(v)": "operand",
    "nn.Conv2d(stride)": "int | ints",
    "nn.LayerNorm(normalized_shape)": "int | ints",
    "nn.optim.OptimizerGroup(optimizers)": "Optimizers",
    "nn.state.safe_load(data)": "bytes",
    "nn.state.safe_load_metadata(data)": "bytes",
    "nn.state.safe_save(metadata)": "strings | None",
    "TinyJit.__call__(args)": "any",
    "compile_step(inputs)": "data",
    "compile_step(opt)": "Optimizer",
    "CompiledStep.run(inputs)": "data",
}

# Arguments that only Python can give.
HOST_ARGUMENTS = {"nn.state.get_state_dict(tensor_type)"}

# A shape that is given as one sequence or as arguments.
SHAPE_ARGUMENTS = "sizes | size"

_LIKE = ("dtype", "device", "requires_grad")
# What `**kwargs` stands for: the names of keyword arguments.
KEYWORDS = {
    "Tensor.empty": _LIKE,
    "Tensor.empty_like": _LIKE,
    "Tensor.full_like": _LIKE,
    "Tensor.glorot_uniform": _LIKE,
    "Tensor.kaiming_normal": _LIKE,
    "Tensor.kaiming_uniform": _LIKE,
    "Tensor.linspace": ("device", "requires_grad"),
    "Tensor.normal": ("device", "dtype"),
    "Tensor.ones": _LIKE,
    "Tensor.ones_like": _LIKE,
    "Tensor.rand_like": _LIKE,
    "Tensor.randint": ("device", "requires_grad"),
    "Tensor.randn": ("device",),
    "Tensor.randn_like": ("device", "requires_grad"),
    "Tensor.randperm": ("requires_grad",),
    "Tensor.scaled_uniform": _LIKE,
    "Tensor.uniform": ("device",),
    "Tensor.zeros": _LIKE,
    "Tensor.zeros_like": _LIKE,
    "TinyJit.__call__": (),
}

# What a callable returns, where its annotation says too little. See `inspection.result_of`.
RESULTS = {
    "Tensor.item": "value: scalar",
    "Tensor.nbytes": "value: int",
    "Tensor.numel": "value: int",
    "Tensor.numpy": "host",
    "Tensor.data": "value: bytes",
    "Tensor.size": "value: int | ints",
    "Tensor.test": "context",
    "Tensor.tolist": "value: any",
    "Tensor.gradient": "tensors: arguments",
    "Tensor.meshgrid": "tensors: arguments + 1",
    "Tensor.dtype": "value: dtype",
    "Tensor.shape": "value: ints",
    "Tensor.device": "value: device",
    "nn.optim.Adam": "object: nn.optim.AdamW",
    "nn.optim.OptimizerGroup.__getitem__": "object: nn.optim.Optimizer",
    "nn.state.get_state_dict": "state_dict",
    "nn.state.safe_load": "state_dict",
    "nn.state.safe_load_metadata": "value: any",
    "nn.state.safe_save": "value: bytes",
    "compile_step": "object: CompiledStep",
    "CompiledStep.run": "tree",
    "CompiledStep.program": "host",
    "TinyJit.__call__": "tree",
    "TinyJit.program": "host",
    "Variable.bind": "object: Variable",
    "Device.DEFAULT": "value: device",
    "Device.available": "value: strings",
    "Device.canonical": "value: device",
    "Device.backend": "host",
    "Device.__getitem__": "host",
}

# Callables that return the object they are called on.
RETURNS_SELF = {
    "Tensor.assign",
    "Tensor.backward",
    "Tensor.contiguous_backward",
    "Tensor.is_param_",
    "Tensor.realize",
    "Tensor.replace",
    "Tensor.requires_grad_",
    "Tensor.to_",
}

# Callables that wait for a device, or copy from it: a binding may have to make them asynchronous.
READS = {
    "CompiledStep.loss_value",
    "Tensor.data",
    "Tensor.item",
    "Tensor.numpy",
    "Tensor.tolist",
    "nn.state.safe_save",
}

# Attributes that are no properties, of the instances of a class, in order. `X if flag`: where the argument
# `flag` of the constructor was true.
ATTRIBUTES = {
    "Tensor": {
        "grad": "Tensor | None",
        "requires_grad": "bool | None",
        "uop": "host",
        "training": "static bool",
    },
    "nn.Linear": {"weight": "Tensor", "bias": "Tensor if bias"},
    "nn.Conv2d": {
        "kernel_size": "ints",
        "stride": "int | ints",
        "dilation": "int | ints",
        "groups": "int",
        "padding": "int | ints",
        "weight": "Tensor",
        "bias": "Tensor if bias",
    },
    "nn.BatchNorm": {
        "eps": "float",
        "track_running_stats": "bool",
        "momentum": "float",
        "weight": "Tensor if affine",
        "bias": "Tensor if affine",
        "num_batches_tracked": "Tensor",
        "running_mean": "Tensor if track_running_stats",
        "running_var": "Tensor if track_running_stats",
    },
    "nn.LayerNorm": {
        "normalized_shape": "ints",
        "eps": "float",
        "axis": "ints",
        "weight": "Tensor if elementwise_affine",
        "bias": "Tensor if elementwise_affine",
    },
    "nn.RMSNorm": {"eps": "float", "weight": "Tensor if elementwise_affine"},
    "nn.GroupNorm": {
        "num_groups": "int",
        "num_channels": "int",
        "eps": "float",
        "weight": "Tensor if affine",
        "bias": "Tensor if affine",
    },
    "nn.Embedding": {"vocab_sz": "int", "embed_sz": "int", "weight": "Tensor"},
    "nn.optim.Optimizer": {"params": "Tensors", "buffers": "Tensors", "device": "device", "lr": "Tensor"},
    "nn.optim.SGD": {
        "momentum": "float",
        "weight_decay": "float",
        "nesterov": "bool",
        "classic": "bool",
        "b": "Tensors",
    },
    "nn.optim.AdamW": {
        "b1": "float",
        "b2": "float",
        "eps": "float",
        "weight_decay": "float",
        "b1_t": "Tensor",
        "b2_t": "Tensor",
        "m": "Tensors",
        "v": "Tensors",
    },
    "nn.optim.OptimizerGroup": {"optimizers": "host", "params": "Tensors"},
    "TinyJit": {},
    "CompiledStep": {},
}

# Classes by another name.
ALIASES = {"nn.BatchNorm2d": "nn.BatchNorm", "nn.BatchNorm3d": "nn.BatchNorm"}

# Special methods that a binding spells in its own way; all others are Python's operators.
SPECIAL_METHODS = ("__call__", "__getitem__", "__setitem__")
