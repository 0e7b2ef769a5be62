"""The sections of a summary, a module each."""
