"""Modules that are imported when something of them is first used."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any


class _Later:
    """Stands for a module, which is imported when something of it is first used."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module(self.name), name)
        setattr(self, name, found)  # found at once from then on
        return found


# scipy.special takes as long to import as NumPy, scikit-learn five times as long. Commands that
# show a model or predict do without.
arrow_dataset: Any = _Later("pyarrow.dataset")  # imports pandas
isotonic: Any = _Later("sklearn.isotonic")
multiclass: Any = _Later("sklearn.utils.multiclass")
optimize: Any = _Later("scipy.optimize")
sparse: Any = _Later("scipy.sparse")
special: Any = _Later("scipy.special")
stats: Any = _Later("scipy.stats")
validation: Any = _Later("sklearn.utils.validation")
if TYPE_CHECKING:
    import narwhals

    nw = narwhals
else:
    nw = _Later("narwhals")


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
            found = vars(import_module(f"{home['__name__']}.{module}"))
            home.update({name: found[name] for name in found if not name.startswith("_")})
        return list(home)

    def find(name: str) -> Any:
        if name.startswith("__") or name not in load():
            raise AttributeError(f"module {home['__name__']!r} has no attribute {name!r}")
        return home[name]

    return find, load
