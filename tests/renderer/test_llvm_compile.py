"""Compiling LLVM IR: registers, processors without features, modules, threads, errors."""

from __future__ import annotations

import itertools
import re
import threading

import llvmlite.binding as llvm
import pytest
from renderer.llvm_functions import BINARY, LANES, UNARY, builder, takes

from polygrad.codegen.target import Target
from polygrad.dtype import dtypes
from polygrad.errors import CompileError
from polygrad.renderer.builder import Address
from polygrad.renderer.llvm.builder import LLVMBuilder
from polygrad.renderer.llvm.compile import _make_target_machine, compile_ir, host_target, submit
from polygrad.uop.ops import GroupOp, Ops

pytestmark = pytest.mark.usefixtures("verified")


def matmul_tile(rows: int, vectors: int, lanes: int) -> str:
    """The inner loop of a packed matrix multiplication: rows x vectors accumulators."""
    b, f, index = builder(), dtypes.float32, dtypes.index
    (out, a, w), _ = b.begin("k", [f, f, f], [])
    tile = [[b.register(f, lanes) for _ in range(vectors)] for _ in range(rows)]
    for register in itertools.chain(*tile):
        b.set(register, b.const(f, 0.0, lanes))
    k = b.loop(b.const(index, 64, 1))
    at = b.alu(Ops.MUL, index, [k, b.const(index, rows, 1)], 1)
    bt = b.alu(Ops.MUL, index, [k, b.const(index, vectors * lanes, 1)], 1)
    columns = [b.load(Address(w, bt, v * lanes), f, lanes) for v in range(vectors)]
    for r in range(rows):
        x = b.splat(b.load(Address(a, at, r), f, 1), f, lanes)
        for v, register in enumerate(tile[r]):
            b.set(register, b.alu(Ops.MULACC, f, [x, columns[v], b.get(register)], lanes))
    b.end_loop()
    for i, register in enumerate(itertools.chain(*tile)):
        b.store(Address(out, None, i * lanes), b.get(register), f, lanes)
    return b.finish()


def test_a_register_tile_stays_in_registers() -> None:
    target = host_target()
    if not target.fma:
        pytest.skip("this processor has no fused multiply-add to count")
    lanes = target.simd_bytes // 4
    module = llvm.parse_assembly(matmul_tile(6, 2, lanes), llvm.create_context())
    text = _make_target_machine().emit_assembly(module)
    loop = re.search(r"(\.LBB0_\d+):(.*?)\n\s+j\w+\s+\1\n", text, re.S)
    if loop is None:
        pytest.skip("not an assembly this test can read")
    assert len(re.findall(r"\bvfn?madd", loop[2])) == 12
    assert "rsp" not in loop[2], "accumulators were spilled"


@pytest.mark.parametrize("lanes", LANES)
def test_nothing_calls_a_library_on_an_old_processor(lanes: int) -> None:
    """x86-64-v2: no FMA, no float16 conversions, 128-bit vectors."""
    if not llvm.get_process_triple().startswith("x86_64"):
        pytest.skip("about x86-64 only")
    b = LLVMBuilder(Target("CPU", 16, 16), native_half=False)
    pointers, _ = b.begin("k", dtypes.all, [])
    x = {d: b.load(Address(p), d, lanes) for d, p in zip(dtypes.all, pointers, strict=True)}
    for (src, value), (dst, out) in itertools.product(x.items(), zip(dtypes.all, pointers, strict=True)):
        b.store(Address(out), b.cast(value, src, dst, lanes), dst, lanes)
    for op, (dtype, out) in itertools.product((*UNARY, *BINARY), zip(dtypes.all, pointers, strict=True)):
        if takes(op, dtype) and dtype not in (dtypes.float16, dtypes.bfloat16):
            kept = dtypes.bool if op in GroupOp.Comparison else dtype
            value = b.alu(op, dtype, [x[dtype]] * (1 if op in UNARY else 2), lanes)
            b.store(Address(pointers[0] if kept.is_bool else out), value, kept, lanes)
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine("x86-64-v2", "", opt=2, reloc="pic", codemodel="default")
    assert "call" not in machine.emit_assembly(llvm.parse_assembly(b.finish(), llvm.create_context()))


def test_several_functions_are_one_module() -> None:
    text = "".join(matmul_tile(2, 1, 4).replace("@k(", f"@k{i}(") for i in range(3))
    assert len(compile_ir(text)) > 3 * 64


def test_compiling_in_threads_gives_what_one_thread_gives() -> None:
    texts = [matmul_tile(rows, 2, 4) for rows in range(1, 9)]
    want = [compile_ir(text) for text in texts]
    assert [future.result() for future in [submit(text) for text in texts]] == want
    got: dict[int, list[bytes]] = {}

    def work(i: int) -> None:
        got[i] = [compile_ir(text) for text in texts]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(got[i] == want for i in range(4))


def test_text_that_is_no_ir_is_a_compile_error() -> None:
    with pytest.raises(CompileError, match="internal: LLVM could not parse") as e:
        compile_ir("define void @k( {")
    assert "define void @k" in str(e.value)
    undominated = (
        "br i1 %c, label %a, label %b\na:\n  %x = add i32 1, 2\n  br label %b\nb:\n  %y = add i32 %x, 1"
    )
    with pytest.raises(CompileError, match=r"verify.*dominate"):
        compile_ir(f"define void @k(i1 %c) {{\n  {undominated}\n  ret void\n}}\n")
    assert compile_ir("define void @k() {\n  ret void\n}\n"), "the next one works"


def test_the_target_of_this_machine() -> None:
    target = host_target()
    assert target.name == "CPU" and target.simd_bytes in (16, 32, 64) and "llvm" in target.key
    assert Target("CPU").key != target.key
