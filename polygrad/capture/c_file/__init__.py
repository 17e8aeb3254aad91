"""Captured steps as C: a file with kernels, small weights and a test, a header, and a file of large weights.

`write.py` is the whole way. `model.py` says what there is, as data. The kernels of the captured Program are
lowered anew from their ASTs (`engine/retarget.py`), once for each width of vectors (`variants.py`), and
written by `renderer/cstyle/portable.py`. `source.py` and `header.py` write the text around them,
`selftest.py` the test, whose results `reference.py` computes on device CPU from the same linear kernels.
"""
