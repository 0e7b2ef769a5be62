"""The larger sections of a summary."""
