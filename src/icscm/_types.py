"""Array types by content, for annotations in the whole package."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
# Counts of samples, the last two axes being (label, environment).
CountArray = NDArray[np.int64]
# Hashes of rows, values, names or patterns.
Hashes = NDArray[np.uint64]
