"""The thread that owns a language model: it takes requests, runs the Scheduler, and hands pieces out."""

from __future__ import annotations

import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from polygrad.errors import PolygradError
from polygrad.generation.requests import Piece, Request
from polygrad.generation.scheduler import Sequence as Running
from polygrad.hf.instances import LanguageModel
from polygrad.serve.refusal import Refusal, unavailable

# A message about an answer: its index within the request, and pieces or an error.
Deliver = Callable[[int, "list[Piece] | Refusal"], None]


@dataclass(eq=False)
class PendingChoice:
    """One answer that is being generated. `deliver` is called in the engine's thread."""

    index: int
    request: Request
    deliver: Deliver
    submitted: float = field(default_factory=time.monotonic)
    sequence: Running | None = None


class EngineThread:
    """Generates answers of `model`, up to `max_batch` at once, while up to `queue_length` wait.

    `submit`, `cancel` and `stop` may be called by any thread; they put a command into the engine's queue.
    """

    def __init__(self, model: LanguageModel, queue_length: int) -> None:
        self.model, self._most = model, model.max_batch + queue_length
        self._commands: queue.SimpleQueue[tuple[str, list[PendingChoice]]] = queue.SimpleQueue()
        self._places: dict[PendingChoice, None] = {}  # those that the thread knows, in order
        self._lock = threading.Lock()
        self._pending = 0  # answers that were taken and have not ended
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name="polygrad-engine", daemon=True)
        model.scheduler  # noqa: B018 - made here, so that other threads find it

    @property
    def pending(self) -> int:
        """How many answers are running or waiting."""
        return self._pending

    @property
    def waiting(self) -> int:
        """The number of waiting answers."""
        return max(0, self._pending - self.model.max_batch)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def submit(self, requests: Sequence[Request], deliver: Deliver) -> list[PendingChoice]:
        """Take requests, all or none. Raises Refusal: 429 when the queue is full, 503 after `close`."""
        places = [PendingChoice(i, request, deliver) for i, request in enumerate(requests)]
        with self._lock:
            if self._is_closed:
                raise unavailable()
            if self._pending + len(places) > self._most:
                raise Refusal(429, "too many requests are waiting: try again later", code="queue_full")
            self._pending += len(places)
        self._commands.put(("submit", places))
        return places

    def cancel(self, places: list[PendingChoice]) -> None:
        """Cancel these answers; those that have ended are not affected."""
        self._commands.put(("cancel", places))

    def close(self) -> None:
        """Take nothing new."""
        with self._lock:
            self._is_closed = True

    def stop(self, timeout: float = 60.0) -> None:
        """End all answers with an error, and end the thread. Waits for it."""
        self.close()
        self._commands.put(("stop", []))
        if self._thread.ident is not None:
            self._thread.join(timeout)

    def _work(self) -> None:
        while self._obey():
            try:
                self.model.scheduler.step()
            except Exception as e:
                self._fail(e)
            self._hand_out()

    def _obey(self) -> bool:
        """Execute commands, waiting for one if there is no work; returns False to stop."""
        while True:
            try:
                command, places = self._commands.get(block=not self._places)
            except queue.Empty:
                return True
            if command == "stop":
                for place in list(self._places):
                    self._end(place, unavailable())
                return False
            for place in places:
                if command == "submit":
                    self._begin(place)
                elif place in self._places:
                    self._forget(place)

    def _begin(self, place: PendingChoice) -> None:
        self._places[place] = None
        try:
            place.sequence = self.model.scheduler.submit(place.request)
        except PolygradError as e:
            self._end(place, Refusal(400, str(e)))
        except Exception as e:
            self._report(e)
            self._end(place, Refusal(500, "the server failed", code="internal_error"))

    def _hand_out(self) -> None:
        for place in list(self._places):
            sequence = place.sequence
            assert sequence is not None
            pieces = [sequence.pieces.popleft() for _ in range(len(sequence.pieces))]
            is_done = sequence.is_done
            if is_done:
                self._forget(place)
            if pieces:
                self._tell(place, pieces)

    def _fail(self, error: Exception) -> None:
        """Handle a failed step: running answers and the scheduler's state are lost."""
        self._report(error)
        for place in list(self._places):
            self._end(place, Refusal(500, "the server failed", code="internal_error"))
        self.model.reset()

    @staticmethod
    def _report(error: Exception) -> None:
        sys.stderr.write("polygrad serve: " + "".join(traceback.format_exception(error)))

    def _end(self, place: PendingChoice, reason: Refusal) -> None:
        self._forget(place)
        self._tell(place, reason)

    def _forget(self, place: PendingChoice) -> None:
        del self._places[place]
        if place.sequence is not None:
            place.sequence.cancel()
        with self._lock:
            self._pending -= 1

    def _tell(self, place: PendingChoice, what: list[Piece] | Refusal) -> None:
        try:
            place.deliver(place.index, what)
        except RuntimeError:  # the loop of a server that was stopped by force is closed
            self.close()
