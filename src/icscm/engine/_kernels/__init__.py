"""The inner loops, compiled, by subject. Each has a twin in plain NumPy in `_reference.py`.

All of them release the GIL and write only to what the caller hands them, so that threads
work side by side on different features, or on different rows, without locks.
"""

from icscm.engine._kernels.coding import *  # noqa: F403
from icscm.engine._kernels.counting import *  # noqa: F403
from icscm.engine._kernels.grouping import *  # noqa: F403
from icscm.engine._kernels.hashing import *  # noqa: F403
from icscm.engine._kernels.packing import *  # noqa: F403
