"""The metrics of a server, in Prometheus's text format."""

from __future__ import annotations

import bisect
from collections.abc import Callable

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Histogram:
    """A histogram of durations: the number that were not longer than each bound."""

    def __init__(self) -> None:
        self.counts, self.total = [0] * (len(_SECONDS) + 1), 0.0

    def add(self, seconds: float) -> None:
        """Add one duration."""
        self.counts[bisect.bisect_left(_SECONDS, seconds)] += 1
        self.total += seconds


class Metrics:
    """Of one server. `gauges`: by name, a line of help and what gives the number now. All methods are called
    by the thread of the web's side."""

    def __init__(self, gauges: dict[str, tuple[str, Callable[[], float]]]) -> None:
        self._gauges = gauges
        self._requests: dict[tuple[str, int], int] = {}
        self.prompt_tokens = self.answer_tokens = self.disconnected = 0
        self.duration, self.first_token = Histogram(), Histogram()

    def count_request(self, path: str, status: int, seconds: float) -> None:
        """Count a finished response. `path`: one of the server's routes, so that clients cannot add names."""
        key = (path, status)
        self._requests[key] = self._requests.get(key, 0) + 1
        self.duration.add(seconds)

    def text(self) -> str:
        """The text format of Prometheus, 0.0.4."""
        lines: list[str] = []

        def begin(name: str, kind: str, words: str) -> None:
            lines.extend((f"# HELP polygrad_{name} {words}", f"# TYPE polygrad_{name} {kind}"))

        begin("requests_total", "counter", "Responses, by route and status.")
        for (path, status), count in sorted(self._requests.items()):
            lines.append(f'polygrad_requests_total{{path="{path}",status="{status}"}} {count}')
        for name, value, words in (
            ("prompt_tokens_total", self.prompt_tokens, "Tokens of prompts that were taken."),
            ("answer_tokens_total", self.answer_tokens, "Tokens of answers."),
            ("disconnected_total", self.disconnected, "Clients that left before their answer ended."),
        ):
            begin(name, "counter", words)
            lines.append(f"polygrad_{name} {value}")
        for name, (words, read_value) in self._gauges.items():
            begin(name, "gauge", words)
            lines.append(f"polygrad_{name} {read_value():g}")
        for name, histogram, words in (
            ("request_seconds", self.duration, "From a request's arrival to the end of its response."),
            ("first_token_seconds", self.first_token, "From a request's arrival to its first token."),
        ):
            begin(name, "histogram", words)
            below = 0
            for bound, count in zip((*_SECONDS, "+Inf"), histogram.counts):
                below += count
                lines.append(f'polygrad_{name}_bucket{{le="{bound}"}} {below}')
            lines += [f"polygrad_{name}_sum {histogram.total:g}", f"polygrad_{name}_count {below}"]
        return "\n".join(lines) + "\n"
