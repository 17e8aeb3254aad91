"""A training step on a WEBGPU device that is lost just before call 0, 1, 2, ... of its host: each time there
has to be an error that says so, and the next step has to be right on a new device. Prints the number of calls.
"""

from __future__ import annotations

import itertools
from typing import Any

from polygrad import Tensor
from polygrad.engine.devices import Device
from polygrad.errors import DeviceError
from polygrad.runtime.webgpu import device


class LosingHost:
    """A host whose device is lost just before the call `at`, counted from 0."""

    def __init__(self, host: Any, at: int) -> None:
        self.host, self.at, self.calls = host, at, 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.host, name)
        if not callable(found):
            return found

        def call(*args: Any, **options: Any) -> Any:
            if self.calls == self.at:
                self.host.close()
            self.calls += 1
            return found(*args, **options)

        return call


def step() -> list[Any]:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]], device="WEBGPU", requires_grad=True)
    state = Tensor([1.0, 1.0], device="WEBGPU").realize()
    (x @ x).relu().sum().backward()
    state.assign(state + x.detach().sum(0)).realize()
    assert x.grad is not None
    return [x.grad.tolist(), state.tolist()]


def main() -> None:
    expected, open_host = step(), device.default_host
    for at in itertools.count():
        Device["WEBGPU"].host.close()
        losing = LosingHost(open_host(), at)
        device.default_host = lambda host=losing: host
        assert Device["WEBGPU"].host is losing
        device.default_host = open_host
        try:
            assert step() == expected
        except DeviceError as error:
            assert "lost" in str(error), error
            assert losing.lost
        if not losing.lost:
            print(at)  # that was all calls
            return
        assert step() == expected and Device["WEBGPU"].host is not losing


main()
