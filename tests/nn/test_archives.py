"""Tar, zip and gzip files, written by Python's modules; damaged and hostile ones."""

from __future__ import annotations

import gzip
import io
import random
import struct
import tarfile
import zipfile
import zlib

import pytest
from damaged import check_refused

from polygrad import Tensor
from polygrad.errors import ArgumentError
from polygrad.nn.archives import gunzip, read_tar, read_zip
from polygrad.nn.state import TensorIO, fs_load, fs_store, tar_extract, zip_extract

FILES = {"a.txt": b"hello", "folder/b.bin": bytes(range(256)) * 5, "empty": b"", "tä/ß.txt": b"x" * 513}
LONG = "long/" * 40 + "name"


def tar_of(files, kind=tarfile.PAX_FORMAT, **fields):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=kind) as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            for key, value in fields.items():
                setattr(entry, key, value)
            tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def zip_of(files, method=zipfile.ZIP_STORED, **kwargs):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method, **kwargs) as z:
        for name, data in files.items():
            z.writestr(name, data)
    return out.getvalue()


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("files", [FILES, {}, {LONG: b"1", "z": b"2"}], ids=["files", "none", "long"])
def test_tar_files_are_read_as_python_reads_them(kind, files):
    found = read_tar(tar_of(files, kind), "t")
    assert {k: bytes(v) for k, v in found.items()} == files
    assert {k: bytes(v.data()) for k, v in tar_extract(tar_of(files, kind)).items()} == files


def test_links_and_directories_are_left_out_and_the_last_of_a_name_wins():
    whole = tar_of({"link": b""}, type=tarfile.SYMTYPE, linkname="/etc/passwd")[:512]
    whole += tar_of({"folder": b""}, type=tarfile.DIRTYPE)[:512]
    whole += tar_of({"a": b"old"})[:1024] + tar_of({"a": b"new"})
    assert {k: bytes(v) for k, v in read_tar(whole, "t").items()} == {"a": b"new"}


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_zip_files_are_read_as_python_reads_them(method, tmp_path):
    raw = zip_of(FILES, method)
    assert {k: bytes(v) for k, v in read_zip(raw, "z").items()} == FILES
    (tmp_path / "a.zip").write_bytes(b"a program before it" * 0 + raw)
    assert {k: bytes(v.data()) for k, v in zip_extract(tmp_path / "a.zip").items()} == FILES


def test_zip64_and_comments():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.comment = b"a comment PK"
        with z.open("big", "w", force_zip64=True) as f:
            f.write(b"12345")
        z.mkdir("folder")
    assert {k: bytes(v) for k, v in read_zip(out.getvalue(), "z").items()} == {"big": b"12345"}


def test_sizes_and_the_position_of_a_zip64_field():
    raw = with_zip64_field(DEFLATED, 24, 4000, len(zlib.compress(b"x" * 4000, wbits=-15)), 0)
    assert {k: bytes(v) for k, v in read_zip(raw, "z").items()} == {"a": b"x" * 4000}


def test_gzip_files_of_several_members():
    whole = gzip.compress(b"one") + gzip.compress(b"two") + b"\0" * 10
    assert gunzip(whole, "g") == b"onetwo"


# --- refused

NAMES = ["../up", "/absolute", "a/../../b", "C:/windows", "..\\up", "a\\..\\b", ""]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_leave_the_archive_are_refused(name):
    with pytest.raises(ArgumentError, match="leads out of the archive"):
        read_tar(tar_of({name: b"x"}), "t")
    raw = bytearray(zip_of({"y" * max(len(name), 1): b"x"}))
    if name:
        raw = bytearray(bytes(raw).replace(b"y" * len(name), name.encode()))
        with pytest.raises(ArgumentError, match="leads out of the archive"):
            read_zip(bytes(raw), "z")


def overlapping():
    """Two entries of the central directory that say the same place."""
    raw = zip_of({"a": b"x" * 10})
    at = raw.rindex(b"PK\1\2")
    end = raw.rindex(b"PK\5\6")
    entry = raw[at:end]
    return raw[:at] + entry + entry.replace(b"a", b"b") + struct.pack(
        "<4sHHHHIIH", b"PK\5\6", 0, 0, 2, 2, 2 * len(entry), at, 0
    )  # fmt: skip


def patched(raw: bytes, signature: bytes, offset: int, fmt: str, value: int) -> bytes:
    out = bytearray(raw)
    struct.pack_into(fmt, out, raw.rindex(signature) + offset, value)
    return bytes(out)


