"""Random programs of views, reads and writes, and a model that says what they do.

The model: memory is a flat list; a Tensor is an array of positions in it, on which movement ops are done
as on any array; a read is `memory[positions]`, a write `memory[positions] = values`; what is computed is
memory of its own. A program is a list of steps, plain data, so that the same steps run on Tensors and on
models, at once or captured. Works without numpy and hypothesis: the same programs run inside Pyodide.
"""

from __future__ import annotations

import math
import random
import struct
from dataclasses import dataclass

from plain import Plain, assert_same, wrapped

from polygrad import Tensor, TinyJit, compile_step, dtypes, nn

SHAPES = ((4,), (6,), (2, 3), (3, 4), (2, 2, 3), (1, 4), ())
INPLACE = ("+", "-", "*", "//", "%", "**", "&", "|", "^", "<<", ">>")


# --- the model


def _bits(value, dtype):
    """A number of a 4-byte dtype as the int32 with its bits."""
    if dtype == "float32":
        return struct.unpack("<i", struct.pack("<f", value))[0]
    return wrapped(int(value), dtypes.int32)


def _number(bits, dtype):
    if dtype == "float32":
        return struct.unpack("<f", struct.pack("<i", bits))[0]
    return wrapped(bits, dtypes.uint32) if dtype == "uint32" else bits


@dataclass
class Model:
    """`positions` (a Plain) in `memory`, a list of int32s, shown as `dtype`."""

    memory: list
    positions: Plain
    dtype: str = "int32"

    @property
    def shape(self):
        return self.positions.shape

    def read(self):
        return Plain(self.shape, [_number(self.memory[p], self.dtype) for p in self.positions.elements])

    def write(self, values):
        for position, value in zip(self.positions.elements, values.elements, strict=True):
            self.memory[position] = _bits(value, self.dtype)

    def view(self, positions):
        return Model(self.memory, positions, self.dtype)


def value(plain, dtype="int32"):
    """A computed value: memory of its own."""
    return Model(
        [_bits(x, dtype) for x in plain.elements], Plain(plain.shape, range(len(plain.elements))), dtype
    )


def _sliced(plain, index):
    """numpy's basic indexing, for ints and slices, one for each axis."""
    axes = [
        [i % n] if isinstance(i, int) else list(range(n))[i] for i, n in zip(index, plain.shape, strict=True)
    ]
    full = plain._from(
        [len(a) for a in axes], lambda at: tuple(axis[k] for axis, k in zip(axes, at, strict=True))
    )
    return full.reshape([len(a) for a, i in zip(axes, index, strict=True) if not isinstance(i, int)])


# --- steps: what each does to Tensors, and to models

VIEWS = {
    "reshape": (lambda t, a: t.reshape(a), lambda p, a: p.reshape(a)),
    "permute": (lambda t, a: t.permute(a), lambda p, a: p.permute(a)),
    "flip": (lambda t, a: t.flip(a), lambda p, a: p.flip(a)),
    "expand": (lambda t, a: t.expand(a), lambda p, a: p.expand(a)),
    "shrink": (lambda t, a: t.shrink(a), lambda p, a: p.shrink(a)),
    "index": (lambda t, a: t[a], _sliced),
    "detach": (lambda t, a: t.detach(), lambda p, a: p),
}


def _ints(fn):
    return lambda a, b: a.map(lambda x, y: wrapped(fn(x, y), dtypes.int32), b)


COMPUTED = {
    "copy": (lambda a, b: a + 0, lambda a, b: a),
    "clone": (lambda a, b: a.clone(), lambda a, b: a),
    "add": (lambda a, b: a + b, _ints(lambda x, y: x + y)),
    "fma": (lambda a, b: a * 3 - b, _ints(lambda x, y: x * 3 - y)),
    "total": (lambda a, b: a + b.sum(), lambda a, b: _ints(lambda x, y: x + y)(a, b.sum())),
    "first": (
        lambda a, b: a.sum(0, keepdim=True).expand(a.shape) + 0 if a.ndim else a + 0,
        lambda a, b: a.sum((0,), True).expand(a.shape) if a.shape else a,
    ),
    "turned": (
        lambda a, b: a.flip(tuple(range(a.ndim))) - b,
        lambda a, b: _ints(lambda x, y: x - y)(a.flip(tuple(range(len(a.shape)))), b),
    ),
    "other": (lambda a, b: b, lambda a, b: b),
    "constant": (lambda a, b: a.full_like(7), lambda a, b: a.map(lambda x: 7)),
}

