"""Decisions about one kernel, as data, and what carries them out.

`opt.py` has the kinds of Opts and `apply`, the only mechanism. `heuristics.py` and `gpu_heuristics.py`
decide, with the numbers of `cost.py`; `search_space.py` says what a search tries.

| Opt | what it does | module |
| --- | --- | --- |
| SIMD, UPCAST, UNROLL | a tile of an axis: lanes, unrolled outputs, unrolled terms | `split.py` |
| MERGE, SPLIT, REORDER | two loops as one, one loop as blocks, another order | `loops.py` |
| PARTITION | a loop divided where a condition on it is decided | `partition.py` |
| STAGE | a value in memory of the kernel's own | `stage.py` |
| MATMUL | a register tile of dot products on matrix registers | `matmul.py` |
| PARALLEL | a loop divided between threads | `parallel.py` |
| GLOBAL, LOCAL, GROUP | workgroups, invocations, a reduction shared by invocations | `workgroups.py` |
| TENSOR_CORE | a product on a matrix instruction | `tensor_core.py` |

**Axes** are known by their path: splitting r1 makes the loop r1.0, the unrolled r1.1 and the lanes r1.2;
parts of a divided loop are r1.3, r1.5, ..., loops that fill memory r1.4, r1.6, ... END and REDUCE name
their ranges outermost first: that is the order of the loops.

**Edges.** A size that is no multiple of a tile ends in a tile that overlaps the one before: no masks, no
scalar rest, one loop nest for any size. A short row is in one tile, of which the last SIMD value overlaps.

**STAGE(value, index, *ranges)** is a pointer to memory that is filled for all of the ranges. A panel of a
product that is scattered over memory, a row that is summed and used again (softmax's exponentials) and a
tile of sums before a long epilogue are all STAGEs. The nest that fills one is tiled and staged by the same
decisions. PARAMs say their address space: GLOBAL is bound by the Program, LOCAL is the kernel's own, one
for each thread.

**Register tiles** are `vectors x rows`. `Tiling.register_tile` counts the vectors and scalars that the
loads of a tile are; `cost.tile_speed` says what they cost. AVX-512 reads a scalar operand from memory, so
many rows and few vectors cost nothing; elsewhere each is a load of its own, and tiles are squarer. SIMD
values have as many lanes as a register holds of the elements that most of the work is on.

**Matrix registers** (x86's AMX) compute a register tile of sums of DOTs in memory of the kernel's own. The
operand of the columns is copied to a panel, in which neighbours on the summed axis become words:

    SIMD r1 16 2, UPCAST r0 32    tiles of 32 x 32 sums: `cost.matrix_tile`
    STAGE r2 OR 0                 a panel of words of the columns
    REORDER r1.0 r0.0             which all rows read
    MATMUL r0.1                   the sums in memory, and a loop over their rows

**Threads** divide output elements, never sums. A kernel is called for parts of its work, four to a thread;
a thread that has finished its own takes parts that others have not begun, by an atomic counter. Where each
part would fill the same memory again, there is one part to a thread.

**Grids.** GLOBAL and LOCAL bind a loop, which then is none. UPCAST is an invocation's register tile, SIMD a
vector of memory, STAGE in a kernel with LOCAL axes memory of the workgroup. `x @ w` of 1,024 squared:

    GLOBAL r0, GLOBAL r1                   a workgroup for each tile of 32 x 32
    LOCAL r0 32, UPCAST r0.1 4             8 x 8 invocations, four rows each,
    SIMD r1 4 1, LOCAL r1.0 8              of one vector of four columns
    SPLIT r2 32                            sums in chunks of 32 terms,
    STAGE r2.1 LOAD 0, STAGE r2.1 LOAD 2   for which both operands are in shared memory

`gpu_heuristics.py` puts products in tiles; shares a row's reduction, with all that is computed of the row,
between a workgroup's invocations; and makes everything else a flat grid, in which an invocation has a
vector of four elements (of a transpose a block of 4 x 4). Where a processor does a GPU's work
(`Workgroups.software`), shared memory is no nearer than buffers, so products have tiles of up to 8 x 8 an
invocation without it, and few sums are shared.

Where memory of a workgroup is filled while its invocations compute (`Workgroups.copies`), tiles are of 128 x
128, and operands have three buffers: `STAGE r2.1 LOAD 0 3`. A round of the loop waits for the copies that it
reads, begins those of two rounds later, and computes. What a copy cannot do (a conversion, elements that are
not aligned) goes through registers, in the same order.

**Tensor cores** (`uop/tensor_cores.py`): a table says of every instruction its sizes, its dtypes, and which
lane has which element. TENSOR_CORE substitutes these sums of steps for the rows, columns and terms of a
product. WMMA ends the axes of its operands' elements and makes those of the result's.
`tensor_core_heuristics.py` uses the first core that takes a product, with rows and columns the way round
that leaves less of its blocks unused. Some cores read memory of the workgroup themselves (wgmma of Hopper
GPUs), whole rows of 128 bytes, swizzled; the pass `store-operands` sees to it that what they read can be
copied. Terms that an overlapping block counts a second time are 0 in both
operands.
"""
