"""The command line: a module for each command, thin over the library. It may import all packages.

Commands read files, call the library and print its results; text comes from `report`. Not here:
anything that another package needs, since no other package imports this one.
"""

# each of these adds its command
import icscm.cli.check
import icscm.cli.compare
import icscm.cli.datasets
import icscm.cli.demo
import icscm.cli.evaluate
import icscm.cli.export
import icscm.cli.fit
import icscm.cli.pack
import icscm.cli.predict
import icscm.cli.recalibrate
import icscm.cli.screen
import icscm.cli.show
import icscm.cli.simulate  # noqa: F401
from icscm.cli.group import main

__all__ = ["main"]
