"""What a script sees of its surroundings; ends with the status it is told."""

import inspect
import json
import os
import sys
from pathlib import Path

import polygrad

here = Path(__file__).resolve()
seen = {
    "arguments": sys.argv[1:],
    "main": __name__,
    "beside": (here.parent / "wasm_device.py").exists(),
    "data": Path("data.txt").read_text() if Path("data.txt").exists() else None,
    "device": os.environ.get("DEVICE"),
    "source": "__version__" in inspect.getsource(polygrad),
    "platform": sys.platform,
}
if os.environ.get("WRITE"):
    Path("written.txt").write_text("from Python\n")
print("to standard error", file=sys.stderr)
print(json.dumps(seen))
sys.exit(int(sys.argv[1]))
