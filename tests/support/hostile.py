"""Names that columns, levels, classes and environments may have, and that mean harm somewhere."""

# Each is there for a place that would take it for something else. All can be held by UTF-8; no two
# are equal, though some differ by case only, or by what does not print.
HOSTILE_NAMES = [
    # pages, Markdown, templates
    "<script>alert(1)</script>",
    "</script><!-- <img src=x onerror=alert(2)>",
    "</title></style><svg onload=alert(3)>",
    "]]><!--",
    '&lt; &amp; " onmouseover="alert(4)',
    "a | b `c` *d* $x^2$ _e_ [l](http://x) http://evil.example www.evil.example",
    "{{7*7}} {% raw %} {braces} ${braces} %s %(name)s %n",
    "[bold]markup[/bold] [/] :smile:",
    # SQL
    '"; DROP TABLE data; --',
    "'; DROP TABLE data; --",
    "*/ SELECT 1 /*",
    "-- comment\r-- more",
    "TRUE",
    "NULL",
    "select",
    "rowid",
    "d",
    "Case",
    "case",
    "STRASSE",
    "straße",
    # Python and JSON
    "'''",
    '"""',
    'ends in "',
    "back\\slash\\",
    "\\N{BULLET} \\u0041 \\x41",
    "__proto__",
    "__class__",
    "lambda",
    "None",
    "nan",
    "0",
    "-1",
    "1e999",
    # spreadsheets
    '=HYPERLINK("http://evil.example","click")',
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1+1",
    "\r=1+1",
    "a,b;c\td",
    # our own words and columns
    "prediction",
    "probability",
    "class",
    "rule",
    "decided_by",
    "missing",
    "a and b or c > 1",
    "x0",
    "all",
    # terminals: escapes of C0 and C1, DEL, lines of other kinds, bidi and zero-width characters
    "\x1b[2J\x1b]0;title\x07",
    "\x9b2J\x85\x90q\x9c",
    "rub\x7f\x7f\x7fout",
    "two\nlines",
    "over\rwritten",
    "separators\u2028and\u2029more\x0b\x0c\x1c\x1d\x1e",
    "\u202egnp.exe \u202a\u202b\u202c\u202d\u2066\u2067\u2068\u2069\u200e\u200f\u061c",
    "zero\u200bwidth\u200c\u200d\u2060\ufeff\u00ad",
    "tags\U000e0001\U000e0041 private\ue000 unassigned\u0378\uffff",
    "nul\0byte",
    # scripts, combining marks, wide characters
    "żółć 温度 😀 👩‍👩‍👧‍👦",
    "עברית العربية",
    "e\u0301 é",
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘",
    "kelvin",
    "\u212aelvin",  # the Kelvin sign, which folds to k
    # paths
    "../../etc/passwd",
    "-",
    # blanks, nothing, and very much
    "",
    " ",
    "\u00a0\u3000",
    " blanks around ",
    "W" * 300,
    "long " * 2_000,
]

# What a statement can name: no engine takes a NUL, and DuckDB no empty name.
SQL_NAMES = [name for name in HOSTILE_NAMES if name and "\0" not in name]

# Names that the trial of roles gives to a column, a level, a class, an environment, a group and a
# file in turn: one for each way in which text of a user can do harm. Those of two words show by the
# break between them whether a name stays on its line.
ROLE_NAMES = [
    "alphaline\nbetaline",
    "alphaline\rbetaline",
    "alphaline\u2028betaline\x85gamma\x0bline",
    "tab\tulator",
    "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "\x9b31mred\x7f",
    "\u202egnp.exe",
    "\u2066isolate\u2069\u200e",
    "zero\u200bwidth\u200d\u2060\u00ad",
    "\ufeffmark",
    "nul\0byte",
    "both \"double\" and 'single'",
    "`tick` ```fence``` \\",
    "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "{{7*7}} {% raw %} ${x} {x}",
    "%s %(name)s %n",
    '=HYPERLINK("http://evil.example")',
    "| pipes | ---: | *star* _low_ [link](http://evil.example)",
    "[bold]markup[/bold] :smile:",
    "--help",
    "comma,semi;colon",
    "👩\u200d👩\u200d👧 e\u0301 \u05d0",
    "\\ud800 \\x1b \\n",
    "",
    " ",
    "nan",
    "None",
    "True",
    "1",
    "W" * 5_000,
]
