"""What a report shows, as typed immutable records of numbers and names, made from a fitted learner.

Nothing here fits, and nothing is a sentence: those are in `icscm.report.wording`.
"""
