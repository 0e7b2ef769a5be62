"""The command line: thin commands over the library. May import all other packages.

Text comes from `report`, results from the library. No other package imports this one.
"""

# each of these adds its commands
import icscm.cli.fit
import icscm.cli.models
import icscm.cli.screen
import icscm.cli.simulate
import icscm.cli.studies  # noqa: F401
from icscm.cli.group import main

__all__ = ["main"]