_OPERATORS = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, "//": lambda x, y: x // y,
    "%": lambda x, y: x % y, "**": lambda x, y: x**y, "&": lambda x, y: x & y, "|": lambda x, y: x | y,
    "^": lambda x, y: x ^ y, "<<": lambda x, y: x << y, ">>": lambda x, y: x >> y,
}  # fmt: skip


def _update(t, operator, x):
    match operator:
        case "+":
            t += x
        case "-":
            t -= x
        case "*":
            t *= x
        case "//":
            t //= x
        case "%":
            t %= x
        case "**":
            t **= x
        case "&":
            t &= x
        case "|":
            t |= x
        case "^":
            t ^= x
        case "<<":
            t <<= x
        case ">>":
            t >>= x
    return t


def on_tensors(step, env, device):
    """Carry a step out; `env` maps names to Tensors."""
    match step:
        case ("data", out, shape, elements):
            env[out] = Tensor(list(elements), device=device, dtype="int32").reshape(shape)
        case ("constant", out, shape, x):
            env[out] = Tensor.full(shape, x, dtype="int32", device=device)
        case ("ramp", out, n):
            env[out] = Tensor.arange(n, dtype="int32", device=device)
        case ("view", out, of, kind, argument):
            env[out] = VIEWS[kind][0](env[of], argument)
        case ("bitcast", out, of, dtype):
            env[out] = env[of].bitcast(dtype)
        case ("compute", out, kind, a, b):
            env[out] = COMPUTED[kind][0](env[a], env[b]) if kind != "other" else env[b] + 0
        case ("assign", to, kind, b):
            env[to].assign(COMPUTED[kind][0](env[to], env[b]))
        case ("fill", to, x):
            env[to].assign(x)
        case ("update", to, operator, x):
            env[to] = _update(env[to], operator, env[x] if isinstance(x, str) else x)
        case ("set", to, index, x):
            env[to][index] = env[x] if isinstance(x, str) else x
        case ("set item", to, index, operator, x):
            env[to][index] = _update(env[to][index], operator, x)
        case ("set rows", to, rows, x):
            env[to][Tensor(list(rows), device=device)] = x
        case ("set where", to, limit, x):
            env[to][env[to] < limit] = x
        case ("read", name):
            env[name].tolist()
        case ("realize", *names):
            env[names[0]].realize(*[env[n] for n in names[1:]])
        case _:
            raise AssertionError(step)


def on_models(step, env):
    """What the step does; `env` maps names to models."""
    match step:
        case ("data", out, shape, elements):
            env[out] = value(Plain(shape, elements))
        case ("constant", out, shape, x):
            env[out] = value(Plain(shape, [x] * math.prod(shape)))
        case ("ramp", out, n):
            env[out] = value(Plain((n,), range(n)))
        case ("view", out, of, kind, argument):
            env[out] = env[of].view(VIEWS[kind][1](env[of].positions, argument))
        case ("bitcast", out, of, dtype):
            env[out] = Model(env[of].memory, env[of].positions, dtype)
        case ("compute", out, kind, a, b):
            env[out] = value(COMPUTED[kind][1](env[a].read(), env[b].read()))
        case ("assign", to, kind, b):
            env[to].write(COMPUTED[kind][1](env[to].read(), env[b].read()))
        case ("fill", to, x):
            env[to].write(env[to].read().map(lambda _: x))
        case ("update", to, operator, x):
            _updated(env[to], operator, env[x].read() if isinstance(x, str) else Plain((), [x]))
        case ("set", to, index, x):
            part = env[to].view(_sliced(env[to].positions, index))
            source = env[x].read() if isinstance(x, str) else Plain((), [x])
            part.write(source.expand(part.shape))
        case ("set item", to, index, operator, x):
            _updated(env[to].view(_sliced(env[to].positions, index)), operator, Plain((), [x]))
        case ("set rows", to, rows, x):
            for row in rows:
                index = (row, *[slice(None)] * (len(env[to].shape) - 1))
                part = env[to].view(_sliced(env[to].positions, index))
                part.write(part.read().map(lambda _: x))
        case ("set where", to, limit, x):
            env[to].write(env[to].read().map(lambda old: x if old < limit else old))
        case ("realize" | "read", *_):
            pass
        case _:
            raise AssertionError(step)


def _updated(model, operator, x):
    model.write(_ints(_OPERATORS[operator])(model.read(), x.expand(model.shape)))


# --- programs


