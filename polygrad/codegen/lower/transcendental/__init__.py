"""EXP2, LOG2, SIN and POW of float32 and float64 as graphs of additions, multiplications and selections.

Results are within 2 ulp of the true value everywhere, and right at signed zeros, infinities, NaN, denormals
and huge arguments. There are no branches (except in slow_paths.py) and no tables in memory, and fused
operations are not needed, so the functions suit SIMD and GPUs. They know scalar nodes, no kernels.
"""
