"""The base version as a folder to import from: built from a commit, without dependencies.

NumPy, scikit-learn and the others come from the current environment, so that both versions have the
same ones, and every difference is one of the package.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".versions"


def install_base(base: str) -> Path:
    """The folder of a wheel, or of the wheel of a commit; built when it is first asked for."""
    if base.endswith(".whl"):
        wheel = Path(base).resolve(strict=True)
        name = f"{wheel.stem}-{hashlib.sha256(wheel.read_bytes()).hexdigest()[:12]}"
        return install(wheel, CACHE / name / "package")

    commit = run("git", "rev-parse", "--verify", f"{base}^{{commit}}").decode().strip()
    folder = CACHE / commit[:12] / "package"
    if folder.exists():
        return folder
    with TemporaryDirectory() as temporary:
        source, wheels = Path(temporary, "source"), Path(temporary, "wheels")
        archive = run("git", "archive", commit)
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(source, filter="data")
        pip("wheel", "--no-build-isolation", "--wheel-dir", wheels, source)
        (wheel,) = wheels.glob("*.whl")
        return install(wheel, folder)


def install(wheel: Path, folder: Path) -> Path:
    """Install a wheel into a folder that either is complete or does not exist."""
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent) as temporary:
            pip("install", "--target", Path(temporary, "package"), wheel)
            Path(temporary, "package").rename(folder)
    return folder


def pip(command: str, *arguments: object) -> None:
    run(sys.executable, "-m", "pip", command, "--no-deps", "--quiet", *arguments)


def run(*command: object) -> bytes:
    """The output of a command that must succeed."""
    done = subprocess.run([str(part) for part in command], cwd=ROOT, stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}")
    return done.stdout
