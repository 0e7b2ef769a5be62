"""Packing tables to stores: written completely or not at all, and read correctly."""

import errno
import gzip
from random import Random

import numpy as np
import pytest
import scipy.sparse as sp

from icscm.engine.bits import CollapsedMap, PresenceMap
from icscm.engine.counts import SourceInfo
from icscm.exceptions import IcscmError
from icscm.sources.bits import packing
from icscm.sources.bits import store as bitfile
from icscm.sources.bits.opening import StoreRows, make_packed_source, read_genomes
from icscm.sources.bits.packing import BitWriter, pack_matrix, pack_table
from icscm.sources.bits.store import open_store, unpack
from icscm.sources.countable import BinningConfig
from support import damage


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
    columns = [unpack(bits.read_feature(j), len(bits.samples)) for j in range(bits.n_features)]
    names = None if bits.names is None else [bits.names[j] for j in range(bits.n_features)]
    return np.column_stack(columns).astype(np.int64), bits.samples, names


@pytest.mark.parametrize("n_samples", [1, 2, 3, 4, 5, 63, 64, 65, 130])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r\r\n"])
@pytest.mark.parametrize("last_end", [True, False])
@pytest.mark.parametrize("chunk", [7, 2**20])
def test_what_was_packed_is_there(tmp_path, monkeypatch, n_samples, end, last_end, chunk):
    """Lines that ended in `\\r\\r\\n`, as bad copies do, were a StopIteration."""
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
    pack_table(write_table(tmp_path / "t.tsv.gz", X, names=names), tmp_path / "a.bits")
    samples = [f"g{i}" for i in range(70)]
    for k, form in enumerate((X, X.astype(bool), X.astype(float).T.copy().T, sp.coo_array(X))):
        pack_matrix(form, tmp_path / f"{k}.bits", names=names, samples=samples)
        assert (tmp_path / f"{k}.bits").read_bytes() == (tmp_path / "a.bits").read_bytes()


def test_endings_in_capitals_are_endings(tmp_path):
    """`x.rtab.GZ` was read as text: "is not a text file in UTF-8"."""
    path = write_table(tmp_path / "t.rtab.gz", np.eye(5, dtype=int))
    path = path.rename(tmp_path / "T.RTAB.GZ")
    pack_table(path, tmp_path / "T.BITS")
    for each in (path, tmp_path / "T.BITS"):
        assert read_genomes(each, ["gene 2"])["gene 2"].to_pylist() == [0, 0, 1, 0, 0]


def test_empty_lines_are_passed_over_however_they_end(tmp_path):
    """After `\\r\\n` an empty line was one with 0 values."""
    (tmp_path / "t.tsv").write_bytes(b"Gene\tg1\r\n\r\na\t1\r\n\n\r\r\n")
    pack_table(tmp_path / "t.tsv", tmp_path / "t.bits")
    assert read_store(tmp_path / "t.bits")[2] == ["a"]


def test_patterns_are_recognised_across_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "_BATCH", 7)
    for module in (bitfile, packing):
        monkeypatch.setattr(module, "BLOCK_PATTERNS", 4)
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
    "nothing": ("", "does not name genomes, separated"),
    "no table": ("hello\n", "does not name genomes, separated"),
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
        with pytest.raises(IcscmError, match="values other than 0 and 1"):
            pack_matrix(X, tmp_path / "t.bits")
    with pytest.raises(IcscmError, match="no feature"):
        pack_matrix(np.ones((3, 0)), tmp_path / "t.bits")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"names": ["a", "b"]}, "names must be 3, as in the matrix; got 2"),
        ({"samples": ["a"]}, "samples must be 4, as in the matrix; got 1"),
        ({"names": ["a", "b", "\ud800"]}, "a lone surrogate"),
        ({"samples": ["a", "b", "c", "\ud800"]}, "a lone surrogate"),
    ],
)
def test_names_that_do_not_fit_are_refused(tmp_path, wrong, message):
    """They gave a store that could not be read, or a UnicodeEncodeError."""
    with pytest.raises(IcscmError, match=message):
        pack_matrix(np.ones((4, 3)), tmp_path / "t.bits", **wrong)
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
        with pytest.raises(IcscmError, match="not a packed store, or is damaged"):
            open_store(store)
    store.write_bytes(content + b"x")
    with pytest.raises(IcscmError, match="its end is missing"):
        open_store(store)


def test_a_changed_byte_is_noticed_wherever(store):
    content = store.read_bytes()
    gaps = find_padding(content)
    places = [place for place in range(0, len(content), 97) if place not in gaps]
    assert len(places) > 50
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 4
        store.write_bytes(changed)
        with pytest.raises(IcscmError, match="not a packed store, or is damaged"):
            read_store(store)


def find_padding(content):
    """Bytes between sections, which nobody reads."""
    sections = damage.read_footer(content)["sections"].values()
    used = {b for each in sections for b in range(each["offset"], each["offset"] + each["length"])}
    return set(range(64, bitfile.TRAILER.unpack(content[-bitfile.TRAILER.size :])[0])) - used


def test_a_later_schema_is_not_guessed_at(store):
    content = store.read_bytes()
    later = damage.read_footer(content) | {"schema": 9}
    store.write_bytes(damage.replace_footer(content, later))
    with pytest.raises(IcscmError, match="does not have schema 1"):
        open_store(store)


KEYS = ["gene 3", "gene 17", "gene 250"]


def test_prediction_checks_what_it_reads(store):
    """A bit flipped in the words changed what `icscm predict` said, without a word: blocks were
    checked while counting and nowhere else.
    """
    content = store.read_bytes()
    for seed in range(30):
        store.write_bytes(damage.flip_word(content, Random(seed)))
        with pytest.raises(IcscmError, match="its words have changed; pack the table again"):
            read_genomes(store, KEYS)


