"""Reports on fitted learners and studies: content, then wording, then renderers.

`content` makes typed records of everything shown, `wording` turns numbers into sentences, and
`summary` joins both into the dict that is a report's JSON. `documents` and `blocks` lay a result
out for the terminal and for Markdown; `layout` and the templates make the page. Nothing here fits.
"""
