"""Files are written whole or not at all, through links and into pipes, and no other is touched."""

import os
import stat
import subprocess
import sys
import threading

import pytest

from icscm.exceptions import IcscmError
from icscm.writing import check_free, is_stream, write_text, write_whole


def test_a_link_stays_a_link(tmp_path):
    """The link was replaced by a file, and what it led to kept its old content."""
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    away = tmp_path / "away.txt"
    away.symlink_to(tmp_path / "later.txt")
    check_free(away, force=False)
    write_text(away, "first")
    assert (tmp_path / "later.txt").read_text() == "first"


def test_links_that_lead_nowhere(tmp_path):
    """Both were found out after the work, not before it."""
    circle = tmp_path / "circle.txt"
    circle.symlink_to(circle)
    lost = tmp_path / "lost.txt"
    lost.symlink_to(tmp_path / "no" / "file.txt")
    with pytest.raises(IcscmError, match="leads in a circle"):
        write_text(circle, "x")
    with pytest.raises(IcscmError, match="a link into a folder that is not there"):
        check_free(lost, force=True)


def test_no_other_file_is_deleted(tmp_path):
    """A file called .model.partial.json was overwritten, then deleted."""
    mine = tmp_path / ".model.partial.json"
    mine.write_text("mine")
    write_text(tmp_path / "model.json", "new")
    assert mine.read_text() == "mine"

    def fail(file):
        file.write(b"half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_whole(tmp_path / "model.json", fail)
    assert (tmp_path / "model.json").read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".model.partial.json", "model.json"]


def test_rights_are_those_of_any_file(tmp_path):
    """Temporary files are for their owner alone; what is put in place must not be."""
    before = os.umask(0o022)
    try:
        write_text(tmp_path / "new.txt", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new.txt").stat().st_mode) == 0o644
    (tmp_path / "shared.txt").write_text("old")
    (tmp_path / "shared.txt").chmod(0o664)
    write_text(tmp_path / "shared.txt", "new")
    assert stat.S_IMODE((tmp_path / "shared.txt").stat().st_mode) == 0o664


def test_a_pipe_is_written_into(tmp_path):
    """A fifo was replaced by a file while its reader waited for ever."""
    pipe = tmp_path / "pipe.txt"
    os.mkfifo(pipe)
    assert is_stream(pipe)
    check_free(pipe, force=False)
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()))
    reader.start()
    write_text(pipe, "through")
    reader.join(timeout=20)
    assert found == ["through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("is_file", [True, False])
def test_standard_output(tmp_path, is_file):
    """Writing to /dev/stdout failed, or replaced the file that output was redirected to."""
    code = (
        "from pathlib import Path; from icscm.writing import *; print('before'); "
        "check_free(Path('/dev/stdout'), force=False); "
        "write_text(Path('/dev/stdout'), 'between\\n'); print('after')"
    )
    command = [sys.executable, "-c", code]
    if is_file:
        with (tmp_path / "out.txt").open("w") as stream:
            subprocess.run(command, stdout=stream, check=True)
        found = (tmp_path / "out.txt").read_text()
    else:
        found = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert found == "before\nbetween\nafter\n"
