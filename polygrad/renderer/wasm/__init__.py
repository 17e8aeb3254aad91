"""WebAssembly bytes, through `polygrad/wasm`.

The body of a long loop is a function of its own (`outline.py`), because an engine starts a function in
baseline code and replaces it by optimised code only when it is called again. A call costs nanoseconds, and
runs some thousand instructions at least.
"""
