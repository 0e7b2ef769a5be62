"""The package as a whole: importing, compiling, running, documenting."""

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas
import pytest
from click.testing import CliRunner

import icscm
from icscm import SCMClassifier
from icscm.cli import main
from icscm.datasets import make_conjunction
from support.fitting import fit_quietly


def run_python(code, *arguments, **environment):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )


def test_import_is_quick_silent_and_lazy():
    done = run_python(
        "import sys, icscm\n"
        "print([name for name in ('numpy', 'sklearn', 'numba', 'pandas') if name in sys.modules])"
    )
    assert done.stdout == "[]\n"
    assert done.stderr == ""


UNUSED = (
    "sklearn",
    "numba",
    "matplotlib",
    "pandas",
    "scipy.sparse",
    "scipy.special._basic",  # the package without its compiled functions
    "scipy.stats._stats_py",
    "joblib",
    "pyarrow.dataset",
    "icscm.engine.binning",
    "icscm.search.greedy",
)


@pytest.mark.parametrize("command", ["show", "export --to sql", "predict"])
def test_commands_on_a_model_file_import_little(command, tmp_path):
    """They took 2.5 to 3.2 s, most of it the import of scikit-learn, which none of them uses."""
    frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": ["u", "v", "u", "v"]})
    model, table = tmp_path / "model.json", tmp_path / "new.csv"
    SCMClassifier().fit(frame, [0, 0, 1, 1]).save(model)
    frame.to_csv(table, index=False)
    name, *more = command.split()
    words = [name, model, *([table] if name == "predict" else []), *more]
    done = run_python(
        "import sys\n"
        "from icscm.cli import main\n"
        "main(sys.argv[1:], standalone_mode=False)\n"
        f"print([each for each in {UNUSED} if each in sys.modules])",
        *words,
    )
    assert done.stdout.endswith("\n[]\n")
    assert len(done.stdout) > 20


def test_fit_imports_what_it_uses():
    """Half of the time of `icscm fit` was scipy.stats, which scikit-learn only names."""
    absent = "scipy.stats._stats_py", "scipy.special._basic", "sklearn.metrics", "sklearn.dummy"
    done = run_python(
        "import sys\n"
        "from icscm._lazy import postpone_imports\n"
        "postpone_imports()\n"
        "import icscm.estimators, icscm.studies.stability, icscm.studies.tuning\n"
        f"print([each for each in {absent} if each in sys.modules])\n"
        "from scipy import special, stats\n"
        "print(special.logsumexp([0.0]), stats.norm.ppf(0.5), special._basic is not None)"
    )
    assert done.stdout == "[]\n0.0 0.0 True\n"


def test_the_stub_lists_the_public_names():
    """The list of names in `__init__.py` lacked one of `__init__.pyi`; now there is one list."""
    stub = Path(icscm.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    listed = re.findall(r"^from ([\w.]+) import (\w+) as \2$", stub, re.MULTILINE)
    assert sorted(name for _, name in listed) == sorted(icscm.__all__)
    assert "ICSCMClassifier" in icscm.__all__
    for home, name in listed:
        assert getattr(importlib.import_module(home), name) is getattr(icscm, name)


USE_A_SAVED_MODEL = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numba", "llvmlite"):
            raise ImportError(f"{name} is not wanted")
sys.meta_path.insert(0, Refuse())
from icscm import ICSCMClassifier
from icscm.cli import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize("command", ["show", "predict"])
def test_a_saved_model_needs_no_compiler(tmp_path, command):
    """Half of the time that `icscm show` took went into importing numba, which it never used."""
    data = make_conjunction(300, random_state=0)
    data.X.to_csv(tmp_path / "data.csv", index=False)
    fit_quietly(SCMClassifier(), data.X, data.y, data.environments).save(tmp_path / "model.json")
    arguments = [tmp_path / "model.json"]
    if command == "predict":
        arguments += [tmp_path / "data.csv", "--out", tmp_path / "out.csv"]
    done = run_python(USE_A_SAVED_MODEL, command, *arguments)
    assert "is not wanted" not in done.stdout + done.stderr


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


def test_the_second_process_does_not_compile(tmp_path):
    runs = [
        json.loads(run_python(FIT_AND_COUNT_COMPILATIONS, NUMBA_CACHE_DIR=str(tmp_path)).stdout)
        for _ in range(2)
    ]
    (_, first_misses), (second_hits, second_misses) = runs
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