def use_store(path):
    """What predictions and fits take from a store."""
    bits = open_store(path)
    labels = np.arange(len(bits.samples)) % 2
    info = SourceInfo(CollapsedMap(PresenceMap(bits.names), bits.copies), (0, 1), ("a",))
    rows = StoreRows(np.arange(len(labels)), labels, labels // 2)
    source = make_packed_source(bits, info, rows, BinningConfig())
    counts = [cube.counts.tolist() for cube in source.count_cubes()]
    return read_genomes(path, KEYS).to_pydict(), counts, read_store(path)[2]


@pytest.mark.parametrize("n_crafted", [100, pytest.param(400, marks=pytest.mark.thorough)])
def test_crafted_footers_are_refused(store, n_crafted):
    """With a right checksum two of three raised KeyError, TypeError and the like, and some were
    read as another table.
    """
    content, rng = store.read_bytes(), Random(0)
    _, counts, names = use_store(store)
    n_refused = 0
    for _ in range(n_crafted):
        crafted = damage.mutate_footer(content, rng)
        store.write_bytes(crafted)
        try:
            assert use_store(store)[1:] == (counts, names)
        except IcscmError:
            n_refused += 1
        else:
            assert crafted == content or damage.is_other_table(content, crafted)
    assert n_refused > 0.75 * n_crafted


@pytest.mark.parametrize(
    "text",
    [b"", b"[" * 100_000, b"\xff", b"1" * 5000, b"null", b'{"schema": 1}', b'{"schema": true}'],
    ids=lambda text: str(text[:12]),
)
def test_footers_that_are_none_are_refused(store, text):
    store.write_bytes(damage.replace_footer(store.read_bytes(), text))
    with pytest.raises(IcscmError, match="its footer is invalid"):
        open_store(store)


@pytest.mark.parametrize("n_bytes", [-1, 2**40, 2**64, 10**30, 0.5, True, None])
def test_sizes_that_cannot_be_are_refused(store, n_bytes):
    told = damage.read_footer(store.read_bytes())
    told["sections"]["names"]["length"] = n_bytes
    store.write_bytes(damage.replace_footer(store.read_bytes(), told))
    with pytest.raises(IcscmError, match="its footer is invalid"):
        open_store(store)


@pytest.mark.parametrize("n_crafted", [60, pytest.param(200, marks=pytest.mark.thorough)])
def test_crafted_sections_are_refused_or_another_table(store, n_crafted):
    """Sections that contradict each other, all checksums right, were indices beyond arrays."""
    content, rng = store.read_bytes(), Random(1)
    whole = use_store(store)
    for _ in range(n_crafted):
        crafted = damage.mutate_section(content, rng)
        store.write_bytes(crafted)
        try:
            found = use_store(store)
        except IcscmError:
            continue
        assert found == whole or damage.is_other_table(content, crafted)


def test_a_name_of_two_features_is_refused_where_it_is_asked_for(store):
    names = damage.read_section(store.read_bytes(), "names").replace(b"gene 18gene", b"gene 17gene")
    store.write_bytes(damage.replace_section(store.read_bytes(), "names", names))
    with pytest.raises(IcscmError, match="'gene 17' names 2 features"):
        read_genomes(store, KEYS)
    assert read_genomes(store, ["gene 3"]).num_rows == 70


@pytest.mark.parametrize("n_searched", [1, 7, 2**20])
def test_names_are_found_whatever_surrounds_them(tmp_path, monkeypatch, n_searched):
    """An empty name was found only as the first one, and a short one took a look at each place."""
    monkeypatch.setattr(bitfile, "_SEARCHED", n_searched)
    names = ["a", "aa", "", "ba", "ab", "é", "aé", "aaa", "b"]
    pack_matrix(np.eye(9), tmp_path / "t.bits", names=names)
    found = open_store(tmp_path / "t.bits").names
    assert [found.find(name) for name in names] == list(range(9))
    assert [found.find(name) for name in ("c", "aab", "\ud800", "\u0000")] == [None] * 4


def test_what_is_not_there_cannot_be_opened(tmp_path):
    with pytest.raises(IcscmError, match="cannot read"):
        open_store(tmp_path / "none.bits")


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("gene g1  g2 g3\nblaTEM 0 1\t1 \n mecA 1 0 0\r\n", None),
        ('"gene","g1","g2","g3"\n"blaTEM",0,1,1\n"mecA",1,0,0\n', None),
        ("gene;g1;g2;g3\nblaTEM;0;1;1\nmecA;1;0;0", None),
        ("gene|g1|g2|g3\nblaTEM|0|1|1\nmecA|1|0|0\n", "|"),
    ],
)
def test_other_delimiters_than_tabs(tmp_path, text, delimiter):
    """A table separated by blanks or commas was rejected, and there was no option for it."""
    (tmp_path / "genes.rtab").write_text(text)
    pack_table(tmp_path / "genes.rtab", tmp_path / "genes.bits", delimiter=delimiter)
    for name, words in (("genes.bits", ()), ("genes.rtab", (delimiter,))):
        table = read_genomes(tmp_path / name, ["blaTEM", "mecA"], *words)
        assert table.to_pydict() == {
            "genome": ["g1", "g2", "g3"],
            "blaTEM": [False, True, True],
            "mecA": [True, False, False],
        }
    with pytest.raises(IcscmError, match="must be one ASCII character"):
        pack_table(tmp_path / "genes.rtab", tmp_path / "x.bits", delimiter="ab")
