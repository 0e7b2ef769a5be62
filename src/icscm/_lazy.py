"""Modules that are imported when something of them is first used."""

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any


class _Later:
    """Stands for a module, which is imported when something of it is first used.

    `importlib.util.LazyLoader` cannot: to find a submodule it imports the package, all of
    scikit-learn for sklearn.metrics.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self.name), name)
        setattr(self, name, value)  # is found without this method from then on
        return value


# scipy.special takes as long to import as NumPy, scikit-learn five times as long. Commands that
# show a model or predict do without.
arrow_dataset: Any = _Later("pyarrow.dataset")  # imports pandas
dummy: Any = _Later("sklearn.dummy")
isotonic: Any = _Later("sklearn.isotonic")
metrics: Any = _Later("sklearn.metrics")
multiclass: Any = _Later("sklearn.utils.multiclass")
optimize: Any = _Later("scipy.optimize")
sparse: Any = _Later("scipy.sparse")
special: Any = _Later("scipy.special._ufuncs")  # without the rest of it: see `postpone_imports`
stats: Any = _Later("scipy.stats")
validation: Any = _Later("sklearn.utils.validation")
if TYPE_CHECKING:
    import narwhals

    nw = narwhals
else:
    nw = _Later("narwhals")


class _PostponedModule(ModuleType):
    """A module whose code runs when something of it is first used.

    Unlike one of `importlib.util.LazyLoader` it does not run when a submodule is imported, which
    asks for `__path__` only.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked for by imports
            raise AttributeError(name)
        self.__class__ = ModuleType  # type: ignore[assignment]
        assert self.__spec__ is not None
        assert self.__spec__.loader is not None
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def postpone_imports() -> None:
    """Run scipy.special and scipy.stats when something of them is first used, and not on import.

    For programs. They take half of the time of `import sklearn.base`, which names them only, and
    the compiled functions of scipy.special are found without running it.
    """
    for name in ("scipy.special", "scipy.stats"):
        if name not in sys.modules and (spec := find_spec(name)) is not None:
            module = sys.modules[name] = module_from_spec(spec)
            module.__class__ = _PostponedModule


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix, without importing scipy.sparse."""
    return "scipy.sparse" in sys.modules and bool(sparse.issparse(X))


def load_lazily(home: dict[str, Any], *modules: str) -> tuple[Callable[..., Any], ...]:
    """The `__getattr__` and `__dir__` of a package that has all that its modules have.

    Kernels need numba, which takes as long to import as all the rest; who only shows a model or
    predicts never calls one. `home` are the package's globals.
    """

    def load() -> list[str]:
        for module in modules:
            content = vars(import_module(f"{home['__name__']}.{module}"))
            home.update({name: content[name] for name in content if not name.startswith("_")})
        return list(home)

    def find(name: str) -> Any:
        if name.startswith("__") or name not in load():
            raise AttributeError(f"module {home['__name__']!r} has no attribute {name!r}")
        return home[name]

    return find, load
