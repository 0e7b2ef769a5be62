"""`device`: the same models wherever samples are counted, and a sentence where there is no card."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from icscm import ICSCMClassifier, InvariantForestClassifier, InvariantTreeClassifier, SCMClassifier
from icscm.exceptions import IcscmError, StreamedWarning
from icscm.sources.bits.opening import open_bits
from icscm.sources.bits.packing import pack_matrix
from icscm.sources.gpu import card, sending
from icscm.sources.gpu.stores import CardBits, CardCodes, StreamedBits
from icscm.sources.memory import open_memory
from support.gpu_sources import draw_bits
from support.literal.gpu_kernels import make_stand_in

LEARNERS = [
    SCMClassifier(),
    ICSCMClassifier(),
    InvariantTreeClassifier(),
    InvariantForestClassifier(n_estimators=3, random_state=0),
]


@pytest.fixture
def stand_in(monkeypatch):
    monkeypatch.setattr(card, "find_card", make_stand_in)


def make_table(kind):
    X, y, environments, _ = draw_bits(np.random.default_rng(3), 300, 4)
    y = X[:, 0].astype(int) if len(np.unique(y)) < 2 else y
    if kind == "codes":
        X = X + np.random.default_rng(0).random(X.shape)
    return X, y, environments


def fit_on(device, kind):
    X, y, environments = make_table(kind)
    return SCMClassifier(device=device).fit(X, y, environments=environments)


@pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")
@pytest.mark.parametrize("kind", ["bits", "codes"])
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda each: type(each).__name__)
def test_same_model_and_file(learner, kind, stand_in, tmp_path):
    X, y, environments = make_table(kind)
    files = []
    for device in ("cpu", "cuda"):
        learner.set_params(device=device).fit(X, y, environments=environments)
        learner.save(tmp_path / device)
        files.append(((tmp_path / device).read_text(), learner.trace_))
        samples = open_memory(X, y, environments=environments, preparation=learner.prepare())
        is_there = isinstance(samples.source.piece.stores[0], CardBits | CardCodes)
        assert is_there == (device == "cuda")
    assert files[0] == files[1]


@pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")
def test_files_read_in_passes(stand_in, tmp_path):
    X, y, environments = make_table("codes")
    frame = pd.DataFrame(X[:, :5], columns=list("abcde")).assign(y=y, e=environments)
    frame.to_parquet(tmp_path / "t.parquet")
    found = [
        ICSCMClassifier(device=device).fit_dataset(tmp_path / "t.parquet", "y", environments="e")
        for device in ("cpu", "cuda")
    ]
    assert found[0].trace_ == found[1].trace_
    assert found[0].model_ == found[1].model_


@pytest.mark.filterwarnings("ignore::icscm.exceptions.FewEnvironmentsWarning")
@pytest.mark.parametrize("free", [2**40, 2**20])
def test_packed_stores(free, monkeypatch, tmp_path):
    """On the card, or sent for each look where they do not fit: the models are the same."""
    monkeypatch.setattr(card, "find_card", lambda: make_stand_in(free))
    monkeypatch.setattr(sending, "BUFFER_BYTES", 400)
    X, y, environments = make_table("bits")
    names = [f"s{i}" for i in range(len(X))]
    pack_matrix(X.astype(np.uint8), tmp_path / "x.bits", samples=names)
    kept = np.random.default_rng(1).permutation(len(X))[:250]
    labels = pd.DataFrame({"s": np.array(names)[kept], "y": y[kept], "e": environments[kept]})
    found = {}
    for device in ("cpu", "cuda"):
        learner = ICSCMClassifier(device=device)
        open_it = lambda: open_bits(  # noqa: E731
            tmp_path / "x.bits",
            labels,
            "y",
            environments="e",
            preparation=learner.prepare(),  # noqa: B023
        )
        if device == "cuda" and free == 2**20:
            with pytest.warns(StreamedWarning, match="sent to it again for each rule"):
                samples = open_it()
            assert isinstance(samples.source.piece.stores[0], StreamedBits)
        else:
            samples = open_it()
        found[device] = learner.fit_counts(samples)
    assert found["cpu"].trace_ == found["cuda"].trace_
    assert found["cpu"].model_ == found["cuda"].model_


def test_codes_larger_than_the_card(monkeypatch):
    monkeypatch.setattr(card, "find_card", lambda: make_stand_in(2**20))
    with pytest.raises(IcscmError, match=r"GB are free; give fewer columns, or leave device='cpu'"):
        fit_on("cuda", "codes")


def test_no_cupy(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    card.find_card.cache_clear()
    with pytest.raises(IcscmError, match=r"device='cuda' needs CuPy, which is not installed"):
        fit_on("cuda", "bits")


def test_without_cupy_no_table_is_read(monkeypatch, tmp_path):
    """The error came after seven seconds, when all columns had been read and cut into bins."""
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    card.find_card.cache_clear()
    learner = ICSCMClassifier(device="cuda")
    with pytest.raises(IcscmError, match="needs CuPy"):
        learner.fit_dataset(tmp_path / "absent.parquet", "y", environments="e")
    with pytest.raises(IcscmError, match="needs CuPy"):
        learner.fit("no table", "no outcome", environments="none")


def fail(message, kind="CUDARuntimeError"):
    raise type(kind, (RuntimeError,), {})(message)


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (lambda: 0, "found no NVIDIA card; leave device='cpu'"),
        (lambda: fail("cudaErrorInsufficientDriver: CUDA driver is too old"), "driver is too old"),
    ],
)
def test_no_card(count, told):
    runtime = SimpleNamespace(getDeviceCount=count)
    with pytest.raises(IcscmError, match=told):
        card.check_card(SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))


@pytest.mark.parametrize(
    ("kind", "told"),
    [("OutOfMemoryError", "the card's memory is full"), ("CUDARuntimeError", "the card failed")],
)
def test_a_card_that_fails(kind, told):
    with pytest.raises(IcscmError, match=told), card.translate_card_errors():
        fail("out of it", kind)


def test_auto(monkeypatch):
    """The processor for small tables, without a card, and where there is no room on it."""
    assert card.choose_card("auto", 2**20) is None
    monkeypatch.setattr(card, "find_card", make_stand_in)
    assert card.choose_card("auto", 2**20) is None
    assert card.choose_card("auto", 2**30) is not None
    monkeypatch.setattr(card, "find_card", lambda: make_stand_in(2**30))
    assert card.choose_card("auto", 2**30) is None

    def find_none():
        raise IcscmError("none")

    monkeypatch.setattr(card, "find_card", find_none)
    assert card.choose_card("auto", 2**30) is None


def test_unknown_device():
    with pytest.raises(IcscmError, match="device must be one of 'cpu', 'cuda', 'auto'"):
        fit_on("gpu", "bits")


class OnCard(np.ndarray):
    """An array that says of itself that it lies on a card, as CuPy's do."""

    @property
    def __cuda_array_interface__(self):
        return self.__array_interface__

    def get(self):
        return np.array(self)


@pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")
@pytest.mark.parametrize("kind", ["bits", "codes"])
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda each: type(each).__name__)
def test_arrays_on_the_card(learner, kind, stand_in):
    """They are learned from, and predicted for, where they lie; labels there are brought."""
    X, y, environments = make_table(kind)
    wanted = clone(learner).fit(X, y, environments=environments)
    given, labels = X.view(OnCard), y.view(OnCard)
    for device in ("cpu", "cuda"):
        found = (
            clone(learner).set_params(device=device).fit(given, labels, environments=environments)
        )
        assert found.trace_ == wanted.trace_
        assert (found.predict(given) == wanted.predict(X)).all()
        assert (found.predict_proba(given) == wanted.predict_proba(X)).all()
    with pytest.raises(ValueError, match="X has 1 features, but"):  # scikit-learn's own words
        found.predict(given[:, :1])


@pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")
def test_weights_and_missing_values_on_the_card(stand_in):
    X, y, environments = make_table("codes")
    X[:20, 1] = np.nan
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    found = [
        ICSCMClassifier(device=device).fit(X, y, environments=environments, sample_weight=weights)
        for device in ("cpu", "cuda")
    ]
    assert found[0].trace_ == found[1].trace_
    X[3, 2] = np.inf
    with pytest.raises(IcscmError, match="contains infinity in column 2"):
        ICSCMClassifier(device="cuda").fit(X, y, environments=environments)
