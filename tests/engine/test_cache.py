"""The artefact cache: what it keeps, and that nothing on the disk can make it wrong or raise."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import time
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest

import polygrad
from polygrad.engine.cache import DiskCache, HostCache, cache_directory, use_host

DATA = bytes(range(256)) * 20
PACKAGE = Path(polygrad.__file__).parent


def key(i: int) -> str:
    return DiskCache.key("target", f"source {i}")


def entry(directory: Path, k: str) -> Path:
    return directory / k[:2] / k[2:]


def test_what_is_put_is_got_also_by_another_process_later(tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path / "made" / "on demand"))
    assert cache.get(key(0)) is None
    cache.put(key(0), DATA)
    cache.put(key(1), b"")
    for reader in (cache, DiskCache(cache.directory)):
        assert reader.get(key(0)) == DATA
        assert reader.get(key(1)) == b""
        assert reader.get(key(2)) is None


def test_a_key_depends_on_target_and_source_and_their_border() -> None:
    keys = [DiskCache.key(*x) for x in (("a", "bc"), ("ab", "c"), ("a", b"bd"), ("b", "bc"))]
    assert len(set(keys)) == 4
    assert all(len(k) == 64 and int(k, 16) >= 0 for k in keys)
    assert DiskCache.key("a", b"bc") == keys[0]


def test_a_key_depends_on_the_code_of_a_zipped_package(tmp_path: Path) -> None:
    """In a page and in Node polygrad is imported from an archive."""

    def key_in(name: str, change: str) -> str:
        archive = tmp_path / name / "polygrad.zip"
        archive.parent.mkdir()
        with zipfile.ZipFile(archive, "w") as zipped:
            for path in PACKAGE.rglob("*.py"):
                text = path.read_text(encoding="utf-8") + change * (path.name == "emit.py")
                zipped.writestr(f"polygrad/{path.relative_to(PACKAGE)}", text)
        code = "from polygrad.engine.cache import DiskCache; print(DiskCache.key('target', 'source'))"
        command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(archive)!r}); {code}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    first, other = key_in("first", ""), key_in("other", "# changed")
    assert len({first, key_in("again", ""), other}) == 2 and first != other


def _flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        lambda e: b"",
        lambda e: e[:10],
        lambda e: e[:-1],
        lambda e: e[: len(e) // 2],
        lambda e: e + b"x",
        lambda e: _flip(e, 0),
        lambda e: _flip(e, 5),
        lambda e: _flip(e, 20),
        lambda e: _flip(e, 28),
        lambda e: _flip(e, len(e) - 1),
        lambda e: bytes(len(e)),
    ],
    ids=[
        "empty", "header cut", "last byte gone", "half", "byte too many", "magic", "length", "checksum",
        "first byte", "last byte", "zeros",
    ],
)  # fmt: skip
def test_a_damaged_entry_is_a_miss_and_is_written_anew(tmp_path: Path, damage) -> None:
    DiskCache(str(tmp_path)).put(key(0), DATA)
    path = entry(tmp_path, key(0))
    path.write_bytes(damage(path.read_bytes()))
    assert DiskCache(str(tmp_path)).get(key(0)) is None
    DiskCache(str(tmp_path)).put(key(0), DATA)
    assert DiskCache(str(tmp_path)).get(key(0)) == DATA


def test_an_entry_under_another_key_is_a_miss(tmp_path: Path) -> None:
    DiskCache(str(tmp_path)).put(key(0), DATA)
    other = entry(tmp_path, key(1))
    other.parent.mkdir(exist_ok=True)
    entry(tmp_path, key(0)).rename(other)
    assert DiskCache(str(tmp_path)).get(key(1)) is None


def test_a_directory_in_an_entrys_place_is_a_miss(tmp_path: Path) -> None:
    entry(tmp_path, key(0)).mkdir(parents=True)
    cache = DiskCache(str(tmp_path))
    assert cache.get(key(0)) is None
    cache.put(key(0), DATA)
    assert cache.get(key(0)) == DATA, "memory still has it"
    assert [p.name for p in entry(tmp_path, key(0)).parent.iterdir()] == [key(0)[2:]], (
        "no temporary file is left"
    )


def test_a_directory_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = DiskCache(str(tmp_path / "file" / "cache"))
    cache.put(key(0), DATA)
    assert cache.get(key(0)) == DATA
    assert DiskCache(cache.directory).get(key(0)) is None


def test_a_read_only_directory_is_no_error(tmp_path: Path) -> None:
    DiskCache(str(tmp_path)).put(key(0), DATA)
    folders = [tmp_path, entry(tmp_path, key(0)).parent]
    for folder in folders:
        folder.chmod(0o555)
    try:
        if os.access(tmp_path, os.W_OK):
            pytest.skip("permissions do not bind this user (root)")
        cache = DiskCache(str(tmp_path))
        cache.put(key(1), DATA)
        assert cache.get(key(1)) == DATA
        assert DiskCache(str(tmp_path)).get(key(0)) == DATA
    finally:
        for folder in folders:
            folder.chmod(0o755)


def test_a_file_system_that_refuses_everything_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError("read-only file system")

    for name in ("makedirs", "replace", "utime", "scandir", "remove"):
        monkeypatch.setattr(os, name, refuse)
    cache = DiskCache(str(tmp_path), disk_bytes=0)
    for i in range(40):
        cache.put(key(i), DATA)
        assert cache.get(key(i)) == DATA


needs_users = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no users and modes here")


@needs_users
def test_directories_are_made_for_this_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        DiskCache(str(tmp_path / "a" / "cache")).put(key(0), DATA)
    finally:
        os.umask(before)
    for folder in (tmp_path / "a" / "cache", entry(tmp_path / "a" / "cache", key(0)).parent):
        assert folder.stat().st_mode & 0o777 == 0o700


@needs_users
@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("group", "other users may write to it .mode 770."),
        ("world", "other users may write to it .mode 707."),
        ("link", "it is a symbolic link"),
        ("owner", "it belongs to user 4711, not to user"),
    ],
)
def test_a_directory_that_others_may_write_to_is_not_used(
    how: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache"
    DiskCache(str(folder)).put(key(0), DATA)
    if how == "link":
        (tmp_path / "real").mkdir(0o700)
        folder = tmp_path / "link"
        folder.symlink_to(tmp_path / "cache")
    elif how == "owner":
        me, real = os.geteuid(), os.lstat
        monkeypatch.setattr(os, "lstat", lambda p: _OfUser(real(p), 4711 if str(p) == str(folder) else me))
    else:
        folder.chmod({"group": 0o770, "world": 0o707}[how])
    cache = DiskCache(str(folder))
    with pytest.warns(RuntimeWarning, match=f"is not used: {message}.*chmod 700 .* POLYGRAD_CACHE"):
        assert cache.get(key(0)) is None
    with warnings.catch_warnings(action="error"):
        cache.put(key(1), DATA)
        assert cache.get(key(1)) == DATA, "memory keeps it"
    assert not entry(tmp_path / "cache", key(1)).exists()


class _OfUser:
    """A file's status, as if the file were another user's."""

    def __init__(self, status: os.stat_result, user: int) -> None:
        self.st_mode, self.st_uid = status.st_mode, user


@needs_users
def test_an_entry_of_another_user_is_a_miss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    DiskCache(str(tmp_path)).put(key(0), DATA)
    user = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(polygrad.engine.cache, "why_not_private", lambda folder: "")
    assert DiskCache(str(tmp_path)).get(key(0)) is None


_DIES = """
import os, sys
from polygrad.engine.cache import DiskCache
left = int(sys.argv[2])

