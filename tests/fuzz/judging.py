"""What a violation is: nothing that a user should ever see, or never find out."""

from __future__ import annotations

import json
import re
import signal
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fuzz.processes import Outcome

# Whatever the input is: done, refused, stopped by Ctrl-C, stopped by SIGTERM.
DONE, REFUSED, INTERRUPTED, TERMINATED = 0, 2, 130, 143
LONGEST_LINE = 1_000
# Parts of messages that show an error which the program does not handle.
_UNEXPECTED = (
    "Traceback (most recent",
    "Error: unexpected error",
    "Exception ignored",
    "Fatal Python",
)


def find_faults(outcome: Outcome, *, signalled: int = 0, is_json: bool = False) -> list[str]:
    """What is wrong with how a call ended and with what it said."""
    what = " ".join(outcome.argv)[:200]
    if outcome.hung:
        return [f"hangs: {what}"]
    faults = [*_judge_status(outcome, signalled), *_judge_messages(outcome, signalled)]
    if outcome.orphans:
        faults.append(f"{outcome.orphans} processes were left running")
    if is_json and outcome.status == DONE:
        faults += find_json_faults(outcome.out.decode(), "standard output")
    return [f"{fault} [{what}]" for fault in faults]


def _judge_status(outcome: Outcome, signalled: int) -> Iterable[str]:
    allowed = {DONE, REFUSED}
    if signalled:
        allowed |= {-signalled}
        allowed |= {1} if _is_early(outcome) else set()  # Python does not find its own modules
        allowed |= {signal.SIGINT: {INTERRUPTED}, signal.SIGTERM: {TERMINATED}}.get(
            signalled, set()
        )
    if outcome.status not in allowed:
        dead = f"died by signal {-outcome.status}" if outcome.status < 0 else "ended with"
        yield f"{dead} {outcome.status}: {_read_end(outcome.err)}"
    elif outcome.status == REFUSED and b"Error: " not in outcome.err:
        yield f"refused without a sentence: {_read_end(outcome.err)}"


def _judge_messages(outcome: Outcome, signalled: int) -> Iterable[str]:
    text = outcome.err.decode(errors="backslashreplace")
    for sign in _UNEXPECTED:
        if sign in text and not (signalled and _is_early(outcome)):
            yield f"{sign}: {_read_end(outcome.err)}"
    longest = max(map(len, text.splitlines()), default=0)
    if longest > LONGEST_LINE and outcome.err is not outcome.out:  # a terminal shows both
        yield f"a line of {longest} characters on standard error"
    raw = find_raw(text)
    if raw:
        yield f"raw {raw!r} on standard error or a terminal"


def _is_early(outcome: Outcome) -> bool:
    """Stopped before any of our code was reached: nothing that we could say anything about."""
    is_stopped = b"KeyboardInterrupt" in outcome.err
    return is_stopped and b"/icscm/" not in outcome.err.replace(b"\\", b"/")


def find_raw(text: str) -> str:
    """Characters that could do something to a terminal, or to the order of what is read."""
    odd = {"Cc", "Zl", "Zp"}
    bidi = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    found = {c for c in set(text) - set("\n\r\t") if unicodedata.category(c) in odd or c in bidi}
    return "".join(sorted(found))


def find_json_faults(text: str, where: str) -> list[str]:
    """Nothing if this is JSON as others read it: no NaN, no Infinity."""

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is no JSON")

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError as error:
        return [f"no JSON in {where}: {error}"]
    return []


def list_files(folder: Path) -> dict[str, bytes]:
    """All that lies in a folder, hidden files too."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def find_strays(folder: Path, before: Iterable[str], expected: Iterable[str] = ()) -> list[str]:
    """What lies in work or tmp now, was not there before and was not asked for."""
    new = set(list_files(folder / "work")) - set(before) - set(expected)
    left = set(list_files(folder / "tmp"))
    return [f"stray file {name}" for name in sorted(new)] + [
        f"stray temporary file {name}" for name in sorted(left)
    ]


def make_kind(fault: str) -> str:
    """Of faults that are probably the same: a text without numbers, names and call."""
    return re.sub(r"\d+|'[^']*'|\"[^\"]*\"|\[[^\]]*\]$|[0-9a-f]{8,}", "", fault)[:100]


def _read_end(err: bytes) -> str:
    return err.decode(errors="backslashreplace").strip()[-300:]
