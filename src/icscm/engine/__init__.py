"""From a table to counts: binning, storing, counting. Nothing here knows what is done with them."""
