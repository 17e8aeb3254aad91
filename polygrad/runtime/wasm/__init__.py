"""WASM: kernels on a JavaScript engine (`js.py`), or on wasmtime under CPython (`wasmtime.py`).

In Node and in isolated pages the data memory is shared, and workers instantiate the same modules over it
(`wasm_runtime/src/thread_pool.ts`, `thread.ts`, `barrier.ts`). Workers get modules by messages, and runs by
shared words. A run uses the workers that have processed all messages and does not wait for the others,
because a page's thread cannot wait. A captured step's module contains its barriers and the counters of parts:
words in the guard before the first buffer (`polygrad/shared_words.py`), cleared at barriers. Starting and
joining a run costs about a microsecond while the workers are awake, a barrier half a microsecond. A page's
own thread spins; the others sleep after 30 µs.
"""
