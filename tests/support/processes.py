"""Commands run as somebody who may read everything and owns nothing."""

import os
import shutil
import subprocess

import pytest

# root may write everywhere; with this alone, another user can still read what is root's
_STRANGER = "setpriv --reuid=12345 --clear-groups --inh-caps +dac_read_search --ambient-caps"


def run_as_stranger(command, **settings):
    """What a command does that may not write where folders are not open to all."""
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root may write everywhere, and there is no setpriv")
        command = [*_STRANGER.split(), "+dac_read_search", *command]
    return subprocess.run(command, capture_output=True, text=True, **settings)
