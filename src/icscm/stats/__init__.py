"""Statistics of counts: leaf tables from the cube, and tests of label against environment."""
