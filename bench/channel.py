"""Requests and answers with a process that stays, a JSON object a line each way."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Mapping
from typing import Any

from bench.hosts import ROOT, Unavailable

TIMEOUT = 180  # seconds for one answer
CLOSING = 10  # seconds to end in


class Channel:
    """A process at the other end of two pipes; what it says on standard error comes through."""

    def __init__(self, command: list[str], environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if os.environ.get("BENCH_DEBUG") else subprocess.DEVNULL,
        )
        self._pending = b""
        self.closed = False

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Raises Unavailable when the answer is an error, or none comes."""
        assert self._process.stdin is not None
        if self.closed:
            raise Unavailable("its process was ended, as it gave no answer in time")
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            answer: dict[str, Any] = json.loads(self._line())
        except (BrokenPipeError, json.JSONDecodeError) as error:
            raise Unavailable(f"its process ended, {self._process.wait(10)}") from error
        if "error" in answer:
            raise Unavailable(answer["error"])
        return answer

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        deadline = time.monotonic() + TIMEOUT
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                self.close()
                raise Unavailable(f"no answer within {TIMEOUT} s")
            read = os.read(self._process.stdout.fileno(), 1 << 20)
            if not read:
                break
            self._pending += read
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def close(self) -> None:
        """The end of its input asks the process to end; what is busy or stuck is killed."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self.closed = True
        try:
            self._process.stdin.close()
            self._process.wait(CLOSING)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
