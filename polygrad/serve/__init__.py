"""A server of one model with OpenAI's interface: `polygrad serve MODEL`.

`start.py` binds a port and runs until it is told to stop; `app.py` has the routes and all that guards them;
`parameters.py` reads bodies and `answers.py` writes them; `generating.py` and `embedding.py` are the thread
that owns the model. The event loop submits requests and receives pieces; it never touches the model.

It needs the packages starlette and uvicorn, `pip install "polygrad[serve]"`; this module imports neither.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from polygrad.errors import DeviceError
from polygrad.hf.instances import HFInstance
from polygrad.serve.limits import Limits

__all__ = ["Limits", "serve"]

_PACKAGES = ("starlette", "uvicorn", "h11")


def serve(
    model: HFInstance,
    name: str,
    host: str = "127.0.0.1",
    port: int = 8000,
    api_key: str | None = None,
    limits: Limits | None = None,
    log_requests: bool = False,
) -> None:
    """Serve a model under a name until SIGTERM or Ctrl-C.

    `port`: 0 for a free one; the address is written to standard error. `api_key`: the key that clients must
    send. Raises DeviceError where a package is missing, ArgumentError for a model that neither writes nor
    embeds.
    """
    for package in _PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise DeviceError(f'serve: the package {package} is not installed: pip install "polygrad[serve]"')
    start: Any = importlib.import_module("polygrad.serve.start")
    start.run(model, name, host, port, api_key, limits or Limits(), log_requests)
