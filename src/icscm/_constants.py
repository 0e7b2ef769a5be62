"""Every dtype and limit of the package, each with its reason."""

from typing import Final

import numpy as np

# --- dtypes -----------------------------------------------------------------

# A bin number. One byte per cell keeps a column of a million rows in the cache.
CODE_DTYPE: Final = np.uint8
# Counts are exact integers, so that "everything minus those that left" has no rounding.
COUNT_DTYPE: Final = np.int64
# A row number: half the traffic of int64, enough for four billion rows in one memory.
ROW_DTYPE: Final = np.uint32
# Two-valued columns hold 64 rows in a word, the width popcount works on.
WORD_DTYPE: Final = np.uint64
WORD_BITS: Final = 64

# --- limits -----------------------------------------------------------------

# Bins that fit a one-byte code.
MAX_NARROW_BINS: Final = 256
# Rows whose values place the quantile thresholds. A rank estimated from 2**14 rows is off by
# 0.4 % of the rows (one standard error), a fifth of a bin at the default 50 thresholds.
QUANTILE_SAMPLE: Final = 2**14
# Columns of zeros and ones packed at a time: the words they go to, a cache line each, and the
# eight lanes of bits on the way there fit the second-level cache.
PACKED_COLUMNS: Final = 2**11
# Columns from which on packing rows in lanes is faster: a lane costs as much as thirty cells.
MIN_LANES: Final = 32
# Rows checked before a whole table is tested for zeros and ones only.
BINARY_LOOK_ROWS: Final = 8
# Rows packed at a time: one cache line of each fits the first-level cache.
ROW_BLOCK: Final = 128
# Rows of a column hashed at a time: their hashes stay in the first-level cache.
HASHED_ROWS: Final = 2**11
# Rows and columns binned at a time: a quarter of a megabyte stays in the second-level cache, and
# each column's bins go out in runs of some cache lines for each segment.
CODED_ROWS: Final = 2**10
CODED_COLUMNS: Final = 2**5
# Size of the table that guesses the bin of a value: half a kilobyte per column stays in the cache.
GUESS_PLACES: Final = 512
# Columns that share a cache line of float64 are read together.
COLUMN_GROUP: Final = 8
# Cells of one block of the count cube: the arithmetic on a block stays near the cache.
BLOCK_CELLS: Final = 2**20
# A cube up to this size is kept between steps and updated by subtraction; a larger one
# is counted afresh, so that memory does not grow with the number of columns.
MAX_KEPT_CUBE_BYTES: Final = 2**28
# Cells of the blocks of bits, of which there may be many: small enough that the search finds them
# in the second-level cache.
PACKED_BLOCK_CELLS: Final = 2**16
# Bytes of a mapped file that may stay in memory between scans; of a larger file none do.
MAX_MAPPED_BYTES: Final = 2**30
# Segments shorter than this are counted straight into the cube: clearing a local
# histogram would cost more than the counting.
SHORT_SEGMENT: Final = 512
# Up to so many rows a kernel is passed their index even where it is all of them: another version of
# the kernel would take half a second to compile, the index a tenth of a millisecond to make.
SHORT_INDEX: Final = 2**17
# Equivalent rules kept for one step; beyond that only their number is reported.
MAX_EQUIVALENT_RULES: Final = 1000
# Rejected candidates described in the trace of one step.
N_REJECTED_KEPT: Final = 5
# Below this many rows, or without one class, an environment causes a warning:
# Cochran's rule of thumb for the smallest expected count of a chi-squared test.
SPARSE_ENVIRONMENT: Final = 5
# Rows of the median environment below which there are too many environments.
FEW_ROWS: Final = 30
# Environments above which `fit` warns if they are that small.
MANY_ENVIRONMENTS: Final = 20
# Distinct numbers above which a column is a measurement, and does not name environments.
MANY_NUMBERS: Final = 50
# A value or leaf determines the outcome if it holds at most a hundredth of the expected rows of a
# class, and at least so many are expected.
DECIDED_ROWS: Final = 20
# Columns and leaves that determine the outcome of a smaller share of the rows are not named.
DECIDED_SHARE: Final = 0.2
# Cramer's V of a strong association: a large effect by Cohen's convention.
STRONG: Final = 0.5
# Where so small a difference is detectable in a tenth of the rows, tests reject irrelevant ones.
TRIVIAL_DIFFERENCE: Final = 0.01
# Tables enumerated by one exact test before it hands over to Pearson's approximation.
MAX_EXACT_TABLES: Final = 10_000
# p-values that differ by less are equal: results must not depend on the order of a sum. The first
# is relative, for comparing with alpha; the second absolute, for comparing p-values.
P_VALUE_SLACK: Final = 1e-9
P_VALUE_DECIMALS: Final = 12
# Deviances that differ by less are equal, for the same reason.
DEVIANCE_DECIMALS: Final = 6
# Level of tests that no parameter sets; of all splits of a node, all columns of a screen, or all
# rules of a step together (Bonferroni).
CHANCE_LEVEL: Final = 0.05
# Cells to count below which starting threads costs more than they save.
MIN_THREADED_CELLS: Final = 2**18
# Rows of the first scan of a table: enough to distinguish columns of few values from others.
FIRST_LOOK_ROWS: Final = 2**10

