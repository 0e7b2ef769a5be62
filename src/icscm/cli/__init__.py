"""The command line: each command a few lines over the library. May import everything else.

What is printed comes from `report`; what is computed, from the library. Nothing imports this.
"""

# each of these adds its commands
import icscm.cli.check
import icscm.cli.compare
import icscm.cli.evaluate
import icscm.cli.fit
import icscm.cli.predict
import icscm.cli.show
import icscm.cli.simulate  # noqa: F401
from icscm.cli.group import main

__all__ = ["main"]
