"""Passes over the list of kernels, between the schedule and the lowering of each kernel.

`passes.py` lists them in order (`KERNEL_PASSES`). What they decide are KernelOpts (`kernel_opt.py`), which
one function carries out (`apply.py`): of the heuristics here, of KERNEL_OPTS, or of a search
(engine/search.py). Each module has what it proposes first, then the mechanism. `division.py` puts several
kernels in the place of one, and makes the memory between them. DEBUG=3 shows decisions, DEBUG=4 kernels,
SPEC=1 verifies these. Most passes are for a processor's caches.

- `fp8_storage.py`: memory of 8-bit floats is bytes; a kernel converts them by integer arithmetic and
  computes in float32. No later pass, cost or renderer knows these dtypes.
- `fuse.py` moves row reductions into their only reader: softmax is one kernel.
- `split_reduce.py`: a sum becomes parts, which threads and workgroups divide, and the sum of the parts:
  reductions to few elements, products of long sums, and on grids sums of which there are few workgroups.
- `compute_at.py` (Halide's word) computes a producer inside of its reader's loops: attention is one kernel,
  whose scores and weights are STAGEs of a block of rows. Where a result is needed twice (a training step
  keeps the weights for the gradient) it goes through memory.
- `index_put.py` finds kernels that go through all elements of memory to change a few (`t[index] = x`,
  `scatter`): a loop over the writers is left, and a copy first where the other elements come from
  elsewhere.
- `scatter.py` turns a reduction over one-hots round (the gradient of a gather, a histogram): memory is
  filled, then each term is added to its element, in order. A GPU compares instead, unless a sum has more
  than 2^18 elements: few invocations that add in order take longer than all of them looking at all terms.
- `interchange.py`: a sum of columns goes through memory row by row, a few rows at a time in registers, with
  the sums in the cache. From row to row of one column no prefetcher follows, and rows that lie a power of
  two apart evict each other. Where columns are few, threads have parts of the rows. `accumulation.py` adds
  to memory in order.
- `polyphase.py`: the gradient of a strided convolution or pooling, and a transposed convolution, sum over
  zeros between elements. Split into phases (filter banks' word), each sums over none.
- `relayout.py` copies an operand of a large product first, if it is read under conditions, in long steps,
  or as computed scalars: the padding of a convolution, `a.T @ b`. A copy has an axis for each sum of ranges
  that the operand depends on (windows overlap: y + ky), so it holds each element once; the tiles of the
  product decide the order of its axes. So forward convolutions of any stride and dilation, and both
  gradients, become the one case that product kernels are good at. With AVX-512 output channels are in the
  lanes and the weights are the panel; with WebAssembly's narrow vectors columns are in the lanes.
- `dot_products.py`: products of narrow numbers become sums of DOT: 32-bit words that hold 4 or 2 elements.
  To tiles and panels a word is an element. `Target.dots` says which kinds a machine has. `window_dots.py`
  does so to convolutions, whose channels become words, and to computed operands. `boxes.py` says what an
  operand reads.
- `narrow_storage.py`, for tensor cores: an operand has to be a conversion from the core's dtype, so such a
  value is kept in 16 bits where the scheduler had stored the float32 that products read.
- `separate_offsets.py`, last: the constant part of indices moves into the launch's bindings, in multiples
  of the buffers' alignment. All rows and batches of a tensor share one kernel.
"""
