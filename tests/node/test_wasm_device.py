"""The WASM device over the JavaScript engine: Node, a page, a worker."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

import pytest

wasmtime = pytest.importorskip("wasmtime", reason="its assembler makes the kernels")

from javascript_hosts import HOSTS, ROOT, built, run  # noqa: E402

from polygrad.runtime.program import Binding, BufferSpec, Kernel, Launch, Program, Variable  # noqa: E402

pytestmark = [pytest.mark.e2e, built]
SCRIPT = Path(__file__).parent / "scripts" / "wasm_device.py"


def kernel(
    name: str, body: str, n_buffers: int, variables: tuple[str, ...] = (), memory: str = "1"
) -> Kernel:
    params = " ".join(["i32"] * (n_buffers + len(variables)))
    imports = f'(import "env" "memory" (memory {memory}))'
    text = f'(module {imports} (func (export "{name}") (param {params}) {body}))'
    return Kernel(
        name,
        bytes(wasmtime.wat2wasm(text)),
        n_buffers,
        variables,
        language="wasm",
        writes=tuple(range(min(n_buffers, 1))),
    )


def chain(memory: str) -> Program:
    """out[1] = (in[1] + n) * 2, the sum in scratch."""
    add = "(i32.store (local.get 0) (i32.add (i32.load (local.get 1)) (local.get 2)))"
    double = "(i32.store (local.get 0) (i32.shl (i32.load (local.get 1)) (i32.const 1)))"
    return Program(
        device="WASM",
        target="test",
        buffers=(
            BufferSpec(2, "int32", "input"),
            BufferSpec(1, "int32", "scratch", 64),
            BufferSpec(2, "int32", "output"),
        ),
        kernels=(kernel("add", add, 2, ("n",), memory), kernel("double", double, 2, (), memory)),
        launches=(Launch(0, (Binding(1), Binding(0, 4))), Launch(1, (Binding(2, 4), Binding(1)))),
        variables=(Variable("n", -10, 10),),
        arena=128,
    )


SHARED = "1 65536 shared"  # on hosts with threads
TRAP = Program("WASM", "test", (), (kernel("boom", "unreachable", 0, (), SHARED),), (Launch(0, ()),))


@pytest.mark.parametrize("host", HOSTS)
def test_programs_run_and_errors_are_typed(host: str, tmp_path: Path) -> None:
    programs = tmp_path / "programs.json"
    texts = {"chain": chain(SHARED), "trap": TRAP}
    programs.write_text(json.dumps({k: base64.b64encode(p.to_bytes()).decode() for k, p in texts.items()}))
    place = str(programs) if host == "node" else f"/mnt{programs}"
    result = run(host, SCRIPT, place, files=(programs,), cwd=tmp_path).json()
    features = [f for f in result["features"] if f != "relaxed-dot"]  # which Node 20 computes wrongly
    assert features == ["relaxed-simd", "simd", "threads"]
    assert result["copied"] is True
    assert result["chain"] == [16, -10, 16, 2 * ((1 << 20) + 7)]
    assert result["afterwards"] == 42
    for case, error, text in (
        ("out_of_memory", "OutOfMemoryError", "limit of 67108864 bytes"),
        ("trap", "InternalError", "internal: kernel boom: trapped"),
        ("no_module", "CompileError", "kernel nonsense: expected a module"),
        ("no_cuda", "DeviceError", "CUDA: not available inside Pyodide: expected WASM, WEBGPU or INTERP"),
        ("wrong_signature", "CompileError", "kernel double: expected 2 arguments, got 1"),
    ):
        assert result[case][0] == error and text in result[case][1], result[case]
    assert (result["functions"], result["functions_left"], result["allocated"]) == (2, 0, 0)


def test_a_serialized_program_runs_without_python(tmp_path: Path) -> None:
    (tmp_path / "chain.bin").write_bytes(chain("1").to_bytes())
    program = tmp_path / "run.mjs"
    program.write_text(
        f"""
        import {{ readFileSync }} from "node:fs";
        import {{ loadProgram }} from {json.dumps(str(ROOT / "node" / "dist" / "index.js"))};
        const loaded = await loadProgram(readFileSync({json.dumps(str(tmp_path / "chain.bin"))}));
        const results = [[5, 3], [7, -10]].map(([x, n]) => loaded.run([Int32Array.of(0, x)], {{ n }})[0][1]);
        console.log(JSON.stringify(results));
        """
    )
    done = subprocess.run(["node", str(program)], capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout) == [16, -6], done.stderr
