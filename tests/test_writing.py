"""Files are written completely or not at all, also through links and into pipes."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from icscm import writing
from icscm.exceptions import IcscmError
from icscm.writing import check_free, is_stream, write_text, write_whole
from support.processes import PATIENCE, run_as_stranger, run_code


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
    with pytest.raises(IcscmError, match="leads to itself"):
        write_text(circle, "x")
    with pytest.raises(IcscmError, match="a link into a folder that does not exist"):
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
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()), daemon=True)
    reader.start()
    write_text(pipe, "through")
    reader.join(timeout=PATIENCE)
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
    if is_file:
        with (tmp_path / "out.txt").open("w") as stream:
            run_code(code, stdout=stream)
        found = (tmp_path / "out.txt").read_text()
    else:
        found = run_code(code).stdout
    assert found == "before\nbetween\nafter\n"


def list_hidden(folder):
    return [each.name for each in folder.iterdir() if each.name.startswith(".")]


WAIT = (
    "import sys; from pathlib import Path; from icscm import writing\n"
    "def write(file):\n"
    "    file.write(b'half'); file.flush(); print('writing', flush=True); sys.stdin.read()\n"
    "writing.write_whole(Path(sys.argv[1]), write)"
)


@pytest.mark.skipif(os.name != "posix", reason="without locks nothing is removed")
def test_the_next_write_removes_what_a_killed_process_left(tmp_path, monkeypatch):
    """`.icscm-<hex>` files stayed beside the output for ever, one for each kill."""
    out = tmp_path / "out.txt"
    out.write_text("old")
    command = [sys.executable, "-c", WAIT, str(out)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        process.stdout.readline()
        (live,) = list_hidden(tmp_path)
        write_text(tmp_path / "other.txt", "beside it")
        assert list_hidden(tmp_path) == [live]  # never that of a process that lives
        process.kill()
    assert out.read_text() == "old"
    assert len(list_hidden(tmp_path)) == 1
    monkeypatch.setattr(writing.platform, "node", lambda: "another")
    write_text(out, "by another machine")
    assert len(list_hidden(tmp_path)) == 1
    monkeypatch.undo()
    write_text(out, "new")
    assert list_hidden(tmp_path) == []
    assert out.read_text() == "new"


@pytest.mark.parametrize("is_there", [True, False])
def test_an_interrupted_write_changes_nothing(tmp_path, is_there):
    out = tmp_path / "out.txt"
    if is_there:
        out.write_text("old")
        out.chmod(0o640)

    def fail(file):
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(out, fail)
    assert out.exists() == is_there
    write_text(out, "new")
    assert out.read_text() == "new"
    assert not is_there or stat.S_IMODE(out.stat().st_mode) == 0o640
    assert [each.name for each in tmp_path.iterdir()] == ["out.txt"]


def test_a_replacement_that_fails_leaves_no_hidden_name(tmp_path, monkeypatch):
    out = tmp_path / "out.txt"
    out.write_text("old")

    def fail(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(IcscmError, match=r"out.txt cannot be written: Operation not permitted"):
        write_text(out, "new")
    assert [each.name for each in tmp_path.iterdir()] == ["out.txt"]


@pytest.fixture
def small_disk(tmp_path):
    """A disk of a megabyte, for those who may make one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be made here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.skipif(shutil.which("mount") is None, reason="no disk can be made here")
def test_a_full_disk_names_the_file_and_the_space(small_disk):
    """It said "[Errno 28] No space left on device", of no file."""
    out = small_disk / "out.txt"
    out.write_text("old")
    told = "the disk is full: .*out.txt needs 3.0 MB, and nothing was written; free space in"
    with pytest.raises(IcscmError, match=told):
        write_text(out, "x" * 3_000_000)
    with pytest.raises(IcscmError, match=r"out.txt needs more than 1.0 MB, and nothing"):
        write_whole(out, lambda file: [file.write(bytes(10**5)) for _ in range(30)])
    assert [each.name for each in small_disk.iterdir()] == ["out.txt"]
    assert out.read_text() == "old"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux's")
def test_a_full_device_is_named():
    with pytest.raises(IcscmError, match="the disk is full: /dev/full is incomplete"):
        write_text(Path("/dev/full"), "x" * 10**5)


@pytest.mark.skipif(os.name != "posix", reason="rights are told otherwise")
def test_a_folder_that_cannot_be_written_is_told_before_the_work():
    """After the work, it named a hidden file: Permission denied: '/data/.icscm-0f3c.json'."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o555)
    code = (
        "import sys; from pathlib import Path; from icscm.writing import *\n"
        "for act in (lambda p: check_free(p, force=False), lambda p: write_text(p, 'x')):"
        "\n    try: act(Path(sys.argv[1]))\n    except Exception as error: print(error)"
    )
    try:
        environment = {"PYTHONPATH": str(Path(writing.__file__).parents[1])}
        command = [sys.executable, "-c", code, str(folder / "out.txt")]
        done = run_as_stranger(command, env=environment)
    finally:
        folder.rmdir()
    before, after = done.stdout.splitlines()
    cannot = f"{folder / 'out.txt'} cannot be written: "
    assert before == f"{cannot}no permission for its folder; choose another"
    assert after == f"{cannot}Permission denied"
