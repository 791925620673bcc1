"""The scenario that every way to use avfs from a program tells the same."""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import os
import string
import unittest
from pathlib import Path
from typing import Any

from avfs import AsyncAvfs, Avfs, AvfsError, output_bytes
from tests.support import PROGRAM, Workspace

SCENARIO = Path(__file__).parents[2] / "testdata" / "scenario.json"


class Text(string.Template):
    """Replaces ${name} alone: $(...) is the shell's."""

    pattern = r"\$(?:(?P<escaped>(?!))|(?P<named>(?!))|{(?P<braced>\w+)}|(?P<invalid>(?!)))"


async def value(maybe: Any) -> Any:
    """What a call of either client gives."""
    return await maybe if inspect.isawaitable(maybe) else maybe


async def cat(vault: Any, path: str) -> Any:
    raw = await value(vault.read_bytes(path))
    try:
        return {"path": path, "text": raw.decode()}
    except UnicodeDecodeError:
        return {"path": path, "base64": base64.b64encode(raw).decode()}


async def execute(vault: Any, a: dict[str, Any], cancel_on: str | None) -> Any:
    options = {"script": a.get("shell"), "cwd": a.get("cwd"), "env": a.get("env")}
    if "timeout_ms" in a:
        options["timeout"] = a["timeout_ms"] / 1000
    argv = a.get("argv", ())
    if cancel_on is None:
        try:
            return (await value(vault.exec(argv, **options))).envelope
        except AvfsError as err:
            if err.result is None:
                raise
            return err.result.envelope
    run = vault.stream(argv, **options)

    def interrupt(event: Any) -> None:
        if cancel_on in output_bytes(event).decode():
            run.interrupt()

    if isinstance(vault.avfs, Avfs):
        with run:
            for event in run:
                interrupt(event)
    else:
        async with run:
            async for event in run:
                interrupt(event)
    return run.result.envelope


async def perform(client: Any, step: dict[str, Any], a: dict[str, Any]) -> Any:
    """The document of a step."""
    vault = client.vault(a.get("vault", a.get("source", "unused")))
    match step["op"]:
        case "vault_create":
            return await value((await value(client.create(a["name"]))).info())
        case "vault_fork":
            return await value((await value(vault.fork(a["name"]))).info())
        case "vault_merge":
            return await value(vault.merge(a["into"], theirs=a.get("theirs", ()), dry_run=a.get("dry_run", False)))
        case "import":
            return await value(vault.import_from(a["source"]))
        case "ls":
            return await value(vault.listdir(a["path"]))
        case "cat":
            return await cat(vault, a["path"])
        case "write":
            return await value(vault.write(a["path"], a["text"], parents=a.get("parents", False)))
        case "edit":
            return await value(vault.edit(a["path"], a["old"], a["new"], all=a.get("all", False)))
        case "grep":
            options = {k: a[k] for k in ("ignore_case", "glob", "context") if k in a}
            return await value(vault.grep(a["pattern"], **options))
        case "find":
            return await value(vault.find(name=a.get("name")))
        case "exec":
            return await execute(vault, a, step.get("cancel_on"))
        case "output":
            return await value(vault.call("output", args=[a["exec"]]))
        case "diff":
            return await value(vault.diff(text=a.get("text", False)))
        case "checkpoint_save":
            return await value(vault.checkpoints.save(a["name"], message=a.get("message")))
        case "checkpoint_list":
            return await value(vault.checkpoints.list())
        case "checkpoint_restore":
            return await value(vault.checkpoints.restore(a["id"], *a.get("paths", ())))
        case "undo":
            return await value(vault.undo())
        case "redo":
            return await value(vault.redo())
        case "log":
            return await value(vault.log(limit=a["limit"]))
        case "approvals_approve":
            return await value(vault.approvals.approve(a["id"]))
    raise AssertionError(f"the scenario has an unknown operation {step['op']}")


def normalised(doc: Any, removed: list[str]) -> Any:
    if isinstance(doc, dict):
        return {k: normalised(v, removed) for k, v in doc.items() if k not in removed}
    if isinstance(doc, list):
        return [normalised(v, removed) for v in doc]
    return doc


async def run(test: unittest.TestCase, client: Any, source: Path) -> None:
    scenario = json.loads(SCENARIO.read_text())
    for name, content in scenario["files"].items():
        file = source / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content["text"].encode() if "text" in content else base64.b64decode(content["base64"]))
        file.chmod(0o644)
    kept = {"source": str(source)}
    test.assertGreater(len(scenario["steps"]), 20)
    for step in scenario["steps"]:
        given = {k: Text(v).safe_substitute(kept) if isinstance(v, str) else v for k, v in step["args"].items()}
        failed = False
        try:
            doc = await perform(client, step, given)
        except AvfsError as err:
            failed = True
            doc = {"error": err.kind, "message": err.message, **err.details}
        with test.subTest(step["name"]):
            test.assertEqual(failed, step.get("fails", False), doc)
            for name, place in step.get("keep", {}).items():
                at = doc
                for key in place.split("."):
                    at = at[key]
                kept[name] = at
            test.assertEqual(normalised(doc, scenario["removed"]), step["expect"])


class Synchronous(Workspace):
    maxDiff = None

    def test_scenario(self) -> None:
        asyncio.run(run(self, Avfs(PROGRAM, home=self.home, env={"AVFS_VAULT": ""}), self.work / "source"))


class Asynchronous(Workspace):
    maxDiff = None

    def test_scenario(self) -> None:
        asyncio.run(run(self, AsyncAvfs(PROGRAM, home=self.home, env={"AVFS_VAULT": ""}), self.work / "source"))


if __name__ == "__main__":
    os.umask(0o022)
    unittest.main()
