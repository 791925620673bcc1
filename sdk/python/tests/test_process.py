"""The process that is called, with programs that misbehave in its place."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
import unittest
from pathlib import Path

import avfs
from avfs import AsyncAvfs, Avfs
from tests.support import children


class Process(unittest.TestCase):
    def setUp(self) -> None:
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def program(self, script: str) -> str:
        path = Path(self.dir.name) / "program"
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)
        return str(path)

    def both(self, script: str, timeout: float | None = None, grace: float = 5.0):
        """Calls the program in both ways."""
        program = self.program(script)
        sync, parallel = Avfs(program, timeout=timeout), AsyncAvfs(program, timeout=timeout)
        for client in (sync, parallel):
            client._settings = client._settings.changed(grace=grace)
        yield lambda: sync.call("x")
        yield lambda: asyncio.run(parallel.call("x"))

    def test_no_document(self) -> None:
        for script in ("echo text", "exit 3", "echo broken >&2; kill -9 $$", "echo '{' ; exit 1"):
            for call in self.both(script):
                with self.subTest(script=script), self.assertRaises(avfs.ProtocolError):
                    call()

    def test_new_kinds_and_fields(self) -> None:
        fault = """echo '{"error":"BrandNew","message":"m","hint":"h","more":[1]}'; exit 4"""
        for call in self.both(fault):
            with self.assertRaises(avfs.Conflict) as raised:
                call()
            e = raised.exception
            self.assertEqual((e.kind, e.message, e.hint, e.details, e.exit_code), ("BrandNew", "m", "h", {"more": [1]}, 4))
        for call in self.both("""echo '{"error":"BrandNew","message":"m"}'; exit 9"""):
            with self.assertRaises(avfs.AvfsError) as raised:
                call()
            self.assertIs(type(raised.exception), avfs.AvfsError)
        for call in self.both("""echo '{"name":"v","brand_new":{"a":1}}'"""):
            self.assertEqual(call(), {"name": "v", "brand_new": {"a": 1}})

    def test_one_that_does_not_end_is_killed(self) -> None:
        for call in self.both("trap '' INT\nwhile :; do sleep 0.05; done", timeout=0.3, grace=0.3):
            begun = time.monotonic()
            with self.assertRaises(avfs.CallTimeout):
                call()
            self.assertLess(time.monotonic() - begun, 5)
            self.assertEqual(children(), [])

    def test_one_that_prints_without_end_is_ended(self) -> None:
        for call in self.both("trap 'exit 1' INT\nwhile :; do echo yes; done", timeout=0.3):
            with self.assertRaises(avfs.CallTimeout):
                call()
            self.assertEqual(children(), [])

    def test_much_output_on_both_streams(self) -> None:
        script = "head -c 3000000 /dev/zero | tr '\\0' x >&2; printf '\"'; head -c 3000000 /dev/zero | tr '\\0' y; printf '\"'"
        for call in self.both(script):
            self.assertEqual(len(call()), 3_000_000)

    def test_arguments_that_are_too_long(self) -> None:
        for call in (
            lambda: Avfs("true").call("x", args=["x" * 3_000_000]),
            lambda: asyncio.run(AsyncAvfs("true").call("x", args=["x" * 3_000_000])),
        ):
            with self.assertRaises(avfs.Usage) as raised:
                call()
            self.assertEqual((raised.exception.kind, raised.exception.exit_code), ("ArgumentsTooLong", 2))

    def test_the_program(self) -> None:
        with self.assertRaises(avfs.BinaryNotFound):
            Avfs("/no/such/program").vaults()
        old = os.environ.get("AVFS_BIN")
        os.environ["AVFS_BIN"] = self.program("""echo '{"version":"fake"}'""")
        try:
            self.assertEqual(Avfs().version(), {"version": "fake"})
        finally:
            if old is None:
                del os.environ["AVFS_BIN"]
            else:
                os.environ["AVFS_BIN"] = old


if __name__ == "__main__":
    unittest.main()
