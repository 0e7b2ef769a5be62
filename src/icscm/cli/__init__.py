"""The command line: each command a few lines over the library."""

# each of these adds its commands
import icscm.cli.check
import icscm.cli.experiments
import icscm.cli.fit
import icscm.cli.models
import icscm.cli.simulate  # noqa: F401
from icscm.cli.group import main

__all__ = ["main"]
