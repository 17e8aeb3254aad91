"""Passes over one kernel, from its AST to a list of instructions.

`passes.py` lists them (`PASSES`). `run_passes(kernel, context, after=..., through=...)` starts and stops at
any. DEBUG=4 shows the kernel after each, SPEC=1 verifies it, `tests/filetests/<pass>/` holds kernels before
and after. Optimised and unoptimised lowering share the IR; unoptimised kernels are scalar and compare op
for op with tinygrad's (`tests/parity`).

- `reductions.py`: removes loops of sums and maxima that need none; a sum over a one-hot is a load; a sum
  over guarded sums is one sum (a convolution's gradient).
- `bind_workgroups.py`: GLOBAL, LOCAL and SUBGROUP axes become numbers of workgroups and invocations. The last
  block of a LOCAL axis starts early enough to be whole, and a gate lets the first block that has an element
  store it.
- `workgroup_dimensions.py`: axes that no value depends on together share a dimension. A grid of more than
  three axes is folded.
- `workgroup_memory.py`: shared memory, in one buffer or several. Barriers stand in loops that all invocations
  run equally often: gates are on single stores.
- `workgroup_stages.py`: invocations fill a STAGE together, in the order of the memory that is read.
- `workgroup_reductions.py`: a REDUCE over a LOCAL axis is a tree; where the invocations of a subgroup
  exchange values, SHUFFLE_XOR does its lower rounds, with the same bits.
- `slow_paths.py`: sin's long range reduction goes behind a branch, which is a loop of no round or one. A
  value never depends on its neighbours in a tile.
- `decompose.py`: writes each op that the target lacks in ops that it has. `transcendental/` is within 2
  ulp. POW is an op until here, so that its gradient is a rule of its own. `threefry.py` makes random bits.
- `strided_loads.py`: lanes that are a known number of elements apart are loaded as whole blocks and
  permuted.
- `linearize.py`: control edges (loops nested, or one after the other), then the order of execution by
  priority.
"""
