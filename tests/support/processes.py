"""Processes that tests start: the program, Python code, and commands of another user.

Waiting always ends: after `PATIENCE` seconds, far more than a busy machine needs, a test fails
with a message that says what it waited for.
"""

import os
import shutil
import subprocess
import sys
import time

import pytest

# Seconds that a test waits for a process or a thread.
PATIENCE = 600

# root may write everywhere; with this alone, another user can still read what is root's
_STRANGER = "setpriv --reuid=12345 --clear-groups --inh-caps +dac_read_search --ambient-caps"


def run_program(*arguments, environment=None, **settings):
    """Run `python -m icscm` in a process of its own, its output as text."""
    return _run([sys.executable, "-m", "icscm", *map(str, arguments)], environment, settings)


def run_code(code, *arguments, environment=None, **settings):
    """Run Python code in a process of its own, its output as text; failure is an error here."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = _run(command, environment, settings)
    assert done.returncode == 0, done.stderr
    return done


def run_as_stranger(command, **settings):
    """Run a command that may not write where folders are not open to all."""
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root may write everywhere, and there is no setpriv")
        command = [*_STRANGER.split(), "+dac_read_search", *command]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, **settings)


def wait_until(condition, what):
    """Wait until the condition holds; `what` says in the message what did not happen."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"after {PATIENCE} seconds: {what}"
        time.sleep(0.01)


def _run(command, environment, settings):
    if not {"stdout", "stderr", "capture_output"} & settings.keys():
        settings = {**settings, "capture_output": True}
    environment = {**os.environ, **(environment or {})}
    return subprocess.run(command, env=environment, text=True, timeout=PATIENCE, **settings)
