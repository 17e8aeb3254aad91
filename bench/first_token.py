"""From a file to a model's first token, in a process of its own: `python -m bench.first_token PATH`.

The last line printed is JSON: `value` seconds from the file to the token, after `read`, the seconds that the
file's bytes take to memory of the process. polygrad is imported before.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from polygrad import hf

PROMPT = [13, 8, 3, 507, 502, 497, 492, 487]


def main(path: str) -> dict[str, float]:
    start = time.perf_counter()
    nbytes = len(Path(path).read_bytes())
    read = time.perf_counter() - start
    start = time.perf_counter()
    answer = hf.load_hf(path, max_seq_len=64).generate(PROMPT, max_new_tokens=1, stop_tokens=[])
    value = time.perf_counter() - start
    return {"value": value, "read": read, "bytes": nbytes, "token": answer.tokens[0]}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
