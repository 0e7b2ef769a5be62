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

    def __init__(self, module_name: str) -> None:
        self._module_name = module_name

    def __getattr__(self, name: str) -> Any:
        """Import the module; Python calls this for what the object does not have yet."""
        value = getattr(import_module(self._module_name), name)
        setattr(self, name, value)
        return value


# scipy.special takes as long to import as NumPy, scikit-learn five times as long. Commands that
# show a model or predict do without them.
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
        """Run the code; Python calls this for what the module does not have yet."""
        if name.startswith("__"):  # asked for by imports
            raise AttributeError(name)
        self.__class__ = ModuleType  # type: ignore[assignment]  # an ordinary one from now on
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
        if name in sys.modules:
            continue
        spec = find_spec(name)
        if spec is not None:
            module = module_from_spec(spec)  # empty: its code has not run
            module.__class__ = _PostponedModule
            sys.modules[name] = module


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix, without importing scipy.sparse."""
    return "scipy.sparse" in sys.modules and bool(sparse.issparse(X))


def load_lazily(
    package_globals: dict[str, Any], *modules: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the functions `__getattr__` and `__dir__` of a package that has what its modules have.

        __getattr__, __dir__ = load_lazily(globals(), "coding", "counting")

    Python calls them for a name that the package does not have yet, and to list its names. The
    first such call imports the modules, and puts their public names into the package. So kernels
    are imported when one is first called: they need numba, which takes as long to import as all the
    rest, and who only shows a model or predicts calls none.
    """
    package = package_globals["__name__"]

    def load_and_list() -> list[str]:
        for module in modules:
            content = vars(import_module(f"{package}.{module}"))
            public = {name: value for name, value in content.items() if not name.startswith("_")}
            package_globals.update(public)
        return list(package_globals)

    def get_attribute(name: str) -> Any:
        if name.startswith("__") or name not in load_and_list():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return package_globals[name]

    return get_attribute, load_and_list
