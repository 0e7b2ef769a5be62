"""The package as a whole: importing, compiling, running, documenting."""

import importlib
import json
import re
from pathlib import Path

import pandas
import pytest
from click.testing import CliRunner

import icscm
from icscm import SCMClassifier
from icscm.cli import main
from support.processes import run_code

HEAVY = ("numpy", "sklearn", "numba", "pandas", "pyarrow")
# Of these, no command that only uses a model file needs anything.
UNUSED = (
    "sklearn",
    "numba",
    "pandas",
    "scipy.sparse",
    "scipy.special._basic",  # the package without its compiled functions
    "scipy.stats._stats_py",
    "joblib",
    "pyarrow.dataset",
    "icscm.engine.binning",
    "icscm.search.greedy",
)
# scikit-learn only names them; they took half of the time of `icscm fit`.
POSTPONED = ("scipy.stats._stats_py", "scipy.special._basic", "sklearn.metrics", "sklearn.dummy")

# Imports and commands in one process, one after the other; prints what was imported after each.
IMPORT_STEP_BY_STEP = """
import json, sys
from contextlib import redirect_stdout
from io import StringIO

heavy, unused, postponed, model, table = json.loads(sys.argv[1])
asked_for_compiler = []

class NoCompiler:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numba", "llvmlite"):
            asked_for_compiler.append(name)
            raise ImportError(f"{name} is not wanted")

def list_imported(names):
    return [name for name in names if name in sys.modules]

def run_command(*words):
    with redirect_stdout(StringIO()) as output:
        main(list(words), standalone_mode=False)
    return [list_imported(unused), len(output.getvalue())]

sys.meta_path.insert(0, NoCompiler())
told = {}
import icscm
told["import icscm"] = list_imported(heavy)
from icscm.cli import main
told["import the commands"] = list_imported([name for name in heavy if name != "numpy"])
told["show"] = run_command("show", model)
told["export"] = run_command("export", model, "--to", "sql")
told["predict"] = run_command("predict", model, table)
from icscm._lazy import postpone_imports
postpone_imports()
from icscm import ICSCMClassifier
told["asked for the compiler"] = asked_for_compiler
sys.meta_path.pop(0)
import icscm.estimators, icscm.validation.stability, icscm.validation.tuning
told["fit"] = list_imported(postponed)
from scipy import special, stats
told["scipy"] = [special.logsumexp([0.0]), stats.norm.ppf(0.5), special._basic is not None]
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """What was imported after each step of one process, and what the process said."""
    folder = tmp_path_factory.mktemp("imports")
    frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": ["u", "v", "u", "v"]})
    model, table = folder / "model.json", folder / "new.csv"
    SCMClassifier().fit(frame, [0, 0, 1, 1]).save(model)
    frame.to_csv(table, index=False)
    names = json.dumps([HEAVY, UNUSED, POSTPONED, str(model), str(table)])
    done = run_code(IMPORT_STEP_BY_STEP, names)
    return json.loads(done.stdout), done.stderr


def test_import_is_silent_and_lazy(imported):
    told, complaints = imported
    assert told["import icscm"] == []
    assert complaints == ""


def test_help_needs_no_library_of_data(imported):
    """The commands and their options are known without tables, kernels or scikit-learn."""
    told, _ = imported
    assert told["import the commands"] == []


@pytest.mark.parametrize("command", ["show", "export", "predict"])
def test_commands_on_a_model_file_import_little(imported, command):
    """They took 2.5 to 3.2 s, most of it the import of scikit-learn, which none of them uses."""
    told, _ = imported
    unnecessary, n_printed = told[command]
    # pyarrow itself imports pandas with the first array that it makes of a list
    allowed = {"pandas"} if command == "predict" else set()
    assert {*unnecessary} <= allowed
    assert n_printed > 20


def test_a_saved_model_needs_no_compiler(imported):
    """Half of the time that `icscm show` took went into importing numba, which it never used."""
    told, _ = imported
    assert told["asked for the compiler"] == []


def test_fit_imports_what_it_uses(imported):
    """Half of the time of `icscm fit` was scipy.stats, which scikit-learn only names."""
    told, _ = imported
    assert told["fit"] == []
    assert told["scipy"] == [0.0, 0.0, True]


def test_the_stub_lists_the_public_names():
    """The list of names in `__init__.py` lacked one of `__init__.pyi`; now there is one list."""
    stub = Path(icscm.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    listed = re.findall(r"^from ([\w.]+) import (\w+) as \2$", stub, re.MULTILINE)
    assert sorted(name for _, name in listed) == sorted(icscm.__all__)
    assert "ICSCMClassifier" in icscm.__all__
    for home, name in listed:
        assert getattr(importlib.import_module(home), name) is getattr(icscm, name)


def test_public_names_exist():
    assert set(icscm.__all__) <= set(dir(icscm))
    for name in icscm.__all__:
        assert getattr(icscm, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Wood'"):
        icscm.Wood  # noqa: B018


FIT_AND_COUNT_COMPILATIONS = """
import json, numpy as np
from icscm import ICSCMClassifier
from icscm.engine import _kernels
from icscm.stats import _kernels as more
rng = np.random.default_rng(0)
X = np.column_stack((rng.random((300, 2)), rng.integers(0, 2, (300, 2))))
y, e = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
for test in ("chi2", "fisher"):
    ICSCMClassifier(stop="coverage", test=test).fit(X, y, environments=e)
kernels = [k for module in (_kernels, more) for k in vars(module).values() if hasattr(k, "stats")]
hits = sum(sum(kernel.stats.cache_hits.values()) for kernel in kernels)
misses = sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels)
print(json.dumps([hits, misses]))
"""


@pytest.mark.thorough
def test_the_second_process_does_not_compile(tmp_path):
    """Every kernel can be cached: none depends on something that numba cannot store."""
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}
    outputs = [run_code(FIT_AND_COUNT_COMPILATIONS, environment=cache).stdout for _ in range(2)]
    (_, first_misses), (second_hits, second_misses) = map(json.loads, outputs)
    assert first_misses > 0
    assert second_hits > 0
    assert second_misses == 0


def test_demo():
    done = CliRunner().invoke(main, ["demo", "--no-report"])
    assert done.exit_code == 0, done.output
    assert "ICSCM A1 > 0 and A2 > 0" in done.output
    assert "A1 ✓ parent, A2 ✓ parent" in done.output
    assert re.search(r"SCM +C1 > 0 .*\n +C1 ✗ not a parent", done.output)
    assert re.search(r"1 +C1 > 0 +[\d,]+ +\S+ +the rate of label = 1 differs", done.output)
    assert "invariant?" in done.output
    assert max(map(len, done.output.splitlines())) <= 80


def test_demo_with_too_little_data_is_one_line_and_status_2():
    done = CliRunner().invoke(main, ["demo", "--n-samples", "1"])
    assert done.exit_code == 2
    assert done.stderr == "Error: y holds one class only, 0; learning needs two\n"


def test_every_command_says_what_it_does():
    assert main.commands
    for name, command in main.commands.items():
        assert command.help, f"{name} has no help"
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert parameter.help, f"{name}: {parameter.name} has no help"