def dies(event, arguments):
    global left
    if event in ("open", "os.mkdir", "os.rename", "os.listdir", "os.scandir", "os.remove", "os.utime"):
        left -= 1
        if left < 0:
            os._exit(9)

cache = DiskCache(sys.argv[1], disk_bytes=0)
sys.addaudithook(dies)
cache.put("ab" + "0" * 62, b"x" * 100_000)
"""


@pytest.mark.e2e
def test_a_writer_that_is_killed_at_any_call_leaves_a_whole_entry_or_none(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    seen = set()
    for calls in range(12):
        folder = tmp_path / str(calls)
        done = subprocess.run([sys.executable, "-c", _DIES, str(folder), str(calls)], env=environment)
        cache = DiskCache(str(folder))
        got = cache.get("ab" + "0" * 62)
        assert got in (None, b"x" * 100_000)
        cache.put("ab" + "0" * 62, DATA)
        assert DiskCache(str(folder)).get("ab" + "0" * 62) == DATA
        seen.add((done.returncode, got is None))
    assert {(9, True), (9, False), (0, False)} <= seen


def test_memory_keeps_to_its_room_and_to_what_was_used_last() -> None:
    cache = DiskCache(None, memory_bytes=10 * len(DATA))
    for i in range(12):
        cache.put(key(i), DATA)
        assert cache.get(key(0)) == DATA
    kept = [i for i in range(12) if cache.get(key(i)) is not None]
    assert kept == [0, *range(3, 12)]
    cache.put(key(20), bytes(11 * len(DATA)))
    assert cache.get(key(20)) is None, "what is larger than the room is not kept"
    cache.put(key(21), DATA)
    assert cache.get(key(21)) == DATA


def test_the_disk_keeps_to_its_room_dropping_the_oldest(tmp_path: Path) -> None:
    per_folder = 8 * (len(DATA) + 28)
    cache = DiskCache(str(tmp_path), disk_bytes=256 * per_folder)
    keys = [f"ab{i:061x}0" for i in range(40)]
    for age, k in enumerate(keys):
        cache.put(k, DATA)
        stamp = time.time() - 10_000 + age
        os.utime(entry(tmp_path, k), (stamp, stamp))
    left = sorted(p.name for p in (tmp_path / "ab").iterdir())
    assert left == sorted(k[2:] for k in keys[-8:])


def test_the_newest_entry_stays_even_when_it_is_too_large(tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path), disk_bytes=256)
    for i in range(3):
        cache.put(f"cd{i:061x}0", DATA)
    assert [p.name for p in (tmp_path / "cd").iterdir()] == [f"{2:061x}0"]


def test_reading_an_old_entry_makes_it_young_and_dead_temporary_files_go(tmp_path: Path) -> None:
    k = f"ef{0:061x}0"
    DiskCache(str(tmp_path)).put(k, DATA)
    dead, fresh = tmp_path / "ef" / ".dead.1.0", tmp_path / "ef" / ".fresh.1.0"
    for path in (dead, fresh):
        path.write_bytes(b"half")
    long_ago = time.time() - 1e6
    os.utime(entry(tmp_path, k), (long_ago, long_ago))
    os.utime(dead, (long_ago, long_ago))
    assert DiskCache(str(tmp_path)).get(k) == DATA
    assert time.time() - entry(tmp_path, k).stat().st_mtime < 100
    DiskCache(str(tmp_path)).put(k, DATA)
    assert not dead.exists() and fresh.exists()


@pytest.mark.parametrize(
    ("environment", "want"),
    [
        ({"POLYGRAD_CACHE": "/a/b"}, "/a/b"),
        ({"POLYGRAD_CACHE": "0"}, None),
        ({"POLYGRAD_CACHE": ""}, None),
        ({"POLYGRAD_CACHE": "off"}, None),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, os.path.join("/x", "polygrad")),
        ({"HOME": "/h"}, os.path.join("/h/.cache", "polygrad")),
    ],
)
def test_the_environment_says_where(
    environment: dict[str, str], want: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("POLYGRAD_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert cache_directory() == want


def test_without_a_directory_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cache = DiskCache(None)
    cache.put(key(0), DATA)
    assert cache.get(key(0)) == DATA
    assert list(tmp_path.iterdir()) == []


class Host:
    """What a page does, with JavaScript's arrays."""

    class Array:
        def __init__(self, data: bytes) -> None:
            self.data = data

        def to_bytes(self) -> bytes:
            return self.data

    def __init__(self) -> None:
        self.entries: dict[str, bytes] = {}

    def find(self, k: str) -> Array | None:
        return self.Array(self.entries[k]) if k in self.entries else None

    def keep(self, k: str, entry: bytes) -> None:
        self.entries[k] = entry


