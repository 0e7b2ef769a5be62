"""A figure that notebooks display. Imports matplotlib, so it is imported when needed."""

from io import BytesIO

import matplotlib
from matplotlib.figure import Figure


class NotebookFigure(Figure):
    """Shown once, as a cell's last value or at the cell's end, when pyplot shows its figures."""

    def _ipython_display_(self) -> None:
        from IPython.display import Image, display
        from matplotlib import pyplot

        is_drawn_once = matplotlib.get_backend().lower().endswith(("agg", "inline"))
        if not is_drawn_once and pyplot.fignum_exists(getattr(self, "number", 0)):
            return  # it has a window or widget of its own
        buffer = BytesIO()
        self.savefig(buffer, format="png")
        pyplot.close(self)  # otherwise the end of the cell would show it again
        display(Image(buffer.getvalue(), alt=self.get_label()))
