"""From a tensor graph to kernels: tinygrad's rangeify, in three decisions and one construction.

1. `fusion_partition.py` finds the materialisation points, the nodes that get a buffer. It pushes indices
   from consumers to producers. Where two consumers' indices differ, or a reduced value is broadcast, fusion
   would compute a node more than once.
2. From producers to consumers, such a node is materialised if computing it again is expensive.
3. A node that one kernel would still compute at more than 32 places (stencils of stencils) is materialised
   too.

In an optimised schedule an operand that is broadcast widely (of a matrix product) is materialised unless it
is next to no work. `operation_limit.py` divides an expression of more than about 1,000 operations: its
toposort is cut into blocks, and values that cross a cut are materialised. Blocks start anew after each cut,
so those of an iterated map are alike: 1,000 lazy steps of a pendulum are about 200 launches of four
kernels. `buffer_limit.py` materialises values of kernels that would read more buffers than the device
binds.

`kernels.py` then builds each materialised node's expression by asking its sources for their value at given
indices (memoised), so movement ops become index arithmetic. Ranges and PARAMs are numbered per kernel:
equal layers have identical kernels.

Optimisations of the graph: `isolated_products.py` stores a matrix product that is reduced, scanned or added
to another product: in one kernel the tiles of both would be lost. `split_scan.py` divides running values into
parts, 64 side by side, thousands on a GPU. Their number depends on sizes alone, so results are the same bits
for any number of threads. (codegen/kernels/split_reduce.py does the same for reductions.)

Running values (SCAN_AXIS) are always a kernel of their own, whose innermost loop, of kind SCAN, goes in
order and has a register that lives across its rounds. Products of floats and linear recurrences are not
divided: a part's product may leave the range of its dtype where the running values do not.

A write is `AFTER(memory, ASSIGN(view, value))`. `schedule.py` orders the readers of a version before the
write that replaces it, copies a version where both are needed at once, and stores the new value apart when
its kernel would read elements that it has overwritten.

`products.py` says what a product is in a tensor graph, `kernel_info.py` what a kernel is, `selection.py` what
its comparisons with positions stand for, all for passes and heuristics. `cost.py` has the numbers that these
decisions depend on. `memory.py` plans the arena.
"""
