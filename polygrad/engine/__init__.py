"""The engine joins compiler and runtimes: realization, caches, the registry of devices, profiles.

**Caches.** `programs.py` finds Programs by the graph's structure, which one walk over the uncomputed nodes
gives (`pending.py`). In it nodes are numbers in the order of the walk, buffers are slots, and constants are
left out, so a graph that was seen before makes no new node. Kernels are found by AST: in memory, bounded by
bytes, and on disk, by a digest of the AST, the target and polygrad's own source (`compiled_kernels.py`).
Programs are on disk, too, by their graphs, so that another process schedules nothing (`kept_programs.py`). A
damaged entry is a miss. In Node the folder is mounted in Pyodide's file system. A page reads its kernels from
IndexedDB when it starts (`loader/src/kernels.ts`).

**Scalars** (`scalar_arguments.py`). A graph's first Program has its constants in the kernels. When a graph of
the same structure has other constants, those that differ become arguments. Results have the same bits,
because constants that the algebra may use stay constants: operands of expressions of constants alone,
integers beside an ARANGE, and 0, 1, 2, 1/2 and the like.

**Barriers** (`barriers.py`). Two launches conflict when one writes bytes that the other uses and at least
one of them is parallel. Scratch is compared by its place in the arena, other buffers by their number. A
launch gets a barrier when it conflicts with one since the last barrier, which is the fewest there can be.

**Several devices** (`sharding.py`). `CPU:1` is a Runtime of its own over the same Backend. A tensor on
several devices has one `ShardedBuffer`, with parts, one version and one owner, so views, writes and
captures treat it as any buffer. `COPY(x, Sharding(devices, axis))` distributes a value. `resolve` goes
through the graph once, with a rule for each op (tinygrad's MULTI). An all-reduce is a COPY of each device's
partial result to every other device, and a sum in the order of the devices. Writes among several devices go
in waves: writes that wait for no other write are made together, after the readers of the old elements
(`write_hazards.py`).

**Profiles** (`profile.py`). `profile(compute)` runs each launch as a Program of its own on the same
buffers. So a call has its usual results, and a training step can be profiled as it trains. Each kernel has an
`Origin`, from which `explain.py` makes the graph after each pass. `peak_flops.py` measures the device's peak.
"""
