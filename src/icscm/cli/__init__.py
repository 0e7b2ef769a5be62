"""The command line: each command a few lines over the library. May import everything else.

What is printed comes from `report`; what is computed, from the library. Nothing imports this.
"""

# each of these adds its commands
import icscm.cli.fit
import icscm.cli.models
import icscm.cli.screen
import icscm.cli.simulate
import icscm.cli.studies  # noqa: F401
from icscm.cli.group import main

__all__ = ["main"]
