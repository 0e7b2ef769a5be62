"""Set before scipy is imported: scikit-learn's check of array API input runs only with it."""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")
