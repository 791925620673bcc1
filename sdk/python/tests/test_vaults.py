"""Vaults, forks, history, approvals and the audit."""

from __future__ import annotations

import pickle
import unittest

import avfs
from tests.support import Workspace


class Vaults(Workspace):
    def setUp(self) -> None:
        self.vault = self.avfs.create("v" + self.id().rpartition(".")[2].replace("_", "-"))

    def names(self) -> list[str]:
        return [v["name"] for v in self.avfs.vaults()]

    def test_a_fork_goes_with_its_context(self) -> None:
        self.vault.write("f", "one")
        with self.vault.fork() as task:
            self.assertIn(task.name, self.names())
            self.assertEqual(task.info()["parent"], self.vault.name)
            task.write("f", "two")
            self.assertEqual(self.vault.read_text("f"), "one")
        self.assertNotIn(task.name, self.names())

    def test_a_fork_goes_with_an_exception(self) -> None:
        with self.assertRaises(ZeroDivisionError), self.vault.fork("broken") as task:
            task.write("f", str(1 // 0))
        self.assertNotIn("broken", self.names())

    def test_what_stays(self) -> None:
        with self.vault.fork("kept") as task:
            task.keep()
        self.assertIn("kept", self.names())
        self.assertEqual(task.discard()["deleted"], "kept")
        with self.vault.fork() as gone:
            gone.delete()

    def test_merge(self) -> None:
        self.vault.write("f", "one\n")
        with self.vault.fork() as task:
            task.write("g", "new")
            self.assertEqual(task.merge(dry_run=True)["changed"], 1)
            self.assertEqual([c["path"] for c in task.merge()["changes"]], ["g"])
            task.write("f", "theirs\n")
            self.vault.write("f", "ours\n")
            with self.assertRaises(avfs.Conflict) as raised:
                task.merge()
            self.assertEqual(raised.exception.kind, "Conflict")
            self.assertEqual([c["path"] for c in raised.exception.conflicts], ["f"])
            self.assertIsNotNone(raised.exception.hint)
            task.merge(theirs="f")
        self.assertEqual(self.vault.read_text("f"), "theirs\n")

    def test_history(self) -> None:
        v = self.vault
        v.write("f", "one")
        kept = v.checkpoints.save("kept", message="before")
        v.write("f", "three")
        self.assertEqual(v.read_text("f", at="kept"), "one")
        self.assertEqual([c["kind"] for c in v.checkpoints.diff("kept")["changes"]], ["modified"])
        self.assertIn("+three", v.diff("kept", text=True)["patch"] or "")
        v.undo()
        self.assertEqual(v.read_text("f"), "one")
        v.redo()
        self.assertEqual(v.read_text("f"), "three")
        self.assertEqual(v.checkpoints.restore(kept["id"], "f")["changed"], 1)
        self.assertEqual(v.read_text("f"), "one")
        v.write("g", "x")
        event = v.log(limit=1)[0]["seq"]
        v.write("h", "y")
        v.revert(event)
        self.assertEqual([e["name"] for e in v.listdir()], ["f", "h"])
        self.assertEqual([e["seq"] for e in v.log_of("g")], [event + 2, event])
        v.checkout("g", f"#{event}", to="back")
        self.assertEqual(v.read_text("back"), "x")
        self.assertIn("kept", [c.get("name") for c in v.checkpoints.list()])
        self.assertEqual(v.checkpoints.info("kept")["message"], "before")
        v.checkpoints.delete("kept")
        with self.assertRaises(avfs.NotFound) as raised:
            v.checkpoints.restore("kept")
        self.assertEqual(raised.exception.kind, "CheckpointNotFound")

    def test_quota(self) -> None:
        self.assertEqual(self.vault.set_quota(bytes="1K")["limits"]["max_bytes"], 1024)
        with self.assertRaises(avfs.NoSpace) as raised:
            self.vault.write("f", b"x" * 2000)
        self.assertEqual((raised.exception.kind, raised.exception.exit_code), ("QuotaExceeded", 5))
        self.assertIn("limit", raised.exception.details)
        self.vault.set_quota(bytes="none")
        self.assertIsNone(self.vault.quota()["limits"]["max_bytes"])

    def test_approvals(self) -> None:
        argv = ["git", "push"]
        result = self.vault.exec(argv)
        self.assertEqual((result.status, result.ok), ("approval_required", False))
        with self.assertRaises(avfs.ApprovalRequired) as raised:
            self.vault.exec(argv, check=True)
        wanted = raised.exception.approval_id
        assert wanted is not None
        self.assertIn(wanted, [a["id"] for a in self.vault.approvals.list()])
        self.assertEqual(self.vault.approvals.approve(wanted, message="fine", seconds=60)["state"], "approved")
        self.assertEqual(self.vault.exec(argv).status, "completed")
        again = self.vault.exec(argv).approval_id
        assert again is not None
        self.vault.approvals.deny(again, message="no")
        self.assertEqual(self.vault.approvals.show(again)["message"], "no")
        self.assertEqual(self.vault.exec(argv).envelope["approval"]["state"], "denied")

    def test_audit(self) -> None:
        self.vault.exec(["rm", "-rf", "/"])
        self.assertEqual(self.vault.audit.list(status="denied", limit=1)[0]["argv"], ["rm", "-rf", "/"])
        head = self.vault.audit.head()
        self.assertEqual(self.vault.audit.verify(f"{head['seq']}:{head['hash']}")["findings"], [])
        self.assertNotEqual(self.vault.audit.verify(f"{head['seq']}:{'0' * 64}")["findings"], [])

    def test_errors_are_classes(self) -> None:
        with self.assertRaises(avfs.Conflict) as exists:
            self.avfs.create(self.vault.name)
        self.assertEqual(exists.exception.kind, "VaultExists")
        with self.assertRaises(avfs.NotFound) as missing:
            self.avfs.vault("nosuch").listdir()
        self.assertEqual((missing.exception.kind, missing.exception.exit_code), ("VaultNotFound", 3))
        with self.assertRaises(avfs.Usage):
            self.vault.call("frobnicate")
        with self.assertRaises(avfs.Usage):
            self.avfs.create("no/name")
        (self.home / "vaults" / "other.avfs").write_text("no store at all")
        with self.assertRaises(avfs.NotStore):
            self.avfs.vault("other").listdir()
        (self.home / "vaults" / "other.avfs").unlink()
        same = pickle.loads(pickle.dumps(missing.exception))
        self.assertEqual((type(same), same.kind, same.hint), (avfs.NotFound, missing.exception.kind, missing.exception.hint))

    def test_any_command(self) -> None:
        self.assertGreaterEqual(self.vault.call("stats")["vaults"], 1)
        self.assertEqual(self.avfs.call("vault", "info", args=[self.vault.name])["name"], self.vault.name)
        self.assertEqual(self.avfs.check_policy(["rm", "-rf", "/"])["action"], "deny")
        self.assertIn("sqlite", self.avfs.version()["backends"])


if __name__ == "__main__":
    unittest.main()
