"""Genomes as packed bits: the store, how tables get into it, and the source that counts in it."""