def with_zip64_field(raw: bytes, length: int, *values: int, cut: int = 0) -> bytes:
    """A zip file of one file whose sizes and position are in a ZIP64 field of so many bytes."""
    at, end = raw.rindex(b"PK\1\2"), raw.rindex(b"PK\5\6")
    field = struct.pack(f"<HH{len(values)}Q", 1, length, *values)
    field = field[: len(field) - cut]
    entry = patched(raw[at:end] + field, b"PK\1\2", 30, "<H", len(field))
    for place in (20, 24, 42):
        entry = patched(entry, b"PK\1\2", place, "<I", 0xFFFFFFFF)
    return patched(raw[:at] + entry + raw[end:], b"PK\5\6", 12, "<I", len(entry))


STORED, DEFLATED = zip_of({"a": b"x" * 40}), zip_of({"a": b"x" * 4000}, zipfile.ZIP_DEFLATED)
BAD_ZIPS = {
    "nothing": b"",
    "no_directory": b"PK\3\4" + b"\0" * 100,
    "cut": STORED[:-10],
    "overlap": overlapping(),
    "size": patched(STORED, b"PK\1\2", 24, "<I", 1 << 30),
    "compressed_size": patched(STORED, b"PK\1\2", 20, "<I", 1 << 30),
    "bomb": patched(DEFLATED, b"PK\1\2", 24, "<I", 10),
    "short": patched(DEFLATED, b"PK\1\2", 24, "<I", 5000),
    "crc": patched(STORED, b"PK\1\2", 16, "<I", 0),
    "encrypted": patched(STORED, b"PK\1\2", 8, "<H", 1),
    "method": patched(STORED, b"PK\1\2", 10, "<H", 99),
    "header": patched(STORED, b"PK\1\2", 42, "<I", 3),
    "header_outside": patched(STORED, b"PK\1\2", 42, "<I", 1 << 30),
    "count": patched(STORED, b"PK\5\6", 10, "<H", 60000),
    "directory": patched(STORED, b"PK\5\6", 16, "<I", 1 << 31),
    "zip64_without_field": patched(STORED, b"PK\1\2", 24, "<I", 0xFFFFFFFF),
    "zip64_cut": with_zip64_field(STORED, 24, 40, 40, 0, cut=1),
    "zip64_short": with_zip64_field(STORED, 16, 40, 40),
    "twice": zip_of({"a": b"1", "b": b"2"}).replace(b"PK\1\2", b"PK\1\2").replace(b"b", b"a"),
}


@pytest.mark.parametrize("name", BAD_ZIPS)
def test_damaged_zip_files_are_refused(name):
    check_refused("zip", name, lambda: zip_extract(BAD_ZIPS[name]))


def test_more_than_is_wanted_is_refused():
    with pytest.raises(ArgumentError, match="the files have 4000 bytes, more than 100"):
        read_zip(DEFLATED, "z", max_bytes=100)
    with pytest.raises(ArgumentError, match="more than 1000 decompressed bytes"):
        gunzip(gzip.compress(bytes(1 << 20)), "g", max_bytes=1000)


def header(**fields):
    entry = tarfile.TarInfo("a")
    for key, value in fields.items():
        setattr(entry, key, value)
    return entry.tobuf(tarfile.GNU_FORMAT)


def with_checksum(block: bytes) -> bytes:
    out = bytearray(block)
    out[148:156] = b" " * 8
    out[148:156] = b"%06o\0 " % sum(out)
    return bytes(out)


GOOD_TAR = tar_of({"a": b"x" * 600})
BAD_TARS = {
    "nothing": b"",
    "not_a_tar": b"x" * 2000,
    "checksum": b"b" + GOOD_TAR[1:],
    "cut": GOOD_TAR[:700],
    "huge": header(size=1 << 70) + bytes(1024),
    "not_octal": with_checksum(GOOD_TAR[:124] + b"99999999999\0" + GOOD_TAR[136:512]) + bytes(1024),
    "pax_length": header(type=tarfile.XHDTYPE, size=10) + b"99 path=b\n".ljust(512, b"\0"),
    "pax_size": header(type=tarfile.XHDTYPE, size=14) + b"14 size=-99999".ljust(512, b"\0") + GOOD_TAR,
    "name_not_utf8": with_checksum(b"\xff\xfe" + GOOD_TAR[2:512]) + GOOD_TAR[512:],
}


