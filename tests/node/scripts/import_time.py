"""How long polygrad takes to import, in seconds."""

import json
import time

start = time.perf_counter()
from polygrad import Device, Tensor, nn  # noqa: E402, F401

print(json.dumps(time.perf_counter() - start))