def test_a_host_keeps_entries_and_damaged_ones_are_misses() -> None:
    host = Host()
    HostCache(host).put(key(0), DATA)
    assert list(host.entries) == [key(0)]
    assert HostCache(host).get(key(0)) == DATA and HostCache(host).get(key(1)) is None
    host.entries[key(1)] = host.entries[key(0)]  # another key's
    host.entries[key(0)] = _flip(host.entries[key(0)], 100)
    assert HostCache(host).get(key(0)) is None and HostCache(host).get(key(1)) is None


def test_the_default_cache_is_the_hosts_where_there_is_one() -> None:
    before = DiskCache.default()
    try:
        use_host(Host())
        assert isinstance(DiskCache.default(), HostCache)
    finally:
        use_host(None)
    assert type(DiskCache.default()) is DiskCache is type(before)


def test_threads_share_a_cache(tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path), memory_bytes=5 * len(DATA))
    wrong: list[int] = []

    def work(seed: int) -> None:
        for i in range(200):
            n = (i * seed) % 17
            cache.put(key(n), DATA + bytes([n]))
            if cache.get(key(n)) not in (None, DATA + bytes([n])):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 3, 5, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert cache._used == sum(len(v) for v in cache._memory.values()) <= cache.memory_bytes


_WRITER = """
import sys
from polygrad.engine.cache import DiskCache
directory, rounds = sys.argv[1], int(sys.argv[2])
for r in range(rounds):
    cache = DiskCache(directory, disk_bytes=256 * 300_000)
    for i in range(20):
        key, data = f"{i % 2:02x}{i:061x}0", bytes([i]) * 20_000
        found = cache.get(key)
        assert found in (None, data), "a reader saw half an entry"
        cache.put(key, data)
"""


