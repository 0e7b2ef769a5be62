"""Reports on fitted learners: a summary (one dict of sections) first, then its renderings.

Terminal, HTML, Markdown and JSON show what the summary holds and nothing else. May import `search`
and the packages below it; a fitted learner is known by the protocol in `model.learner`.
"""
