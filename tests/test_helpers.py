"""Small things that every layer uses."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from polygrad.helpers import LRU, env_int, write_file


def test_what_was_used_least_recently_goes_first() -> None:
    cache: LRU[str, int] = LRU(100)
    for i, key in enumerate("abc"):
        cache.put(key, i, 30)
    assert cache.get("a") == 0  # used now: after c
    cache.put("d", 3, 30)
    assert [key for key, _ in cache.items()] == ["c", "a", "d"]
    assert cache.get("b") is None and cache.nbytes == 90


def test_a_limit_is_in_bytes_not_in_entries() -> None:
    cache: LRU[int, str] = LRU(1000)
    for i in range(100):
        cache.put(i, "small", 10)
    assert len(cache) == 100
    cache.put(100, "large", 995)
    assert cache.items() == [(100, "large")] and cache.nbytes == 995


def test_the_newest_stays_however_large() -> None:
    cache: LRU[int, str] = LRU(10)
    cache.put(0, "a", 5)
    cache.put(1, "b", 500)
    assert cache.items() == [(1, "b")]
    cache.put(2, "c", 5)
    assert cache.items() == [(2, "c")]


def test_a_value_put_again_counts_once() -> None:
    cache: LRU[int, str] = LRU(100)
    for nbytes in (10, 60, 20):
        cache.put(0, "again", nbytes)
    assert cache.nbytes == 20 and len(cache) == 1
    cache.clear()
    assert cache.nbytes == 0 and cache.get(0) is None


def test_the_environment_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, value in (("3", 3), ("", 7), ("12", 12)):
        monkeypatch.setenv("POLYGRAD_TEST_NUMBER", text)
        assert env_int("POLYGRAD_TEST_NUMBER", 7) == value
    monkeypatch.delenv("POLYGRAD_TEST_NUMBER")
    assert env_int("POLYGRAD_TEST_NUMBER", 7) == 7


def test_a_file_is_written_whole_or_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write_file(path, [b"ab", memoryview(b"c")])
    path.chmod(0o640)

    def full() -> Iterator[bytes]:
        yield b"x" * 100_000
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_file(path, full())
    assert path.read_bytes() == b"abc" and os.listdir(tmp_path) == ["f"]
    link = tmp_path / "link"
    link.symlink_to("f")
    write_file(link, [b"new"], sync=True)
    assert link.is_symlink() and path.read_bytes() == b"new" and path.stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(os.name != "posix", reason="folders of this system are no files")
def test_a_file_is_on_the_disk_before_its_name_and_then_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a power failure leaves the old file or the new one."""
    path, calls = tmp_path / "f", []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(number: int) -> None:
        status = os.fstat(number)
        calls.append("folder" if stat.S_ISDIR(status.st_mode) else f"{status.st_size} bytes")
        fsync(number)

    def noted_replace(source: str, target: str) -> None:
        calls.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    write_file(path, [b"abc"], sync=True)
    assert calls == ["3 bytes", "rename", "folder"]
    calls.clear()
    write_file(path, [b"abc"])
    assert calls == ["rename"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_written_as_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_bytes)
        write_file(pipe, [b"through"])
        assert read.result(60) == b"through"
