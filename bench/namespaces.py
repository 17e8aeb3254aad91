"""Two network namespaces of this machine, joined by a link whose bandwidth `tc` limits.

Needs root, `ip` and `tc` (iproute2), and a kernel with veth and the token bucket filter.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from bench.hosts import Unavailable

_NETWORK = "10.77.0"
_BURST = 1e-3  # seconds of data that pass at once: a timer's tick or more


@dataclass(frozen=True)
class Side:
    """One end: the namespace's name, its interface and address. `command`: what starts a program in it."""

    name: str
    interface: str
    address: str

    @property
    def command(self) -> list[str]:
        return ["ip", "netns", "exec", self.name]


@contextlib.contextmanager
def linked(bits: float) -> Iterator[tuple[Side, Side]]:
    """Both sides of a link of `bits` a second each way, which is removed at the end. Raises Unavailable."""
    for tool in ("ip", "tc"):
        if shutil.which(tool) is None:
            raise Unavailable(f"no namespaces: {tool} is not on PATH")
    sides = [Side(f"pg{os.getpid()}{c}", f"pg{c}", f"{_NETWORK}.{i}") for i, c in enumerate("ab", 1)]
    with contextlib.ExitStack() as made:
        for side in sides:
            _call(f"ip netns add {side.name}")
            made.callback(subprocess.run, ["ip", "netns", "del", side.name], check=False)
        a, b = sides
        _call(f"ip link add {a.interface} netns {a.name} type veth peer name {b.interface} netns {b.name}")
        burst = max(int(bits / 8 * _BURST), 1 << 18)
        for side in sides:
            at = f"-n {side.name}"
            _call(f"ip {at} addr add {side.address}/24 dev {side.interface}")
            _call(f"ip {at} link set {side.interface} up")
            _call(f"ip {at} link set lo up")
            rate = f"rate {int(bits)}bit burst {burst}b latency 20ms"
            _call(f"tc {at} qdisc add dev {side.interface} root tbf {rate}")
        yield a, b


def _call(command: str) -> None:
    done = subprocess.run(command.split(), capture_output=True, text=True)
    if done.returncode:
        words = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
        raise Unavailable(f"no namespaces: {command}: {words}")
