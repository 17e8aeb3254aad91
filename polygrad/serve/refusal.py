"""Requests that are refused, in the shape of OpenAI's errors."""

from __future__ import annotations

from typing import Any

_TYPES = {401: "authentication_error", 429: "rate_limit_error", 500: "server_error", 503: "server_error"}


class Refusal(Exception):
    """`status`: the HTTP status. `parameter`: the entry of the body at fault. `code`: OpenAI's error code."""

    def __init__(
        self, status: int, message: str, parameter: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.parameter, self.code = status, message, parameter, code

    def body(self) -> dict[str, Any]:
        """The body of the response."""
        kind = _TYPES.get(
            self.status, "timeout_error" if self.status in (408, 504) else "invalid_request_error"
        )
        return {"error": {"message": self.message, "type": kind, "param": self.parameter, "code": self.code}}

    @property
    def headers(self) -> dict[str, str]:
        """Additional headers."""
        if self.status in (429, 503):
            return {"retry-after": "1"}
        return {"www-authenticate": "Bearer"} if self.status == 401 else {}


def unavailable() -> Refusal:
    """The refusal of a server that is stopping."""
    return Refusal(503, "the server is stopping", code="stopping")


def too_late(seconds: float) -> Refusal:
    """The refusal for an answer that exceeded the time limit."""
    return Refusal(504, f"the answer took more than {seconds:g} seconds", code="timeout")
