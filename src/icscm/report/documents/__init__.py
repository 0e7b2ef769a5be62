"""Summaries laid out as documents of blocks: one module for each kind of result.

A document is what the terminal shows (its short form) and what Markdown holds: it places sentences
and numbers.
"""
