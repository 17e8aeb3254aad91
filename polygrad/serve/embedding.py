"""The thread that owns an encoder of texts: texts of several requests become one batch."""

from __future__ import annotations

import queue
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from polygrad.errors import PolygradError
from polygrad.hf.text_encoders import TextEncoder
from polygrad.serve.refusal import Refusal, unavailable

Deliver = Callable[["list[list[float]] | Refusal"], None]


@dataclass(eq=False)
class Job:
    """The texts of one request, as tokens. `deliver` is called in the engine's thread."""

    rows: Sequence[list[int]]
    deliver: Deliver
    is_cancelled: bool = False


class EncoderThread:
    """Embeds texts by `model`, while up to `queue_length` requests wait. See `EngineThread`."""

    def __init__(self, model: TextEncoder, queue_length: int) -> None:
        self.model, self._most = model, queue_length + 1
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._is_closed = False
        self._is_stopped = False
        self._pending = 0
        self._thread = threading.Thread(target=self._work, name="polygrad-engine", daemon=True)

    @property
    def pending(self) -> int:
        """How many requests are running or waiting."""
        return self._pending

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return max(0, self._pending - 1)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def submit(self, rows: Sequence[list[int]], deliver: Deliver) -> Job:
        """Take texts. Raises Refusal: 429 when the queue is full, 503 after `close`."""
        with self._lock:
            if self._is_closed:
                raise unavailable()
            if self._pending >= self._most:
                raise Refusal(429, "too many requests are waiting: try again later", code="queue_full")
            self._pending += 1
        job = Job(rows, deliver)
        self._jobs.put(job)
        return job

    def cancel(self, job: Job) -> None:
        """Drop these texts; their vectors are no longer needed."""
        job.is_cancelled = True

    def close(self) -> None:
        """Take nothing new."""
        with self._lock:
            self._is_closed = True

    def stop(self, timeout: float = 60.0) -> None:
        """End the thread; waiting requests get an error."""
        self.close()
        self._is_stopped = True
        self._jobs.put(None)
        if self._thread.ident is not None:
            self._thread.join(timeout)

    def _work(self) -> None:
        while True:
            jobs = self._take()
            if self._is_stopped:
                for job in jobs:
                    self._tell(job, unavailable())
                return
            if not jobs:
                continue
            try:
                rows = self.model.embed([row for job in jobs for row in job.rows]).tolist()
            except Exception as e:
                if not isinstance(e, PolygradError):
                    sys.stderr.write("polygrad serve: " + "".join(traceback.format_exception(e)))
                self._fail(jobs, e)
                continue
            for job in jobs:
                self._tell(job, rows[: len(job.rows)])
                rows = rows[len(job.rows) :]

    def _take(self) -> list[Job]:
        """The jobs of the next batch: at least one, up to the size of a batch."""
        jobs: list[Job] = []
        while sum(len(job.rows) for job in jobs) < self.model.batch_size:
            try:
                job = self._jobs.get(block=not jobs)
            except queue.Empty:
                break
            if job is None:
                return jobs
            if job.is_cancelled:
                self._leave()
            else:
                jobs.append(job)
        return jobs

    def _fail(self, jobs: list[Job], error: Exception) -> None:
        is_ours = not isinstance(error, PolygradError)
        for job in jobs:
            self._tell(
                job, Refusal(500, "the server failed" if is_ours else str(error), code="internal_error")
            )

    def _leave(self) -> None:
        with self._lock:
            self._pending -= 1

    def _tell(self, job: Job, what: Any) -> None:
        self._leave()
        try:
            job.deliver(what)
        except RuntimeError:  # the loop of a server that was stopped by force is closed
            self.close()
