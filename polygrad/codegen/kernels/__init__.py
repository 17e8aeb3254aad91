"""Passes over the list of kernels, between the schedule and the lowering of each kernel.

`passes.py` lists them in order (`KERNEL_PASSES`). Their decisions are KernelOpts (`kernel_opt.py`), which
come from the heuristics here, from KERNEL_OPTS, or from a search (engine/search.py). One function carries
them out (`apply.py`). Each module has its proposals first, then the mechanism. `division.py` puts several
kernels in the place of one, and makes the memory between them. DEBUG=3 shows decisions, DEBUG=4 shows
kernels, SPEC=1 verifies kernels. Most passes are for a processor's caches.

- `fp8_storage.py`: memory of 8-bit floats is bytes; a kernel converts them by integer arithmetic and
  computes in float32. No later pass, cost or renderer knows these dtypes.
- `keyed_scan.py`: a sum over the earlier elements that have the same key (the rank of an element among its
  equals, which a radix sort needs) goes through the elements in order, with a running value for each key.
- `fuse.py` moves row reductions into their only reader: softmax is one kernel.
- `split_reduce.py`: a sum becomes parts, which threads and workgroups divide, and the sum of the parts. It
  divides reductions to few elements, products of long sums, and on grids sums that give few workgroups.
- `compute_at.py` (Halide's term) computes a producer inside of its reader's loops: attention is one kernel,
  whose scores and weights are STAGEs of a block of rows. A result that is needed twice (a training step keeps
  the weights for the gradient) goes through memory.
- `index_put.py` finds kernels that go through all elements of memory to change a few (`t[index] = x`,
  `scatter`). They become a loop over the writers, after a copy if the other elements come from other memory.
- `scatter.py` inverts a reduction over one-hots (the gradient of a gather, a histogram): memory is filled,
  then each term is added to its element, in order. A GPU compares instead, unless a sum has more than 2^18
  elements: a few invocations that add in order take longer than all invocations that look at all terms.
- `interchange.py`: a sum of columns goes through memory row by row, a few rows at a time in registers, with
  the sums in the cache. No prefetcher follows a column from row to row, and rows that lie a power of two
  apart evict each other. Where columns are few, threads have parts of the rows. `accumulation.py` adds to
  memory in order.
- `polyphase.py`: the gradient of a strided convolution or pooling, and a transposed convolution, sum over
  zeros between elements. Split into phases (the term of filter banks), they sum over no zeros.
- `relayout.py` copies an operand of a large product first, if it is read under conditions, in long steps,
  or as computed scalars: the padding of a convolution, `a.T @ b`. A copy has an axis for each sum of ranges
  that the operand depends on (windows overlap: y + ky), so it holds each element once; the tiles of the
  product decide the order of its axes. So forward convolutions of any stride and dilation, and both
  gradients, become the one case that product kernels are fast at. With AVX-512, output channels are in the
  lanes and the weights are the panel; with WebAssembly's narrow vectors, columns are in the lanes.
- `dot_products.py`: products of narrow numbers become sums of DOT: 32-bit words that hold 4 or 2 elements.
  To tiles and panels a word is an element. `Target.dots` lists the kinds that a machine has. `window_dots.py`
  does the same for convolutions, whose channels become words, and for computed operands. `boxes.py` describes
  the elements that an operand reads.
- `narrow_storage.py`, for tensor cores: an operand has to be a conversion from the core's dtype, so memory
  keeps its 16 bits where the scheduler had stored the converted float32.
- `separate_offsets.py`, last: the constant part of indices moves into the launch's bindings, in multiples
  of the buffers' alignment. All rows and batches of a tensor share one kernel.
"""