class Maker:
    """Makes a program of the choices of `pick(n)`, which gives a number below n."""

    def __init__(self, pick):
        self.pick, self.env, self.steps, self.names = pick, {}, [], 0
        self.fixed = set()  # names whose Tensors show elements twice: not written to

    def one(self, options):
        return options[self.pick(len(options))]

    def name(self):
        self.names += 1
        return f"t{self.names}"

    def do(self, *step):
        on_models(step, self.env)
        self.steps.append(step)

    def ints(self, **attributes):
        """Names of int32 Tensors with an attribute of their models as wanted."""
        return [
            n
            for n, m in self.env.items()
            if m.dtype == "int32" and all(getattr(m, k) == v for k, v in attributes.items())
        ]

    def create(self):
        out, shape = self.name(), self.one(SHAPES)
        kind = self.pick(4)
        if kind == 0:
            self.do("constant", out, shape, self.pick(5))
        elif kind == 1:
            self.do("ramp", out, 6)
        else:
            self.do("data", out, shape, tuple((k * 7 + self.names) % 11 - 3 for k in range(math.prod(shape))))
            if kind == 2:
                self.do("realize", out)

    def index(self, shape):
        out = []
        for n in shape:
            k = self.pick(6)
            if k == 0 and n:
                out.append(self.pick(n) - (n if self.pick(2) else 0))
            elif k <= 2:
                out.append(slice(None))
            else:
                step = self.one((1, 2, -1, -2))
                at = self.pick(n + 1)
                out.append(slice(at, None, step) if self.pick(2) else slice(None, at, step))
        return tuple(out)

    def view(self):
        of = self.one(list(self.env))
        model, out = self.env[of], self.name()
        shape, kind = model.shape, self.one((*VIEWS, "bitcast", "index"))
        if kind == "bitcast":
            self.do("bitcast", out, of, self.one(("int32", "uint32", "float32")))
        elif kind == "reshape":
            n = math.prod(shape)
            fits = [s for s in (*SHAPES, (n,), (1, n), (n, 1)) if math.prod(s) == n]
            self.do("view", out, of, kind, self.one(fits))
        elif kind == "permute":
            order = list(range(len(shape)))
            random.Random(self.pick(24)).shuffle(order)
            self.do("view", out, of, kind, tuple(order))
        elif kind == "flip":
            self.do("view", out, of, kind, tuple(a for a in range(len(shape)) if self.pick(2)))
        elif kind == "expand":
            self.do(
                "view",
                out,
                of,
                kind,
                tuple(self.one((2, 3)) if n == 1 and self.pick(2) else n for n in shape),
            )
        elif kind == "shrink":
            pairs = [sorted((self.pick(n + 1), self.pick(n + 1))) for n in shape]
            self.do("view", out, of, kind, tuple(map(tuple, pairs)))
        elif kind == "index":
            self.do("view", out, of, kind, self.index(shape))
        else:
            self.do("view", out, of, kind, None)
        if of in self.fixed or len(set(self.env[out].positions.elements)) < len(
            self.env[out].positions.elements
        ):
            self.fixed.add(out)

    def compute(self):
        a = self.one(self.ints())
        b = self.one(self.ints(shape=self.env[a].shape))
        self.do("compute", self.name(), self.one(list(COMPUTED)), a, b)

    def write(self):
        targets = [n for n in self.ints() if n not in self.fixed]
        if not targets:
            return
        to = self.one(targets)
        shape = self.env[to].shape
        match self.pick(7):
            case 0 | 1:
                self.do("assign", to, self.one(list(COMPUTED)), self.one(self.ints(shape=shape)))
            case 2:
                operator = self.one(INPLACE)
                if operator in ("+", "-", "*", "&", "|", "^") and self.pick(2):
                    self.do("update", to, operator, self.one(self.ints(shape=shape)))
                else:
                    self.do("update", to, operator, 2 + self.pick(2))
            case 3:
                index = self.index(shape)
                part = _sliced(self.env[to].positions, index).shape
                same_shape = self.ints(shape=part)
                self.do(
                    "set", to, index, self.one(same_shape) if same_shape and self.pick(3) else self.pick(9)
                )
            case 4:
                self.do("set item", to, self.index(shape), self.one(INPLACE), 2)
            case 5 if shape and shape[0]:
                self.do(
                    "set rows", to, tuple(self.pick(shape[0]) for _ in range(1 + self.pick(2))), self.pick(9)
                )
            case 5 | 6:
                self.do("set where", to, self.pick(6), self.pick(9))

    def floats(self):
        """Write floats through a view of integers as floats."""
        targets = [n for n, m in self.env.items() if m.dtype == "float32" and n not in self.fixed]
        if targets:
            self.do("fill", self.one(targets), self.one((0.5, 1.0, -2.0)))

    def realize(self):
        self.do("realize", *{self.one(list(self.env)): None, self.one(list(self.env)): None})

    def some(self, count):
        for _ in range(count):
            kind = self.pick(12)
            if not self.ints() or kind == 0:
                self.create()
            elif kind <= 3:
                self.view()
            elif kind <= 5:
                self.compute()
            elif kind <= 9:
                self.write()
            elif kind == 10:
                self.floats()
            else:
                self.realize()


