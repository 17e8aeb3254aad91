"""What the WASM device does inside Pyodide, as JSON. Its argument: a file of Programs in base64, by name."""

import base64
import json
import sys
from pathlib import Path

from polygrad import Device
from polygrad.errors import PolygradError
from polygrad.runtime.program import Kernel, Program
from polygrad.runtime.wasm.device import WasmRuntime

programs = {
    name: Program.from_bytes(base64.b64decode(text))
    for name, text in json.loads(Path(sys.argv[1]).read_text()).items()
}
runtime = WasmRuntime(limit=64 << 20)
result = {"features": sorted(runtime.features)}


def error_of(what):
    try:
        what()
    except PolygradError as e:
        return [type(e).__name__, str(e)]
    return None


# Bytes in and out, and growth under a loaded Program.
chain = runtime.load(programs["chain"])
source, out, arena = runtime.allocate(8), runtime.allocate(8), runtime.allocate(128)
big = runtime.allocate(32 << 20)
data = bytes(range(256)) * 4096
runtime.write(big, 5, memoryview(data))
copy = runtime.read(big, 5, len(data))
result["copied"] = bytes(copy) == data and not copy.readonly and copy.format == "B"


def run_chain(executable, x, n, target=out):
    runtime.write(source, 4, memoryview(x.to_bytes(4, "little", signed=True)))
    executable.run([source, None, target], arena, {"n": n})
    return int.from_bytes(runtime.read(target, 4, 4), "little", signed=True)


other = runtime.allocate(8)
result["chain"] = [
    run_chain(chain, 5, 3),
    run_chain(chain, 5, -10),
    run_chain(chain, 7, 1, other),
    run_chain(chain, 1 << 20, 7),
]

# Errors, after which the next call works.
result["out_of_memory"] = error_of(lambda: runtime.allocate(64 << 20))
result["trap"] = error_of(lambda: runtime.load(programs["trap"]).run([], None, {}))
result["no_cuda"] = error_of(lambda: Device["CUDA"])
result["no_module"] = error_of(lambda: runtime.function("nonsense", b"nonsense"))
double = programs["chain"].kernels[1]
result["wrong_signature"] = error_of(
    lambda: runtime.load(
        Program(
            "WASM",
            "test",
            programs["chain"].buffers,
            (Kernel(double.name, double.code, 1, language="wasm", writes=(0,)),),
            (type(programs["chain"].launches[1])(0, programs["chain"].launches[1].bindings[:1]),),
        )
    )
)
result["afterwards"] = run_chain(chain, 20, 1)

# The same code is the same function, as long as something uses it.
again = runtime.load(programs["chain"])
result["functions"] = len(runtime._functions)
del chain, again
result["functions_left"] = len(runtime._functions)
for handle in (source, out, arena, big, other):
    runtime.free(handle)
result["allocated"] = runtime.heap.allocated

print(json.dumps(result))
