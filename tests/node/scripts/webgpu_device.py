"""What device WEBGPU does inside Pyodide, as JSON: the same work as on INTERP, counts, and errors."""

import json
from dataclasses import asdict, replace

from polygrad import Device, Tensor, TinyJit, compile_step, dtypes, nn
from polygrad.errors import PolygradError
from polygrad.runtime.program import Binding, BufferSpec, Kernel, Launch, Program

runtime = Device["WEBGPU"]
result = {"adapter": asdict(runtime.adapter) | {"features": sorted(runtime.adapter.features)}}


def error_of(what):
    try:
        what()
    except PolygradError as e:
        return [type(e).__name__, str(e)]
    return None


def flat(x):
    return [y for row in x for y in flat(row)] if isinstance(x, list) else [x]


def work(device):
    """Results that are the same on every device, and those that differ in the last bits."""
    Tensor.manual_seed(3)
    x, y = Tensor.rand(33, 20, device=device), Tensor.rand(20, 17, device=device)
    ints = Tensor.arange(-50, 50, device=device)
    exact = [
        (x > 0.5).tolist(),
        x.cast(dtypes.bfloat16).float().tolist(),
        x.half().tolist(),
        [(ints * ints // 7 % 11).cast(d).tolist() for d in dtypes.ints],
        (ints.cast(dtypes.int64) * 123456789123).tolist(),
        x.max(0).tolist(),
        x.flip(0).T.pad(((1, 2), (0, 1)))[1:5].tolist(),
        ints.cast(dtypes.uint8).sort()[0].tolist(),
    ]
    image = x[:32, :16].reshape(1, 2, 16, 16)
    kernel = Tensor.rand(4, 2, 3, 3, device=device)
    weight = Tensor.rand(20, 20, device=device).requires_grad_()
    loss = (x @ weight).softmax().log().mean() + (x @ weight).layernorm().sin().sum()
    close = [
        (x @ y).tolist(),
        x.softmax().tolist(),
        image.conv2d(kernel, padding=1).relu().sum((0, 1)).tolist(),
        loss.gradient(weight)[0].tolist(),
        (x.exp() + x.log2() + x.sqrt() / y.sum()).tolist(),
        x.var(1).tolist(),
    ]
    return exact, flat(close)


exact, close = work("WEBGPU")
expected, near = work("INTERP")
result["exact"] = [json.dumps(a) == json.dumps(b) for a, b in zip(exact, expected, strict=True)]
result["furthest"] = max(abs(a - b) / max(abs(b), 1.0) for a, b in zip(close, near, strict=True))

# A captured step: one submit, and nothing made anew.
layer = nn.Linear(4, 3)
for t in nn.state.get_parameters(layer):
    t.replace(t.to("WEBGPU").realize())
optimizer = nn.optim.Adam(nn.state.get_parameters(layer), lr=0.01)
batch = Tensor([[1.0, 2.0, 3.0, 4.0]], device="WEBGPU")
step = compile_step(lambda model, given: (model(given) ** 2).sum(), layer, optimizer, batch)
losses = []
for _ in range(3):
    before = runtime.host.counters
    step.run(batch)
    losses.append(step.loss_value())
result["losses"] = losses
after = runtime.host.counters
result["step"] = {name: getattr(after, name) - getattr(before, name) for name in asdict(after)}


@TinyJit
def parts(first, second):
    return (first[:64] * 2 + second[64:128]).realize()


# Two arguments that are one memory, of which a kernel reads overlapping ranges.
whole = Tensor.arange(128, device="WEBGPU").float().realize()
for _ in range(3):
    parts(whole, Tensor.ones(128, device="WEBGPU").contiguous().realize())
result["parts"] = parts(whole, whole).tolist() == [3.0 * i + 64 for i in range(64)]

# Errors, after which the next call works.
x = Tensor([1.0, 2.0], device="WEBGPU", dtype="float64")
result["float64"] = error_of(lambda: (x + 1).tolist())
TEXT = """@group(0) @binding(0) var<storage, read_write> data0: array<f32>;
@compute @workgroup_size(1)
fn wrong() {
  data0[0] = true;
}
"""
spec = BufferSpec(1, "float32", "output")
kernel = Kernel("wrong", TEXT.encode(), 1, language="wgsl", writes=(0,), workgroup=(1, 1, 1))
program = Program("WEBGPU", "test", (spec,), (kernel,), (Launch(0, (Binding(0),), (1, 1, 1)),))
handle = runtime.allocate(4)


def run_wrong():
    runtime.load(program).run([handle], None, {})
    runtime.read(handle, 0, 4)


result["wrong"] = error_of(run_wrong)
result["out_of_memory"] = error_of(lambda: runtime.allocate(2 * runtime.adapter.buffer_bytes))
runtime.write(handle, 1, memoryview(b"xyz"))
result["bytes"] = bytes(runtime.read(handle, 1, 3)).decode()
right = replace(kernel, code=TEXT.replace("true", "7.0f").encode())
runtime.load(replace(program, kernels=(right,))).run([handle], None, {})
result["afterwards"] = list(runtime.read(handle, 0, 4).cast("f"))

# A device that was lost: the next one is opened by whoever asks for it.
runtime.host.close()
kept = Tensor([1.0], device="INTERP")
result["lost"] = error_of(lambda: runtime.read(handle, 0, 4)) or error_of(lambda: runtime.read(handle, 0, 4))
result["again"] = (kept.to("WEBGPU") + 1).tolist()
result["anew"] = Device["WEBGPU"] is not runtime
print(json.dumps(result))
