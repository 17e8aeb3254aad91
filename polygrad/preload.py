"""What the first tensor in a page or in Node needs, imported, and nothing that asks for a device.

polygrad's loaders import this module before they take the snapshot of Python's memory that later starts begin
from. A snapshot holds no JavaScript objects, so the WASM backend, which opens its device when it is imported,
is not here.
"""

# ruff: noqa: F401 - they are imported to be there

from __future__ import annotations

import polygrad.bridge
import polygrad.capture.jit
import polygrad.engine.backends
import polygrad.engine.link
import polygrad.nn
import polygrad.renderer.emit
import polygrad.renderer.wasm.builder
import polygrad.renderer.wasm.driver
import polygrad.runtime.page_host
import polygrad.runtime.threads
import polygrad.runtime.wasm.device
import polygrad.tensor.tensor
import polygrad.wasm.sharing
import polygrad.wasm.wat
from polygrad.engine.cache import code_digest

code_digest()  # it is remembered
