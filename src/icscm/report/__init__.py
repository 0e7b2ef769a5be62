"""What a fitted model is told as: a summary (a plain dict) first, then its renderings.

Terminal, HTML, Markdown and JSON say what the summary holds and nothing else. May import `search`
and what is below; a fitted learner is asked through the protocol in `model.learner`.
"""