@pytest.mark.e2e
def test_two_processes_write_the_same_entries(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _WRITER, str(tmp_path), "40"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    writers = [
        subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for writer in writers:
        _, error = writer.communicate(timeout=120)
        assert writer.returncode == 0, error
    reader = DiskCache(str(tmp_path))
    assert all(reader.get(f"{i % 2:02x}{i:061x}0") == bytes([i]) * 20_000 for i in range(20))
    assert not list(tmp_path.rglob(".*")), "no temporary file is left"


_FULL = """
import json, os, resource, sys
from polygrad.engine.cache import DiskCache

failures = []
for size in json.loads(sys.argv[2]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    folder = f"{sys.argv[1]}/{size}"
    cache = DiskCache(folder)
    cache.put("ab" + "0" * 62, b"x" * 50_000)
    if cache.get("ab" + "0" * 62) != b"x" * 50_000:
        failures.append(f"{size}: memory lost it")
    if DiskCache(folder).get("ab" + "0" * 62) not in (None, b"x" * 50_000):
        failures.append(f"{size}: the disk has something else")
    if any(name.startswith(".") for name in os.listdir(f"{folder}/ab")):
        failures.append(f"{size}: a part is left")
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
from polygrad import Tensor
if (Tensor([1.0, 2.0]) * 3).exp2().tolist() != [8.0, 64.0]:
    failures.append("a kernel is wrong")
print(json.dumps(failures))
"""


@pytest.mark.e2e
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the system has no limit of a file's size")
def test_a_disk_that_is_full_at_any_byte_costs_no_more_than_time(tmp_path: Path) -> None:
    sizes = [0, 1, 4, 27, 28, 29, 4096, 49_999, 50_027, 50_028, 60_000]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    environment["POLYGRAD_CACHE"] = str(tmp_path / "kernels")
    command = [sys.executable, "-c", _FULL, str(tmp_path), json.dumps(sizes)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr + done.stdout


@pytest.mark.parametrize("call", range(1, 8))
def test_a_disk_that_fails_at_any_call_costs_no_more_than_time(
    call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call of the file system that a write makes fails once."""
    left = call

    def counted(real: Any) -> Any:
        def function(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            left -= 1
            if not left:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*args, **kwargs)

        return function

    cache = DiskCache(str(tmp_path / "a"), disk_bytes=0)
    with monkeypatch.context() as patch:
        for name in ("mkdir", "replace", "scandir", "remove", "utime"):
            patch.setattr(os, name, counted(getattr(os, name)))
        patch.setattr("builtins.open", counted(open))
        cache.put("ab" + "0" * 62, DATA)
        assert cache.get("ab" + "0" * 62) == DATA
    assert DiskCache(cache.directory).get("ab" + "0" * 62) in (None, DATA)
    cache.put("ab" + "0" * 62, DATA)
    assert DiskCache(cache.directory).get("ab" + "0" * 62) == DATA


def test_a_clock_that_goes_backwards_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    keys = [f"ab{i:061x}0" for i in range(12)]
    for i, k in enumerate(keys):  # the clock is set back by a year at each
        monkeypatch.setattr(time, "time", lambda i=i: now - i * 3e7)
        cache = DiskCache(str(tmp_path), disk_bytes=256 * 100 * len(DATA))
        cache.put(k, DATA)
        stamp = max(now - i * 3e7, 1.0)
        os.utime(entry(tmp_path, k), (stamp, stamp))
        assert all(DiskCache(str(tmp_path)).get(old) == DATA for old in keys[: i + 1])
    small = DiskCache(str(tmp_path), disk_bytes=256 * 3 * (len(DATA) + 28))
    small.put(f"ab{99:061x}0", DATA)
    assert DiskCache(str(tmp_path)).get(f"ab{99:061x}0") == DATA, "the newest stays, whatever its time"
    assert len(list((tmp_path / "ab").iterdir())) == 3
