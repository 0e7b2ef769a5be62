"""Reports on fitted learners: a summary (one dict of sections) first, then its renderings.

Terminal, HTML, Markdown and JSON show only what the summary holds. May import `search` and lower
layers; the protocol in `model.learner` describes a fitted learner.
"""
