"""Damaged files get one clear sentence: no crash, no traceback, nothing wrong in silence."""

import bz2
import gzip
import io
import subprocess
import sys
import zipfile
from unittest import mock

import dask
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from icscm.exceptions import IcscmError
from icscm.io.streams import open_table, read_file
from support.dask_files import open_dask_files

N_ROWS = 300
RANDOM = np.random.default_rng(0)
WORDS = np.array(["alpha", "beta", "a word that is longer"])[RANDOM.integers(0, 3, N_ROWS)]

# Reads files, and says how many of them were refused.
READ_ALL = """
import sys
from icscm.exceptions import IcscmError
from icscm.io.streams import open_table, read_file
from icscm.tables.columns import read_arrow

def use(table):
    for name in table.schema.names:
        read_arrow(table.column(name), name)

def read_whole(path):
    use(read_file(path))

def read_batches(path):
    reader = open_table(path)
    for batch in reader.read(reader.names, 100):
        use(batch)

def refuses(read, path):
    try:
        read(path)
    except IcscmError:
        return True
    return False

print(sum(refuses(read, path) for path in sys.argv[1:] for read in (read_whole, read_batches)))
"""


def make_feather(compression):
    table = pa.table(
        {
            "number": RANDOM.normal(size=N_ROWS),
            "text": pa.array(WORDS, mask=RANDOM.random(N_ROWS) < 0.2),
            "category": pa.array(WORDS).dictionary_encode(),
        }
    )
    stream = io.BytesIO()
    pyarrow.feather.write_feather(table, stream, compression=compression)
    return stream.getvalue()


def test_a_damaged_feather_file_does_not_crash_the_process(tmp_path):
    """Where text starts and ends, and the numbers of categories, were believed: one damaged file
    in twelve ended the process by a segmentation fault."""
    paths = []
    for compression in ("uncompressed", "lz4"):
        whole = make_feather(compression)
        for place in RANDOM.integers(0, len(whole) - 8, 40):
            damaged = whole[:place] + b"\xff" * 8 + whole[place + 8 :]
            paths.append(tmp_path / f"{len(paths)}.feather")
            paths[-1].write_bytes(damaged)
    command = [sys.executable, "-c", READ_ALL, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > len(paths) // 2


@pytest.mark.parametrize("name", ["x.parquet", "x.feather"])
def test_text_that_is_none_is_refused(tmp_path, name):
    """Bytes that are no UTF-8 in a binary file were a UnicodeDecodeError later on."""
    column = pa.array([b"caf\xe9", b"plain"]).cast(pa.binary())
    column = pa.StringArray.from_buffers(2, *column.buffers()[1:])
    table = pa.table({"text": column})
    if name == "x.parquet":
        pq.write_table(table, tmp_path / name)
    else:
        pyarrow.feather.write_feather(table, tmp_path / name)
    with pytest.raises(IcscmError, match=r"cannot be read as (Parquet|Arrow): .*UTF8"):
        read_file(tmp_path / name)


@pytest.mark.parametrize("name", ["x.parquet", "k=1/x.parquet"])
def test_the_checksums_of_parquet_pages_are_looked_at(tmp_path, name):
    """A page whose checksum was wrong was read as if it were right."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    table = pa.table({"number": range(1000)})
    options = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    pq.write_table(table, path, **options)
    content = bytearray(path.read_bytes())
    content[2000] ^= 1
    path.write_bytes(content)
    with pytest.raises(IcscmError, match="CRC checksum verification failed"):
        read_file(tmp_path)


TEXT = "number,word\n" + "".join(f"{i},{word}\n" for i, word in enumerate(WORDS))


def pack_zip(method):
    def pack(text):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", method) as archive:
            archive.writestr("x.csv", text)
        return stream.getvalue()

    return pack


def pack_zstd(text):
    stream = pa.BufferOutputStream()
    with pa.CompressedOutputStream(stream, "zstd") as packed:
        packed.write(text)
    return stream.getvalue().to_pybytes()


PACKED = {
    "x.csv.gz": gzip.compress,
    "x.csv.bz2": bz2.compress,
    "x.csv.zst": pack_zstd,
    "stored.zip": pack_zip(zipfile.ZIP_STORED),
    "deflated.zip": pack_zip(zipfile.ZIP_DEFLATED),
    "bzip2.zip": pack_zip(zipfile.ZIP_BZIP2),
    "lzma.zip": pack_zip(zipfile.ZIP_LZMA),
}


@pytest.mark.parametrize("name", PACKED)
def test_damaged_packed_files(tmp_path, name):
    """What unpacks deflated or LZMA data in a .zip raised zlib.error and LZMAError."""
    path, whole = tmp_path / name, PACKED[name](TEXT.encode())
    path.write_bytes(whole)
    assert read_file(path).num_rows == N_ROWS
    middle = len(whole) // 2
    path.write_bytes(whole[: middle - 8] + b"\xff" * 16 + whole[middle + 8 :])
    for content in (path.read_bytes(), whole[:middle], whole[:-9]):
        path.write_bytes(content)
        with pytest.raises(IcscmError):
            read_file(path)


def test_a_damaged_table_in_a_zip(tmp_path):
    """A Feather file in a .zip that was none was an error of pyarrow."""
    for name in ("x.feather", "x.parquet"):
        with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
            archive.writestr(name, b"PAR1 and so on")
        with pytest.raises(IcscmError, match=rf"x.zip \({name}\) cannot be read as"):
            open_table(tmp_path / "x.zip")


def test_a_short_row_that_is_no_text(tmp_path, capfd):
    """A traceback was printed before the error, and the row was not named."""
    path = tmp_path / "x.csv"
    path.write_bytes(b"a,b,c\n" + b"1,2,3\n" * 3000 + b"\xff\xfe,2\n1,2,3\n")
    with pytest.raises(IcscmError, match=r"row 3,001 below the header of .* has 2 fields"):
        read_file(path)
    assert capfd.readouterr().err == ""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_damaged_parquet_file_that_workers_read(tmp_path):
    """What pyarrow raised on a worker came through as it was."""
    path = tmp_path / "x.parquet"
    columns = {"number": range(N_ROWS), "y": [0, 1] * (N_ROWS // 2)}
    pq.write_table(pa.table(columns), path, compression="zstd", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[100:400] = bytes(300)
    path.write_bytes(content)
    refused = pytest.raises(IcscmError, match=r"x\.parquet cannot be read: ")
    with dask.config.set(scheduler="synchronous"), refused:
        open_dask_files(path, "y")


def test_no_room_for_threads_is_told_and_does_not_hang(tmp_path):
    """With 16 MB of address space left `check` waited for ever for threads of pyarrow's."""
    (tmp_path / "t.csv").write_text("x,y\n1,2\n")
    error = OSError(12, "Cannot allocate memory")
    with (
        mock.patch("icscm.io.lines.mmap.mmap", side_effect=error),
        pytest.raises((MemoryError, IcscmError), match="memory"),
    ):
        read_file(tmp_path / "t.csv")
