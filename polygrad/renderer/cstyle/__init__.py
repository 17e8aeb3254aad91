"""C, CUDA C++ and the Metal Shading Language.

`base.py` knows what operations are in any such language: floor division, a maximum that keeps NaN,
saturating casts (`renderer/convert.py`). An operation of several lines is a helper, a function before the
kernel that the same builder writes, once for all kernels of a file. A child has tables of types, suffixes and
functions, the signature, how bits are reinterpreted, and how dtypes live in registers and in memory. In C a
SIMD value is a vector type and its bools are a mask of integers. On GPUs (`lanes.py`) it is several scalars,
and only memory sees a vector.
"""
