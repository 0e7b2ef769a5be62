"""Why the screen says what it says of a column, in the words of its table.

Reports explain each reason with the numbers of the column (`icscm.report.wording.screening`).
"""

from typing import Final

from icscm.stats.giveaways import DETERMINES as DETERMINES

DIFFERS: Final = "its effect differs"
DIFFERS_JOINTLY: Final = "its effect differs, jointly with other columns"
MAY_BE_REVERSED: Final = "its effect may be reversed"
ONE_DIFFERENCE: Final = "two environments show one difference"
TOO_LITTLE_DATA: Final = "its effect may differ: too little data"
ONE_INFORMS: Final = "one environment has nearly all information"
NO_ENVIRONMENTS: Final = "no environments"
INTERRUPTED: Final = "the screen was interrupted"
