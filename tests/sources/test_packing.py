"""Tables in, packed stores out: whole or not at all, and never read wrongly."""

import errno
import gzip
import json

import numpy as np
import pytest
import scipy.sparse as sp

from icscm.exceptions import IcscmError
from icscm.sources.bits import packing
from icscm.sources.bits import store as bitfile
from icscm.sources.bits.packing import pack_matrix, pack_table
from icscm.sources.bits.source import unpack
from icscm.sources.bits.store import TRAILER, BitWriter, open_store


def write_table(path, X, *, end="\n", last_end=True, names=None):
    names = [f"gene {j}" for j in range(X.shape[1])] if names is None else names
    lines = ["\t".join(["Gene", *(f"g{i}" for i in range(len(X)))])]
    lines += ["\t".join([name, *map(str, X[:, j])]) for j, name in enumerate(names)]
    text = (end.join(lines) + end * last_end).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def read_store(path):
    """The matrix, the samples and the features of a store."""
    bits = open_store(path)
    for block in range(-(-bits.n_patterns // bitfile.BLOCK_PATTERNS)):
        bits.check_words(block)
    columns = [unpack(bits.words[k], len(bits.samples)) for k in bits.copies.numbers]
    names = None if bits.names is None else [bits.names[j] for j in range(bits.n_features)]
    return np.column_stack(columns).astype(np.int64), bits.samples, names


@pytest.mark.parametrize("n_samples", [1, 2, 3, 4, 5, 63, 64, 65, 130])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last_end", [True, False])
@pytest.mark.parametrize("chunk", [7, 2**20])
def test_what_was_packed_is_there(tmp_path, monkeypatch, n_samples, end, last_end, chunk):
    monkeypatch.setattr(packing, "CHUNK_BYTES", chunk)
    X = np.random.default_rng(n_samples).integers(0, 2, size=(n_samples, 40))
    X[:, 20:] = X[:, 19::-1]
    path = write_table(tmp_path / "t.Rtab", X, end=end, last_end=last_end)
    pack_table(path, tmp_path / "t.bits")
    found, samples, names = read_store(tmp_path / "t.bits")
    np.testing.assert_array_equal(found, X)
    assert samples == [f"g{i}" for i in range(n_samples)]
    assert names == [f"gene {j}" for j in range(40)]
    assert open_store(tmp_path / "t.bits").n_patterns == len(np.unique(X.T, axis=0))


def test_compressed_tables_and_matrices_give_the_same_store(tmp_path):
    X = np.random.default_rng(0).integers(0, 2, size=(70, 300))
    names = [f"unité {j}" for j in range(300)]
    seen = []
    pack_table(
        write_table(tmp_path / "t.tsv.gz", X, names=names),
        tmp_path / "a.bits",
        progress=lambda done, total: seen.append(done / total),
    )
    assert seen[-1] == 1
    samples = [f"g{i}" for i in range(70)]
    for k, form in enumerate((X, X.astype(bool), X.astype(float).T.copy().T, sp.coo_array(X))):
        pack_matrix(form, tmp_path / f"{k}.bits", names=names, samples=samples)
        assert (tmp_path / f"{k}.bits").read_bytes() == (tmp_path / "a.bits").read_bytes()


def test_patterns_are_recognised_across_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "_BATCH", 7)
    monkeypatch.setattr(bitfile, "BLOCK_PATTERNS", 4)
    X = np.random.default_rng(0).integers(0, 2, size=(4, 500))
    pack_matrix(X, tmp_path / "t.bits")
    found, samples, names = read_store(tmp_path / "t.bits")
    np.testing.assert_array_equal(found, X)
    assert open_store(tmp_path / "t.bits").n_patterns == 16
    assert names is None
    assert samples == ["0", "1", "2", "3"]


HEADER = "Gene\tg1\tg2\tg3\tg4\tg5\n"
MALFORMED = {
    "a short line": (HEADER + "a\t0\t1\t0\t1\t1\nb\t0\t1\n", "line 3 has 2 values.* 5 genomes"),
    "a long line": (HEADER + "a\t0\t1\t0\t1\t1\t1\nb\t0\t1\t0\t1\t1\n", "line 2 has 6 values"),
    "a two": (HEADER + "a\t0\t1\t2\t1\t1\n", r"line 2, column 4 \('g3'\) holds '2'"),
    "a two at the end": (HEADER + "\na\t0\t1\t1\t1\t2\n", r"line 3, column 6 \('g5'\) holds '2'"),
    "an empty cell": (HEADER + "a\t0\t\t1\t1\t1\n", r"column 3 \('g2'\) holds ''"),
    "spaces": (HEADER + "a 0 1 1 1 1\n", "line 2 has 0 values"),
    "a genome twice": ("Gene\tg1\tg1\na\t0\t1\n", "'g1' names more than one sample"),
    "a genome without name": ("Gene\tg1\t\na\t0\t1\n", "column 3 of the header has no name"),
    "a gene twice": (HEADER + "a\t0\t1\t0\t1\t1\n" * 2, "'a' names more than one feature"),
    "no line": (HEADER, "nothing to pack"),
    "nothing": ("", "does not begin with a line of genome names"),
    "no table": ("hello\n", "does not begin with a line of genome names"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_tables_are_one_clear_error(tmp_path, case):
    text, message = MALFORMED[case]
    (tmp_path / "t.tsv").write_text(text)
    with pytest.raises(IcscmError, match=message):
        pack_table(tmp_path / "t.tsv", tmp_path / "t.bits")
    assert [each.name for each in tmp_path.iterdir()] == ["t.tsv"]


@pytest.mark.parametrize(
    "content",
    [b"Gene\tg1\n\xff\xfe\t1\n", b"Gene\t\xff\xfe\n", gzip.compress(b"Gene\tg1\n")],
    ids=["names", "header", "compressed"],
)
def test_what_is_no_text_is_one_clear_error(tmp_path, content):
    (tmp_path / "t.tsv").write_bytes(content)
    with pytest.raises(IcscmError, match="UTF-8"):
        pack_table(tmp_path / "t.tsv", tmp_path / "t.bits")


def test_a_cut_off_archive_is_one_clear_error(tmp_path):
    X = np.random.default_rng(0).integers(0, 2, size=(50, 500))
    path = write_table(tmp_path / "t.tsv.gz", X)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(IcscmError, match="damaged"):
        pack_table(path, tmp_path / "t.bits")
    path.write_bytes(b"Gene\tg1\n")
    with pytest.raises(IcscmError, match="cannot read"):
        pack_table(path, tmp_path / "t.bits")
    assert not (tmp_path / "t.bits").exists()


@pytest.mark.parametrize(
    ("error", "raised", "message"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt, "^$"),
        (OSError(errno.ENOSPC, "No space left on device"), IcscmError, "disk is full"),
    ],
)
def test_interrupted_packing_leaves_nothing(tmp_path, monkeypatch, error, raised, message):
    path = write_table(tmp_path / "t.tsv", np.ones((5, 5), dtype=int))

    def fail(*_):
        raise error

    monkeypatch.setattr(BitWriter, "_write_footer", fail)
    with pytest.raises(raised, match=message):
        pack_table(path, tmp_path / "t.bits")
    assert [each.name for each in tmp_path.iterdir()] == ["t.tsv"]


def test_stores_are_not_overwritten_unasked(tmp_path):
    path = write_table(tmp_path / "t.tsv", np.ones((5, 5), dtype=int))
    pack_table(path, tmp_path / "t.bits")
    with pytest.raises(IcscmError, match="exists"):
        pack_table(path, tmp_path / "t.bits")
    pack_table(path, tmp_path / "t.bits", force=True)
    with pytest.raises(IcscmError, match="cannot read"):
        pack_table(tmp_path / "none.tsv", tmp_path / "u.bits")


def test_other_values_are_not_packed(tmp_path):
    for X in (np.full((3, 3), 2), sp.csr_array(np.full((3, 3), 2))):
        with pytest.raises(IcscmError, match="other values than 0 and 1"):
            pack_matrix(X, tmp_path / "t.bits")
    with pytest.raises(IcscmError, match="no feature"):
        pack_matrix(np.ones((3, 0)), tmp_path / "t.bits")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def store(tmp_path):
    X = np.random.default_rng(0).integers(0, 2, size=(70, 300))
    pack_matrix(X, tmp_path / "t.bits", names=[f"gene {j}" for j in range(300)])
    return tmp_path / "t.bits"


def test_a_store_that_was_cut_off_is_refused_wherever(store):
    content = store.read_bytes()
    for length in (0, 10, 64, 95, 96, 1000, len(content) // 2, len(content) - 1):
        store.write_bytes(content[:length])
        with pytest.raises(IcscmError, match="no packed store, or a damaged one"):
            open_store(store)
    store.write_bytes(content + b"x")
    with pytest.raises(IcscmError, match="its end is missing"):
        open_store(store)


def test_a_changed_byte_is_noticed_wherever(store):
    content = store.read_bytes()
    bits = open_store(store)
    gaps = find_padding(bits, len(content))
    places = [place for place in range(0, len(content), 97) if place not in gaps]
    assert len(places) > 50
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 4
        store.write_bytes(changed)
        with pytest.raises(IcscmError, match="no packed store, or a damaged one"):
            read_store(store)


def find_padding(bits, size):
    """Bytes between sections, which nobody reads."""
    sections = bits._sections.values()
    used = {b for each in sections for b in range(each["offset"], each["offset"] + each["length"])}
    footer = TRAILER.unpack(bits._content[-TRAILER.size :])[0]
    return set(range(64, footer)) - used


def test_a_later_schema_is_not_guessed_at(store):
    content = store.read_bytes()
    offset, length, _, magic = TRAILER.unpack(content[-TRAILER.size :])
    footer = json.loads(content[offset : offset + length]) | {"schema": 9}
    text = json.dumps(footer).encode()
    trailer = TRAILER.pack(offset, len(text), bitfile.zlib.crc32(text), magic)
    store.write_bytes(content[:offset] + text + trailer)
    with pytest.raises(IcscmError, match="schema 9"):
        open_store(store)


def test_what_is_not_there_cannot_be_opened(tmp_path):
    with pytest.raises(IcscmError, match="cannot read"):
        open_store(tmp_path / "none.bits")