# --- verdicts ---------------------------------------------------------------

# Default margin: rates of an outcome that differ by up to 5 points count as equal.
DEFAULT_MARGIN: Final = 0.05
# The level of the intervals of single rates.
VERDICT_CONFIDENCE: Final = 0.95
# The power at which minimum detectable differences are computed.
VERDICT_POWER: Final = 0.8
# `fit` warns of a leaf in which even a difference of 20 points would likely not be detected. A
# smaller limit would warn of most models learned from a few hundred rows per environment.
BLIND_DIFFERENCE: Final = 0.2


# Whole numbers beyond this are not all held by float64.
LARGEST_EXACT: Final = 2**53

# Environments of which all pairs are compared. With more it is faster to find first those that can
# differ most, one leaf at a time, than to compare all pairs of many leaves at once.
MAX_PAIRED: Final = 128
# Angles at which pairs are bounded: the error of a hypotenuse is 0.5 %.
PAIR_ANGLES: Final = 9

# --- columns that rules should not use ----------------------------------------

# A category with more levels than this share of its rows is an identifier, and so is a column of
# whole numbers with more distinct values than the second share; not in tables of fewer rows.
IDENTIFIER_SHARE: Final = 0.95
NUMBERED_IDENTIFIER_SHARE: Final = 0.99
IDENTIFIER_ROWS: Final = 50
# Expected equal pairs from which on their absence indicates an identifier; and the value from which
# on whole numbers are not measurements.
MIN_CHANCE_PAIRS: Final = 3.0
LEAST_HUGE_NUMBER: Final = 1e9
# In smaller tables a column may equal the outcome or the environment by chance.
COPY_ROWS: Final = 20
# Rows checked before all rows of a column are searched for the signs of a suspicious column.
SUSPICION_ROWS: Final = 256

# --- trees --------------------------------------------------------------------

# Tolerances of a path, from plain to strict: about even steps on a logarithmic scale.
DEFAULT_TOLERANCES: Final = (None, 0.3, 0.1, 0.05, 0.03, 0.02, 0.01, 0.003)

# --- files and clusters -------------------------------------------------------

# Distinct values whose rows are counted to find identifiers: the share of distinct values is
# off by less than a tenth of the 1 % that decides.
VALUE_SAMPLE: Final = 2**12
# Levels of one category that are counted in a file; a few megabytes a column.
MAX_SURVEYED_LEVELS: Final = 2**16

# The separator of values, and of column names, where several columns define the environments.
JOINT: Final = " / "
