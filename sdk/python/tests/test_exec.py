"""Commands: their results, events, limits and ends."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import threading
import time
import unittest

import avfs
from avfs import AsyncAvfs
from tests.support import PROGRAM, Workspace, children


class Exec(Workspace):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.vault = cls.avfs.create("v")

    def tearDown(self) -> None:
        self.assertEqual(children(), [], "processes are left")

    def test_result(self) -> None:
        r = self.vault.exec(["sh", "-c", "echo out; printf '\\377' >&2; echo x > made"])
        self.assertTrue(r.ok)
        self.assertEqual((r.status, r.exit_code, r.stdout, r.stderr_data), ("completed", 0, "out\n", b"\xff"))
        self.assertEqual([(c["kind"], c["path"]) for c in r.changed_files], [("added", "made")])
        self.assertIsNotNone(r.checkpoint)
        self.assertEqual(self.vault.output(r.id), b"out\n")
        self.assertEqual(self.vault.output(r.id, stream="stderr"), b"\xff")
        self.assertEqual(self.vault.output(r.id, tail=2), b"t\n")
        self.vault.undo()

    def test_arguments_are_what_they_are(self) -> None:
        argv = ["printf", "%s|", "-x", "--json", "--", "a b", "$HOME", "\n", "'\"", ""]
        self.assertEqual(self.vault.exec(argv, check=True).stdout, "|".join(argv[2:]) + "|")
        with self.assertRaises(TypeError):
            self.vault.exec("ls -l")

    def test_options(self) -> None:
        self.vault.mkdir("sub", parents=True)
        r = self.vault.exec(
            script='basename "$PWD"; echo "$A=$B"; cat', cwd="sub", env={"A": "-1 =", "B": None}, stdin="in", timeout=20, check=True
        )
        self.assertEqual(r.stdout, "sub\n-1 ==" + os.environ.get("B", "") + "\nin")
        self.assertEqual(self.vault.exec(script="touch x", readonly=True).exit_code, 1)
        self.assertTrue(self.vault.exec(["ls"], dry_run=True).ok)
        with self.assertRaises(avfs.Usage):
            self.vault.exec(["true"], memory="a lot")

    def test_stdin_from_a_file(self) -> None:
        self.assertEqual(self.vault.exec(["wc", "-c"], stdin=io.BytesIO(b"x" * 3_000_000), check=True).stdout.strip(), "3000000")
        self.assertTrue(self.vault.exec(["true"], stdin=b"x" * 3_000_000).ok, "nobody has to read the input")

    def test_what_is_raised(self) -> None:
        for argv, options, cls, code in (
            (["rm", "-rf", "/"], {}, avfs.Denied, 77),
            (["git", "push"], {}, avfs.ApprovalRequired, 78),
            (["sh", "-c", "echo why >&2; exit 3"], {}, avfs.CommandFailed, 3),
            (["no-such-program"], {}, avfs.FailedToStart, 127),
            (["sleep", "30"], {"timeout": 0.3}, avfs.TimedOut, 124),
        ):
            with self.subTest(argv=argv):
                self.assertFalse(self.vault.exec(argv, **options).ok)
                with self.assertRaises(cls) as raised:
                    self.vault.exec(argv, check=True, **options)
                self.assertEqual(raised.exception.exit_code, code)
                assert raised.exception.result is not None
                self.assertFalse(raised.exception.result.ok)
        with self.assertRaises(avfs.NotFound) as missing:
            self.avfs.vault("nosuch").exec(["true"])
        self.assertEqual(missing.exception.kind, "VaultNotFound")

    def test_events(self) -> None:
        with self.vault.stream(script="echo one; printf '\\377' >&2; echo x > e") as run:
            events = list(run)
        self.assertEqual([e["event"] for e in events if e["event"] not in ("stdout", "stderr")], ["started", "changed", "ended"])
        self.assertEqual(b"".join(avfs.output_bytes(e) for e in events if e["event"] == "stderr"), b"\xff")
        self.assertEqual(run.result.stdout, "one\n")
        with self.assertRaises(RuntimeError):
            self.vault.stream(["true"]).result

    def test_events_come_at_once(self) -> None:
        begun = time.monotonic()
        with self.vault.stream(script="echo one; sleep 30") as run:
            for event in run:
                if event["event"] == "stdout":
                    break
        self.assertLess(time.monotonic() - begun, 10)
        self.assertEqual(self.vault.audit.list(limit=1)[0]["status"], "interrupted")

    def test_interrupt(self) -> None:
        with self.vault.stream(script="trap 'echo caught; exit 5' INT; echo ready; sleep 30 & wait") as run:
            for event in run:
                if avfs.output_bytes(event) == b"ready\n":
                    run.interrupt()
        self.assertEqual((run.result.status, run.result.stdout), ("interrupted", "ready\ncaught\n"))

    def test_failures_of_a_stream(self) -> None:
        with self.assertRaises(avfs.NotFound), self.avfs.vault("nosuch").stream(["true"]) as run:
            run.wait()
        with self.assertRaises(avfs.Usage), self.vault.stream(["true"], memory="a lot") as run:
            run.wait()
        with self.vault.stream(["rm", "-rf", "/"]) as run:
            self.assertEqual(run.wait().status, "denied")

    def test_timeout_of_a_call(self) -> None:
        begun = time.monotonic()
        with self.assertRaises(TimeoutError) as raised:
            self.vault.with_timeout(0.4).exec(["sleep", "30"])
        self.assertIsInstance(raised.exception, avfs.CallTimeout)
        self.assertLess(time.monotonic() - begun, 10)
        self.assertEqual(self.vault.audit.list(limit=1)[0]["status"], "interrupted")

    def test_ctrl_c(self) -> None:
        timer = threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            self.vault.exec(["sleep", "30"])
        timer.join()
        self.assertEqual(self.vault.audit.list(limit=1)[0]["status"], "interrupted")

    def test_threads(self) -> None:
        results: list[str] = []

        def one(n: int) -> None:
            with self.vault.fork() as task:
                results.append(task.exec(["echo", str(n)], check=True).stdout.strip())

        threads = [threading.Thread(target=one, args=(n,)) for n in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(sorted(results), ["0", "1", "2", "3"])


class AsyncExec(Workspace, unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.avfs.create("v").write("f", "one")
        cls.client = AsyncAvfs(PROGRAM, home=cls.home)

    async def test_fork(self) -> None:
        vault = self.client.vault("v")
        async with vault.fork() as task:
            await task.exec(["rm", "f"], check=True)
            self.assertFalse(await task.exists("f"))
            self.assertEqual((await task.merge(dry_run=True))["changed"], 1)
        self.assertNotIn(task.name, [v["name"] for v in await self.client.vaults()])
        other = await vault.fork("named", at=(await vault.checkpoints.save())["id"])
        self.assertEqual((await other.discard())["deleted"], "named")

    async def test_side_by_side(self) -> None:
        vault = self.client.vault("v")

        async def one(n: int) -> str:
            async with vault.fork() as task:
                return (await task.exec(["echo", str(n)], check=True)).stdout.strip()

        self.assertEqual(await asyncio.gather(*map(one, range(4))), ["0", "1", "2", "3"])

    async def test_cancellation(self) -> None:
        vault = self.client.vault("v")
        begun = time.monotonic()
        task = asyncio.create_task(vault.exec(["sleep", "30"]))
        await asyncio.sleep(0.4)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertLess(time.monotonic() - begun, 10)
        self.assertEqual((await vault.audit.list(limit=1))[0]["status"], "interrupted")
        self.assertEqual(children(), [])

    async def test_cancellation_within_a_fork(self) -> None:
        vault = self.client.vault("v")
        with self.assertRaises(TimeoutError):
            async with asyncio.timeout(0.6):
                async with vault.fork("slow") as task:
                    await task.exec(["sleep", "30"])
        self.assertNotIn("slow", [v["name"] for v in await self.client.vaults()])

    async def test_events(self) -> None:
        seen = []
        async with self.client.vault("v").stream(script="echo one; sleep 30") as run:
            async for event in run:
                seen.append(event["event"])
                if event["event"] == "stdout":
                    run.interrupt()
        self.assertEqual(seen, ["started", "stdout", "ended"])
        self.assertEqual(run.result.status, "interrupted")
        async with self.client.vault("v").stream(script="echo one; sleep 30") as run:
            async for event in run:
                break
        self.assertEqual(children(), [])

    async def test_timeout_of_a_call(self) -> None:
        with self.assertRaises(avfs.CallTimeout):
            await self.client.vault("v").with_timeout(0.4).exec(["sleep", "30"])
        self.assertEqual(children(), [])

    async def test_pieces(self) -> None:
        async def pieces():
            for n in range(3):
                await asyncio.sleep(0)
                yield b"%d" % n

        async def broken():
            yield b"half"
            raise OSError("gone")

        vault = self.client.vault("v")
        await vault.write("p", pieces())
        self.assertEqual(await vault.read_bytes("p"), b"012")
        with self.assertRaisesRegex(OSError, "gone"):
            await vault.write("p", broken())
        self.assertEqual(await vault.read_bytes("p"), b"012")
        with self.assertRaises(avfs.BinaryNotFound):
            await AsyncAvfs("/no/such/program").vaults()


if __name__ == "__main__":
    unittest.main()