def check_eager(pick, length, device):
    """One program, every step done as it comes."""
    maker = Maker(pick)
    env = {}
    try:
        for _ in range(length):
            position = len(maker.steps)
            maker.some(1)
            for step in maker.steps[position:]:
                on_tensors(step, env, device)
            if maker.pick(4) == 0 and maker.env:
                maker.do("read", maker.one(list(maker.env)))
                _compare_one(maker.steps[-1][1], env, maker.env)
        for name in sorted(maker.env, key=lambda _: pick(99)):
            maker.do("read", name)
            maker.do("read", name)
            _compare_one(name, env, maker.env)
    except Exception as error:
        raise AssertionError("program:\n" + "\n".join(map(str, maker.steps))) from error


def _compare_one(name, tensors, models):
    tensor = tensors[name].bitcast("int32")
    bits = Plain(models[name].shape, [models[name].memory[p] for p in models[name].positions.elements])
    assert tensor.shape == bits.shape, (name, tensor.shape, bits.shape)
    if math.prod(bits.shape):
        assert_same(tensor.tolist(), bits.tolist(), name)


@dataclass
class Call:
    """Steps before a captured function is called, the function's own, what it is called with, its result."""

    before: list
    body: list
    arguments: tuple
    result: str
    how: str


def check_captured(pick, length, device, how):
    """A program, then a captured function called several times: its arguments, and what it finds outside, are
    Tensors of the program, views among them; what it writes is seen by all of them, after every call."""
    check_call(make_call(pick, length, how), device)


def make_call(pick, length, how):
    """A random `Call`."""
    maker = Maker(pick)
    maker.some(2 + length // 2)
    while not maker.ints():
        maker.create()
    before = list(maker.steps)
    candidates = [n for n in maker.ints() if 0 not in maker.env[n].shape]
    arguments = tuple(dict.fromkeys(maker.one(candidates) for _ in range(1 + pick(2)))) if candidates else ()
    if how == "step":  # whose inputs must not share memory that is written to
        created = {s[1] for s in before if s[0] in ("data", "constant", "ramp", "compute")}
        arguments = tuple(a for a in arguments[:1] if a in created)
    maker.steps = []
    maker.some(1 + length // 2)
    result = maker.name()
    maker.do("compute", result, "copy", maker.one(maker.ints()), maker.one(maker.ints()))
    body = [s for s in maker.steps if s[0] != "realize" or pick(2)]
    return Call(before, body, arguments, result, how)


def check_call(call, device):
    """Run a `Call` on Tensors and on models."""
    env: dict = {}
    models: dict = {}
    position = -1
    try:
        for step in call.before:
            on_tensors(step, env, device)
            on_models(step, models)

        def function(*tensors):
            scope = {**env, **dict(zip(call.arguments, tensors, strict=True))}
            for step in call.body:
                on_tensors(step, scope, device)
            return scope[call.result]

        captured = _captured(function, call.how, [env[a] for a in call.arguments], device)
        while (position := position + 1) < 4:
            local = dict(models)
            for step in call.body:
                on_models(step, local)
            got = captured(*[env[a] for a in call.arguments])
            _compare_one("result", {"result": got}, {"result": local[call.result]})
            for name in models:
                _compare_one(name, env, models)
    except Exception as error:
        head = f"in call {position} of {call.how} f{call.arguments} -> {call.result}:"
        raise AssertionError("\n".join(map(str, ["program:", *call.before, head, *call.body]))) from error


def _captured(function, how, examples, device):
    if how == "jit":
        return TinyJit(function)
    weight = Tensor([1.0], device=device)

    def step_function(_, *inputs):
        result = function(*inputs)
        return (weight * 1.0).sum(), result

    step = compile_step(step_function, [weight], nn.optim.SGD([weight], lr=0.0, device=device), *examples)
    return lambda *inputs: step.run(*inputs)[1]


def picker(seed):
    """Choices by a seeded generator."""
    return random.Random(seed).randrange
