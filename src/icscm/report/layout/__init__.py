"""What the page of a fitted learner shows where: one record for each section of its template.

Every choice that the template would else make is made here. The records of `icscm.report.content`
hold everything; here it is cut to the limits of a page.
"""
