"""Files, import and export."""

from __future__ import annotations

import asyncio
import io
import os
import tarfile
import tempfile
import unittest

import avfs
from tests.support import Workspace


class Files(Workspace):
    def setUp(self) -> None:
        self.vault = self.avfs.create("v" + self.id().rpartition(".")[2].replace("_", "-"))

    def test_content_survives_byte_for_byte(self) -> None:
        for content in (b"", b"text\n", bytes(range(256)) * 5, b"\xff\xfe", b"a\r\nb\0"):
            with self.subTest(content=content[:8]):
                self.vault.write("f", content)
                self.assertEqual(self.vault.read_bytes("f"), content)

    def test_no_content_and_no_name_are_errors_before_anything_runs(self) -> None:
        self.vault.write("keep", "me")
        with self.assertRaises(TypeError):
            self.vault.write("keep", None)  # type: ignore[arg-type]
        self.assertEqual(self.vault.read_text("keep"), "me")
        nothing = avfs.AsyncAvfs("no-such-program")
        with self.assertRaises(TypeError):
            asyncio.run(nothing.vault("v").write("keep", None))  # type: ignore[arg-type]
        self.assertRaises(ValueError, nothing.vault, "")
        self.assertRaises(TypeError, nothing.vault, None)
        self.assertRaises(ValueError, self.avfs.vault, "")
        self.assertRaises(TypeError, self.avfs.vault, None)

    def test_text(self) -> None:
        self.vault.write("/deep/er/t", "gr\u00fc\u00df\n", parents=True, mode=0o600)
        self.assertEqual(self.vault.read_text("deep/er/t"), "gr\u00fc\u00df\n")
        self.assertEqual(self.vault.stat("deep/er/t")["mode"], "0600")
        self.vault.write("deep/er/t", "more", append=True)
        self.assertEqual(self.vault.read_text("deep/er/t"), "gr\u00fc\u00df\nmore")

    def test_content_from_files_and_pieces(self) -> None:
        big = os.urandom(1 << 20) * 20
        with tempfile.TemporaryFile() as f:
            f.write(big)
            f.seek(0)
            self.assertEqual(self.vault.write("big", f)["bytes"], len(big))
        sink = io.BytesIO()
        self.vault.read_into("big", sink)
        self.assertEqual(sink.getvalue(), big)
        self.vault.write("pieces", (bytes([n]) * 10 for n in range(3)))
        self.assertEqual(self.vault.read_bytes("pieces"), b"\0" * 10 + b"\1" * 10 + b"\2" * 10)

    def test_a_source_that_fails_writes_nothing(self) -> None:
        def source():
            yield b"half"
            raise OSError("the disk went away")

        self.vault.write("f", b"whole")
        with self.assertRaisesRegex(OSError, "went away"):
            self.vault.write("f", source())
        self.assertEqual(self.vault.read_bytes("f"), b"whole")

    def test_names_are_never_flags_nor_states(self) -> None:
        for name in ("-rf", "--json", "--", "a@before", "a b'\"$(x)\n", "@", "~", "*"):
            with self.subTest(name=name):
                self.vault.write(name, name)
                self.assertEqual(self.vault.read_text(name), name)
                self.assertEqual(self.vault.stat(name)["path"], "/" + name)
                self.assertTrue(self.vault.exists(name))
                self.vault.remove(name)
                self.assertFalse(self.vault.exists(name))
        self.vault.checkpoints.save("kept")
        with self.assertRaises(avfs.NotFound):
            self.vault.read_bytes("nothing@kept")

    def test_names_that_are_no_text(self) -> None:
        name = b"/d/\xff\xfe-\xe4"
        self.vault.mkdir(b"/d")
        made = self.vault.call("mkdir", args=[b"/d/\xfd", "/d/plain"])
        self.assertEqual([avfs.path_bytes(p) for p in made["paths"]], [b"/d/\xfd", b"/d/plain"])
        self.vault.remove(b"/d/\xfd", "/d/plain", recursive=True)
        self.vault.write(name, b"\xff")
        entry = self.vault.listdir("/d")[0]
        self.assertEqual(avfs.path_bytes(entry), name)
        self.assertEqual(avfs.path_bytes(entry, "name"), name[3:])
        self.assertEqual(self.vault.read_bytes(avfs.path_bytes(entry)), b"\xff")
        self.vault.move(name, b"/d/\xfe")
        self.assertEqual([avfs.path_bytes(e) for e in self.vault.find("/d", type="f")], [b"/d/\xfe"])
        result = self.vault.exec([b"rm", b"d/\xfe"], check=True)
        self.assertEqual(avfs.path_bytes(result.changed_files[0]), b"d/\xfe")

    def test_names_and_trees(self) -> None:
        v = self.vault
        v.mkdir("src/deep", parents=True)
        v.write("src/a.py", "import os\nprint(1)\n")
        v.copy("src", "copy", recursive=True)
        v.move("copy/a.py", "b.py")
        v.link("../b.py", "src/l", symbolic=True)
        self.assertEqual(v.stat("src/l")["target"], "../b.py")
        self.assertEqual(v.stat("src/l", follow=True)["type"], "file")
        self.assertEqual([e["path"] for e in v.tree("src")], ["/src", "/src/a.py", "/src/deep", "/src/l"])
        self.assertEqual([e["path"] for e in v.find(name="*.py", type="f")], ["/b.py", "/src/a.py"])
        self.assertEqual([(m["path"], m["line"]) for m in v.grep("^import", glob="*.py")], [("/b.py", 1), ("/src/a.py", 1)])
        self.assertEqual(v.grep("nothing like it"), [])
        self.assertEqual(v.edit("b.py", "os\n", "sys\n")["replaced"], 1)
        v.tag("seen", "b.py")
        self.assertEqual([t["path"] for t in v.tagged("seen")], ["/b.py"])
        self.assertEqual(v.tags(), [{"tag": "seen", "paths": 1}])
        self.assertEqual(v.meta("b.py", {"owner": "ada"})["meta"], {"owner": "ada"})
        v.untag("seen", "b.py")
        self.assertEqual(v.tags(), [])
        with self.assertRaises(avfs.AvfsError) as raised:
            v.remove("src")
        self.assertEqual(raised.exception.kind, "IsDirectory")
        v.remove("src", "copy", recursive=True)
        v.remove("src", force=True)
        self.assertEqual([e["name"] for e in v.listdir()], ["b.py"])
        self.assertEqual(v.du()[-1]["size"], len("import sys\nprint(1)\n"))

    def test_import_and_export(self) -> None:
        host = self.work / "host"
        (host / "d").mkdir(parents=True)
        (host / "d" / "f").write_text("one")
        self.assertEqual(self.vault.import_from(host)["files"], 1)
        self.vault.write("d/f", "two")
        out = self.work / "out"
        self.assertEqual(self.vault.export_to(out)["files"], 1)
        self.assertEqual((out / "d" / "f").read_text(), "two")
        self.assertEqual([c["path"] for c in self.vault.apply_to(host)["changes"]], ["d/f"])
        self.assertEqual((host / "d" / "f").read_text(), "two")

    def test_archives(self) -> None:
        self.vault.write("d/f", b"\0" * 3_000_000, parents=True)
        sink = io.BytesIO()
        self.vault.export_tar(sink, compress="gzip")
        archive = sink.getvalue()
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            self.assertIn("d/f", [n.removeprefix("./") for n in tar.getnames()])
        self.assertEqual(self.vault.import_tar(io.BytesIO(archive), "/again")["files"], 1)
        self.assertEqual(self.vault.stat("again/d/f")["size"], 3_000_000)
        with self.assertRaises(avfs.NotFound):
            self.vault.export_tar(io.BytesIO(), "/nothing")


if __name__ == "__main__":
    unittest.main()