@pytest.mark.parametrize("name", BAD_TARS)
def test_damaged_tar_files_are_refused(name):
    check_refused("tar", name, lambda: tar_extract(BAD_TARS[name]))


BAD_GZIPS = {
    "only its signature": b"\x1f\x8b",
    "cut short": gzip.compress(b"x" * 99, mtime=0)[:-9],
    "no signature": b"x" * 40,
}


@pytest.mark.parametrize("name", BAD_GZIPS)
def test_damaged_gzip_files_are_refused(name):
    check_refused("gzip", name, lambda: gunzip(BAD_GZIPS[name], "gunzip"))


def test_an_empty_gzip_file_is_empty():
    assert gunzip(b"", "g") == b""


@pytest.mark.parametrize("kind", ["tar", "zip", "gzip"])
def test_files_with_changed_and_missing_bytes_are_read_or_refused(kind):
    """Never another error, and never more than was in it."""
    if kind == "gzip":
        whole, read = gzip.compress(b"some text " * 40), lambda raw: gunzip(raw, "g", 1 << 20)
    elif kind == "tar":
        whole, read = tar_of({**FILES, LONG: b"1"}), lambda raw: read_tar(raw, "t")
    else:
        whole, read = zip_of(FILES, zipfile.ZIP_DEFLATED), lambda raw: read_zip(raw, "z", 1 << 20)
    rng, refused = random.Random(1), 0
    for _ in range(600):
        bad = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            bad[rng.randrange(len(bad))] = rng.getrandbits(8)
        if rng.random() < 0.3:
            del bad[rng.randrange(len(bad)) :]
        try:
            read(bytes(bad))
        except ArgumentError:
            refused += 1
    assert refused > 100


# --- files of bytes


def test_a_tensor_of_bytes_is_a_file():
    raw = zip_of(FILES)
    f = TensorIO(Tensor(raw))
    assert f.readable() and f.seekable() and not f.writable()
    with zipfile.ZipFile(f) as z:
        assert z.read("a.txt") == b"hello" and z.namelist() == list(FILES)
    g = io.BufferedReader(TensorIO(Tensor(b"0123456789")))
    assert (g.read(3), g.seek(-2, io.SEEK_END), g.read(), g.read()) == (b"012", 8, b"89", b"")
    assert (g.seek(2), g.seek(3, io.SEEK_CUR), g.tell(), g.read(1)) == (2, 5, 5, b"5")
    for bad in (Tensor([1.0]), Tensor([[1]], dtype="uint8")):
        with pytest.raises(ArgumentError, match="uint8 tensor of one axis"):
            TensorIO(bad)


def test_bytes_are_kept_under_their_digest(tmp_path):
    t = Tensor([[1.0, 2.0], [3.0, 4.0]])
    digest = fs_store(t.T, tmp_path)
    assert fs_store(Tensor([1.0, 3.0, 2.0, 4.0]), tmp_path) == digest
    assert fs_load(digest, tmp_path, "float32").tolist() == [1, 3, 2, 4]
    assert fs_load(digest, tmp_path).dtype == "uint8"
    [path] = [p for p in tmp_path.rglob("*") if p.is_file()]
    path.write_bytes(b"other")
    for bad in (digest, "0" * 64, "../" + digest, "x"):
        with pytest.raises(ArgumentError, match=r"fs_load: (expected|the file is damaged: expected)"):
            fs_load(bad, tmp_path)


def test_deflated_data_that_goes_on_behind_its_size_is_refused():
    body = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = body.compress(b"x" * 1000) + body.flush()
    raw = bytearray(zip_of({"a": b"y" * len(data)}))
    at = bytes(raw).index(b"y" * len(data))
    raw[at : at + len(data)] = data
    for signature, method, crc, size in ((b"PK\3\4", 8, 14, 22), (b"PK\1\2", 10, 16, 24)):
        raw = bytearray(patched(bytes(raw), signature, method, "<H", 8))
        raw = bytearray(patched(bytes(raw), signature, crc, "<I", zlib.crc32(b"x" * 1000)))
        raw = bytearray(patched(bytes(raw), signature, size, "<I", 1000))
    assert bytes(read_zip(bytes(raw), "z")["a"]) == b"x" * 1000
    small = patched(bytes(raw), b"PK\1\2", 24, "<I", 999)
    with pytest.raises(ArgumentError, match="it has 1000 bytes or more instead of 999"):
        read_zip(small, "z")
