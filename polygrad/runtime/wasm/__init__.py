"""WASM: kernels on a JavaScript engine (`js.py`), or on wasmtime under CPython (`wasmtime.py`).

In Node and in isolated pages the data memory is shared, and workers instantiate the same modules over it
(`wasm_runtime/src/thread_pool.ts`, `thread.ts`, `barrier.ts`). Modules come by message, runs by shared
words: a run takes the workers that have seen all messages and never waits for one, because a page's thread
cannot. A captured step's barriers are inside its module, and so are the counters of parts: words in the
guard before the first buffer (`polygrad/shared_words.py`), cleared at barriers. Starting and joining a run
costs about a microsecond while the workers are awake, a barrier half of one. A page's own thread spins
where others sleep after 30 µs.
"""
