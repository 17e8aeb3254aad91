"""`python -m polygrad.manifest`: the manifest as JSON on standard output."""

from __future__ import annotations

import json
import sys

from polygrad.manifest.inspection import manifest

if __name__ == "__main__":
    json.dump(manifest(), sys.stdout, indent=1, ensure_ascii=False)
    sys.stdout.write("\n")
