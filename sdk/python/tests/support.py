"""A workspace for each test case, and what is looked at behind it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from avfs import Avfs

PROGRAM = os.environ.get("AVFS_BIN", "avfs")
SHORT = os.environ.get("AVFS_TEST_SHORT") == "1"


class Workspace(unittest.TestCase):
    """Has a client of an empty workspace, and ends its owners after the last test."""

    home: Path
    work: Path
    avfs: Avfs

    @classmethod
    def setUpClass(cls) -> None:
        cls.work = Path(tempfile.mkdtemp(prefix="avfs-python-"))
        cls.home = cls.work / "home"
        cls.avfs = Avfs(PROGRAM, home=cls.home)
        cls.addClassCleanup(cls._end)

    @classmethod
    def _end(cls) -> None:
        for socket in (cls.home / "vaults").glob("*.sock"):
            subprocess.run(
                [PROGRAM, "serve", "--stop", socket.stem, "--force"], env={**os.environ, "AVFS_HOME": str(cls.home)}, capture_output=True
            )
        left = [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(cls.work) in line]
        shutil.rmtree(cls.work)
        if left:
            raise AssertionError(f"mounts are left: {left}")


def children() -> list[str]:
    """The processes that this one has started and not reaped."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(")")
        except OSError:
            continue
        if int(rest.split()[1]) == os.getpid():
            found.append(name)
    return found
