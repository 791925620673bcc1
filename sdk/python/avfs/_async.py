"""The asynchronous API. "make sdk-types" makes the synchronous one of it."""

from __future__ import annotations

from ._pending import Pending

# The synchronous module is made of what follows.
import builtins
import json
import os
import secrets
import signal
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import IO, Any, Unpack

from . import _command as c
from ._command import ExecOptions, Flag, Path, Settings
from ._errors import AvfsError, NotFound
from ._process import AsyncInput, AsyncLines, AsyncRunner
from ._result import ExecResult, result_of
from ._types import (
    Approval,
    ApplyReport,
    AuditEntry,
    AuditHead,
    AuditReport,
    Checkpoint,
    Decision,
    DeleteResult,
    Diff,
    DiscardResult,
    EditResult,
    Entry,
    ExecEvent,
    GrepMatch,
    ImportResult,
    LogEntry,
    MergeResult,
    Meta,
    PathLogEntry,
    PathUsage,
    Quota,
    RestoreResult,
    TagCount,
    TaggedPath,
    TransferReport,
    UndoResult,
    VaultInfo,
    Version,
    WriteResult,
)


class AsyncAvfs:
    """The program avfs and the vaults that it keeps.

    ``binary`` is the program, by default what ``AVFS_BIN`` names, or ``avfs``.
    ``home`` is where its state is (``AVFS_HOME``). ``env`` has further variables for
    it. ``timeout`` is how many seconds one call may take.
    """

    def __init__(
        self,
        binary: Path | None = None,
        *,
        home: Path | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout: float | None = None,
    ) -> None:
        variables = dict(env or {})
        if home is not None:
            variables["AVFS_HOME"] = os.fsdecode(home)
        program = os.fsdecode(binary) if binary is not None else os.environ.get("AVFS_BIN") or "avfs"
        self._settings = Settings(program, variables, cwd, timeout)

    def with_timeout(self, seconds: float | None) -> AsyncAvfs:
        """The same program, with another limit for each call."""
        other = AsyncAvfs.__new__(AsyncAvfs)
        other._settings = self._settings.changed(timeout=seconds)
        return other

    async def version(self) -> Version:
        version: Version = await self.call("version")
        return version

    async def create(self, name: str, *, backend: str | None = None) -> AsyncVault:
        """Create an empty vault."""
        await self.call("vault", "create", flags={"backend": backend}, args=[name])
        return AsyncVault(self, name)

    def vault(self, name: str) -> AsyncVault:
        """A vault that exists. Nothing is asked for until it is used. No name, or an
        empty one, is an error: it never means the current vault."""
        return AsyncVault(self, name)

    async def vaults(self) -> list[VaultInfo]:
        """All vaults."""
        found: list[VaultInfo] = await self.call("vault", "list")
        return found

    async def check_policy(self, argv: Sequence[Path]) -> Decision:
        """What the policy says of a command; nothing runs."""
        decision: Decision = await self.call("policy", "check", args=argv)
        return decision

    async def call(
        self,
        *command: str,
        flags: Mapping[str, Flag] | None = None,
        args: Iterable[Path] = (),
        vault: str | None = None,
        stdin: AsyncInput | None = None,
    ) -> Any:
        """Any command of avfs: ``call("vault", "info", args=["project"])``.

        Gives the document that it prints with ``--json``, and raises its failure.
        """
        line = c.command_line(self._settings, command, flags, args, vault=vault)
        return c.document(await AsyncRunner(self._settings).run(line, stdin))

    async def _bytes(
        self, vault: str, command: str, flags: Mapping[str, Flag], args: Iterable[Path], sink: IO[bytes] | None = None
    ) -> bytes:
        """The output of a command that prints no document."""
        line = c.command_line(self._settings, [command], {**flags, "quiet": True}, args, vault=vault, mode="--json-errors")
        end = await AsyncRunner(self._settings).run(line, None, sink)
        c.succeeded(end)
        return end.stdout


class AsyncVault:
    """A vault. Paths are those in it, with or without a slash at the beginning."""

    def __init__(self, avfs: AsyncAvfs, name: str) -> None:
        c.check_name(name)
        self.avfs = avfs
        self.name = name
        self.checkpoints = AsyncCheckpoints(self)
        self.approvals = AsyncApprovals(self)
        self.audit = AsyncAudit(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def with_timeout(self, seconds: float | None) -> AsyncVault:
        """The same vault, with another limit for each call."""
        return AsyncVault(self.avfs.with_timeout(seconds), self.name)

    async def call(
        self,
        *command: str,
        flags: Mapping[str, Flag] | None = None,
        args: Iterable[Path] = (),
        stdin: AsyncInput | None = None,
    ) -> Any:
        """Any command of avfs on this vault: ``call("stats")``."""
        return await self.avfs.call(*command, flags=flags, args=args, vault=self.name, stdin=stdin)

    # The vault itself.

    async def info(self) -> VaultInfo:
        info: VaultInfo = await self.avfs.call("vault", "info", args=[self.name])
        return info

    def fork(self, name: str | None = None, *, at: str | None = None) -> Pending[AsyncFork]:
        """Fork the vault, or its state at a checkpoint. As a context manager the fork
        is discarded at the end, merged or not, unless ``keep`` was called."""
        return Pending(self._fork(name, at))

    async def _fork(self, name: str | None, at: str | None) -> AsyncFork:
        name = name or f"{self.name}-{secrets.token_hex(4)}"
        await self.avfs.call("vault", "fork", flags={"at": at}, args=[self.name, name])
        return AsyncFork(self.avfs, name, self.name)

    async def merge(
        self,
        into: AsyncVault | str,
        *,
        paths: Path | Iterable[Path] = (),
        ours: Path | Iterable[Path] = (),
        theirs: Path | Iterable[Path] = (),
        conflict_markers: bool = False,
        dry_run: bool = False,
    ) -> MergeResult:
        """Bring what changed here into another vault. Conflicts raise ``Conflict``,
        and nothing is merged, unless ``ours`` (what is there), ``theirs`` (what is
        here) or markers decide; ``"."`` is everything."""
        flags: dict[str, Flag] = {
            "into": into if isinstance(into, str) else into.name,
            "paths": c.as_list(paths),
            "ours": c.as_list(ours),
            "theirs": c.as_list(theirs),
            "conflict-markers": conflict_markers,
            "dry-run": dry_run,
        }
        merged: MergeResult = await self.avfs.call("vault", "merge", flags=flags, args=[self.name])
        return merged

    async def discard(self, *, dry_run: bool = False) -> DiscardResult:
        """Delete the vault and tell what no other vault has."""
        gone: DiscardResult = await self.avfs.call("vault", "discard", flags={"yes": True, "dry-run": dry_run}, args=[self.name])
        return gone

    async def delete(self) -> DeleteResult:
        """Delete the vault with its checkpoints."""
        gone: DeleteResult = await self.avfs.call("vault", "delete", flags={"yes": True}, args=[self.name])
        return gone

    async def quota(self) -> Quota:
        """What the vault uses and may use."""
        quota: Quota = await self.call("quota", "show")
        return quota

    async def set_quota(
        self, *, bytes: int | str | None = None, files: int | str | None = None, file_bytes: int | str | None = None
    ) -> Quota:
        """Set limits. A size may be text such as ``"2G"``; ``"none"`` removes a limit."""
        quota: Quota = await self.call("quota", "set", flags={"bytes": bytes, "files": files, "file-bytes": file_bytes})
        return quota

    # Running commands.

    async def exec(
        self,
        argv: Sequence[Path] = (),
        *,
        script: str | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str | None] | None = None,
        secrets: Mapping[str, str] | None = None,
        stdin: AsyncInput | None = None,
        timeout: float | None = None,
        check: bool = False,
        **options: Unpack[ExecOptions],
    ) -> ExecResult:
        """Run a command, or a script of a shell, under the policy.

        A variable in ``env`` that is None is taken from this process. ``secrets`` are
        given by reference (``"file:PATH"``, ``"cmd:SCRIPT"``). ``timeout`` is in
        seconds, 0 is never, and without it 300. The other options are the flags of
        ``avfs exec``: ``readonly``, ``checkpoint``, ``session``, ``memory`` and so on.

        With ``check`` whatever is not ``ok`` is raised. Failures of avfs itself
        always are.
        """
        line = self._exec_line("--json", argv, script, cwd, env, secrets, stdin, timeout, c.flags_of(options))
        settings = self.avfs._settings
        return result_of(c.document(await AsyncRunner(settings).run(line, stdin)), check)

    def stream(
        self,
        argv: Sequence[Path] = (),
        *,
        script: str | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str | None] | None = None,
        secrets: Mapping[str, str] | None = None,
        stdin: AsyncInput | None = None,
        timeout: float | None = None,
        **options: Unpack[ExecOptions],
    ) -> AsyncStream:
        """Run a command as ``exec`` does, and tell what happens as it happens::

            async with vault.stream(["make"]) as run:
                async for event in run:
                    ...
            run.result.check()
        """
        line = self._exec_line("--json-errors", argv, script, cwd, env, secrets, stdin, timeout, {**c.flags_of(options), "events": True})
        return AsyncStream(self.avfs._settings, line, stdin)

    def _exec_line(
        self,
        mode: str,
        argv: Sequence[Path],
        script: str | None,
        cwd: Path | None,
        env: Mapping[str, str | None] | None,
        secrets: Mapping[str, str] | None,
        stdin: AsyncInput | None,
        timeout: float | None,
        flags: Mapping[str, Flag],
    ) -> list[bytes]:
        if isinstance(argv, (str, bytes)):
            raise TypeError("a command is a list of arguments; give a line of a shell as script=")
        all_flags: dict[str, Flag] = {
            "shell": script,
            "cwd": cwd,
            "env": [k if v is None else f"{k}={v}" for k, v in (env or {}).items()],
            "secret": [f"{k}={v}" for k, v in (secrets or {}).items()],
            "stdin": stdin is not None,
            "timeout": c.duration(timeout),
            **flags,
        }
        return c.command_line(self.avfs._settings, ["exec"], all_flags, argv, vault=self.name, mode=mode)

    async def output(
        self, exec_id: str = "last", *, stream: str = "stdout", tail: int | None = None, sink: IO[bytes] | None = None
    ) -> bytes:
        """All that a command has printed, as far as it is kept: of the stream stdout,
        stderr or combined. With a sink it goes there, and the result is empty."""
        flags: dict[str, Flag] = {"stderr": stream == "stderr", "combined": stream == "combined", "tail": tail}
        return await self.avfs._bytes(self.name, "output", flags, [exec_id], sink)

    # Files.

    async def read_bytes(self, path: Path, *, at: str | None = None) -> bytes:
        """The content of a file, also in another state: a checkpoint, an exec, a time."""
        return await self.avfs._bytes(self.name, "cat", {}, [c.past(path, at)])

    async def read_text(self, path: Path, *, at: str | None = None, encoding: str = "utf-8", errors: str = "strict") -> str:
        return (await self.read_bytes(path, at=at)).decode(encoding, errors)

    async def read_into(self, path: Path, sink: IO[bytes], *, at: str | None = None) -> None:
        """Copy a file, however large, into an open binary file."""
        await self.avfs._bytes(self.name, "cat", {}, [c.past(path, at)], sink)

    async def write(
        self, path: Path, content: AsyncInput, *, append: bool = False, parents: bool = False, mode: int | None = None
    ) -> WriteResult:
        """Write a file: bytes, text as UTF-8, an open binary file, or pieces."""
        if content is None:
            raise TypeError("the content of a file is bytes, text, an open binary file or pieces, not None")
        flags: dict[str, Flag] = {"append": append, "parents": parents, "mode": None if mode is None else f"{mode:04o}"}
        written: WriteResult = await self.call("write", flags=flags, args=[path], stdin=content)
        return written

    async def edit(self, path: Path, old: Path, new: Path, *, all: bool = False) -> EditResult:
        """Replace a text that is in a file once, or with ``all`` wherever it is."""
        edited: EditResult = await self.call("edit", flags={"old": old, "new": new, "all": all}, args=[path])
        return edited

    async def listdir(self, path: Path = "/", *, at: str | None = None) -> list[Entry]:
        found: list[Entry] = await self.call("ls", args=[c.past(path, at)])
        return found

    async def stat(self, path: Path, *, follow: bool = False, at: str | None = None) -> Entry:
        found: list[Entry] = await self.call("stat", flags={"follow": follow}, args=[c.past(path, at)])
        return found[0]

    async def exists(self, path: Path, *, at: str | None = None) -> bool:
        try:
            await self.stat(path, follow=True, at=at)
        except AvfsError as err:
            if err.kind in ("NotFound", "NotDirectory"):
                return False
            raise
        return True

    async def tree(self, path: Path = "/", *, depth: int | None = None, at: str | None = None) -> list[Entry]:
        """A directory with everything below it."""
        found: list[Entry] = await self.call("tree", flags={"depth": depth}, args=[c.past(path, at)])
        return found

    async def mkdir(self, path: Path, *, parents: bool = False, mode: int | None = None) -> None:
        flags: dict[str, Flag] = {"parents": parents, "mode": None if mode is None else f"{mode:04o}"}
        await self.call("mkdir", flags=flags, args=[path])

    async def remove(self, *paths: Path, recursive: bool = False, force: bool = False) -> None:
        """Remove files, and directories with ``recursive``; with ``force`` one that is not there is no error."""
        await self.call("rm", flags={"recursive": recursive, "force": force}, args=paths)

    async def move(self, source: Path, dest: Path) -> None:
        """Move to a name, or into a directory."""
        await self.call("mv", args=[source, dest])

    async def copy(self, source: Path, dest: Path, *, recursive: bool = False) -> None:
        """Copy to a name, or into a directory. Content is shared, not copied."""
        await self.call("cp", flags={"recursive": recursive}, args=[source, dest])

    async def link(self, target: Path, name: Path, *, symbolic: bool = False, force: bool = False) -> None:
        await self.call("ln", flags={"symbolic": symbolic, "force": force}, args=[target, name])

    async def find(
        self,
        *paths: Path,
        name: str | Sequence[str] | None = None,
        iname: str | Sequence[str] | None = None,
        type: str | None = None,
        size: str | None = None,
        mtime: str | None = None,
        tag: str | Sequence[str] | None = None,
        max_depth: int | None = None,
        at: str | None = None,
    ) -> list[Entry]:
        """Find paths by name, type (``f``, ``d``, ``l``), size (``"+10k"``), days since a change (``"-7"``) and tag."""
        flags: dict[str, Flag] = {
            "name": name,
            "iname": iname,
            "type": type,
            "size": size,
            "mtime": mtime,
            "tag": tag,
            "maxdepth": max_depth,
        }
        found: list[Entry] = await self.call("find", flags=flags, args=[c.past(p, at) for p in paths or ("/",)])
        return found

    async def grep(
        self,
        pattern: str,
        *paths: Path,
        ignore_case: bool = False,
        fixed: bool = False,
        word: bool = False,
        glob: str | Sequence[str] | None = None,
        context: int | None = None,
        at: str | None = None,
    ) -> list[GrepMatch]:
        """Lines that match a regular expression (RE2)."""
        flags: dict[str, Flag] = {"ignore-case": ignore_case, "fixed": fixed, "word": word, "glob": glob, "context": context}
        found: list[GrepMatch] = await self.call("grep", flags=flags, args=[pattern, *(c.past(p, at) for p in paths or ("/",))])
        return found

    async def du(self, path: Path = "/", *, depth: int | None = None) -> list[PathUsage]:
        """What directories hold, as a quota counts it."""
        found: list[PathUsage] = await self.call("du", flags={"depth": depth}, args=[path])
        return found

    async def tag(self, tag: str, *paths: Path) -> None:
        """Give paths a tag."""
        if not paths:
            raise TypeError("tag takes a tag and paths")
        await self.call("tag", args=[tag, *paths])

    async def untag(self, tag: str, *paths: Path) -> None:
        await self.call("untag", args=[tag, *paths])

    async def tagged(self, tag: str) -> list[TaggedPath]:
        """What has a tag."""
        found: list[TaggedPath] = await self.call("tag", args=[tag])
        return found

    async def tags(self) -> list[TagCount]:
        found: list[TagCount] = await self.call("tag")
        return found

    async def meta(self, path: Path, values: Mapping[str, str] | None = None, *, unset: Sequence[str] = ()) -> Meta:
        """Note values about a path, and tell all that is noted."""
        meta: Meta = await self.call("meta", flags={"unset": list(unset)}, args=[path, *(f"{k}={v}" for k, v in (values or {}).items())])
        return meta

    # Import and export.

    async def import_from(
        self, source: Path, dest: Path = "/", *, update: bool = False, gitignore: bool = False, git: bool = False
    ) -> ImportResult:
        """Copy a directory or file of the host into the vault, or with ``git`` the
        tree of a commit (``REPO@REVISION``)."""
        flags: dict[str, Flag] = {"update": update, "gitignore": gitignore, "git": git}
        done: ImportResult = await self.call("import", flags=flags, args=[source, dest])
        return done

    async def import_tar(self, archive: AsyncInput, dest: Path = "/") -> ImportResult:
        """Unpack a tar archive, also a compressed one: bytes, an open binary file, or pieces."""
        done: ImportResult = await self.call("import", flags={"tar": True}, args=["-", dest], stdin=archive)
        return done

    async def export_to(
        self, dest: Path, source: Path = "/", *, at: str | None = None, changed_since: str | None = None, overwrite: bool = False
    ) -> TransferReport:
        """Copy a tree of the vault to the host."""
        flags: dict[str, Flag] = {"checkpoint": at, "changed-since": changed_since, "overwrite": overwrite}
        done: TransferReport = await self.call("export", flags=flags, args=[source, dest])
        return done

    async def export_tar(self, sink: IO[bytes], source: Path = "/", *, at: str | None = None, compress: str = "none") -> None:
        """Write a tree as a tar archive (compressed with gzip, zstd or none) to an open binary file."""
        flags: dict[str, Flag] = {"tar": True, "compress": compress, "checkpoint": at}
        await self.avfs._bytes(self.name, "export", flags, [source, "-"], sink)

    async def apply_to(self, dest: Path, *paths: Path, force: bool = False, dry_run: bool = False) -> ApplyReport:
        """Bring what changed since an import back to the host's directory."""
        flags: dict[str, Flag] = {"to": dest, "force": force, "dry-run": dry_run}
        done: ApplyReport = await self.call("apply", flags=flags, args=paths)
        return done

    # History.

    async def diff(
        self, before: str | None = None, after: str = "now", *paths: Path, text: bool = False, patch: bool = False, limit: int | None = None
    ) -> Diff:
        """What differs between two states; without the first a fork is compared with
        the state that it began with. ``text`` and ``patch`` add the lines."""
        states = [before if before is not None else "base", after]
        diff: Diff = await self.call("diff", flags={"text": text, "patch": patch, "limit": limit}, args=[*states, *paths])
        return diff

    async def log(self, *, limit: int | None = None) -> list[LogEntry]:
        """What was done in the vault, newest first."""
        found: list[LogEntry] = await self.call("log", flags={"limit": limit})
        return found

    async def log_of(self, path: Path, *, limit: int | None = None) -> list[PathLogEntry]:
        """What changed a path or something below it, newest first."""
        found: list[PathLogEntry] = await self.call("log", flags={"limit": limit}, args=[path])
        return found

    async def undo(
        self, *paths: Path, to: str | int | None = None, event: str | int | None = None, preview: bool = False, force: bool = False
    ) -> UndoResult:
        """Take back the newest change that stands, everything since the event ``to``,
        or one ``event``; of all paths or some."""
        flags: dict[str, Flag] = {"to": to, "event": event, "preview": preview, "force": force}
        done: UndoResult = await self.call("undo", flags=flags, args=paths)
        return done

    async def redo(self, *, preview: bool = False, force: bool = False) -> UndoResult:
        """Take back the newest undo, if nothing came after it."""
        done: UndoResult = await self.call("redo", flags={"preview": preview, "force": force})
        return done

    async def revert(self, event: str | int, *paths: Path, preview: bool = False, force: bool = False) -> UndoResult:
        """Take back one event alone, whatever came after it."""
        done: UndoResult = await self.call("revert", flags={"preview": preview, "force": force}, args=[str(event), *paths])
        return done

    async def checkout(self, path: Path, at: str, *, to: Path | None = None) -> RestoreResult:
        """Bring one path back from another state, or put it elsewhere."""
        done: RestoreResult = await self.call("checkout", flags={"to": to}, args=[os.fsencode(path) + b"@" + os.fsencode(at)])
        return done


class AsyncFork(AsyncVault):
    """A fork of a vault. As a context manager it is discarded at the end."""

    def __init__(self, avfs: AsyncAvfs, name: str, parent: str) -> None:
        super().__init__(avfs, name)
        self.parent = parent
        self._kept = False

    def keep(self) -> None:
        """Let the fork stay when its context ends."""
        self._kept = True

    async def merge(
        self,
        into: AsyncVault | str | None = None,
        *,
        paths: Path | Iterable[Path] = (),
        ours: Path | Iterable[Path] = (),
        theirs: Path | Iterable[Path] = (),
        conflict_markers: bool = False,
        dry_run: bool = False,
    ) -> MergeResult:
        """Bring what changed here into another vault, by default the one it was forked from."""
        return await super().merge(
            into if into is not None else self.parent,
            paths=paths,
            ours=ours,
            theirs=theirs,
            conflict_markers=conflict_markers,
            dry_run=dry_run,
        )

    async def __aenter__(self) -> AsyncFork:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._kept:
            return
        try:
            await self.discard()
        except NotFound:
            pass  # it was discarded or deleted before
        except AvfsError as err:
            if value is None:
                raise
            value.add_note(f"and the fork {self.name} could not be discarded: {err}")


class AsyncStream:
    """A command that runs, event by event. Leaving the context before the end ends the command."""

    def __init__(self, settings: Settings, line: list[bytes], source: AsyncInput | None) -> None:
        self._start = (settings, line, source)
        self._lines: AsyncLines | None = None
        self._result: ExecResult | None = None

    async def __aenter__(self) -> AsyncStream:
        self._lines = await _open_lines(*self._start)
        return self

    def __aiter__(self) -> AsyncStream:
        return self

    async def __anext__(self) -> ExecEvent:
        if self._lines is None:
            raise RuntimeError("a stream is used in its context")
        async for line in self._lines:
            event: ExecEvent = json.loads(line)
            envelope = event.get("envelope")
            if event["event"] == "ended" and envelope is not None:
                self._result = result_of(envelope, False)
            return event
        end = await self._lines.finish()
        if self._result is None:
            c.succeeded(end)
            raise c.broken(end)
        raise StopAsyncIteration

    def interrupt(self) -> None:
        """Send the command SIGINT, as Ctrl-C does. The events go on until it has ended."""
        if self._lines is not None:
            self._lines.send(signal.SIGINT)

    @property
    def result(self) -> ExecResult:
        """How the command went, once all events were taken."""
        if self._result is None:
            raise RuntimeError("the command has not ended, or its events were not taken")
        return self._result

    async def wait(self) -> ExecResult:
        """Take the events that are left."""
        async for _ in self:
            pass
        return self.result

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lines is not None:
            await self._lines.aclose()


async def _open_lines(settings: Settings, line: list[bytes], source: AsyncInput | None) -> AsyncLines:
    lines = AsyncLines(settings, line, source)
    await lines.open()
    return lines


class AsyncCheckpoints:
    """The kept states of a vault."""

    def __init__(self, vault: AsyncVault) -> None:
        self._vault = vault

    async def save(self, name: str | None = None, *, message: str | None = None) -> Checkpoint:
        saved: Checkpoint = await self._vault.call("checkpoint", "save", flags={"message": message}, args=[name] if name else [])
        return saved

    async def list(self) -> builtins.list[Checkpoint]:
        """Oldest first."""
        found: builtins.list[Checkpoint] = await self._vault.call("checkpoint", "list")
        return found

    async def info(self, checkpoint: str) -> Checkpoint:
        info: Checkpoint = await self._vault.call("checkpoint", "info", args=[checkpoint])
        return info

    async def restore(self, checkpoint: str, *paths: Path, preview: bool = False) -> RestoreResult:
        """Bring a state back, as a whole or some paths of it."""
        done: RestoreResult = await self._vault.call("checkpoint", "restore", flags={"preview": preview}, args=[checkpoint, *paths])
        return done

    async def diff(self, checkpoint: str, after: str = "now", *paths: Path, text: bool = False, patch: bool = False) -> Diff:
        """What changed since a kept state, or between two."""
        return await self._vault.diff(checkpoint, after, *paths, text=text, patch=patch)

    async def delete(self, checkpoint: str) -> Checkpoint:
        gone: Checkpoint = await self._vault.call("checkpoint", "delete", args=[checkpoint])
        return gone


class AsyncApprovals:
    """What the policy wants approval for in a vault's store."""

    def __init__(self, vault: AsyncVault) -> None:
        self._vault = vault

    async def list(self, *, all: bool = False) -> builtins.list[Approval]:
        """Newest first; with ``all`` also those that are used or expired."""
        found: builtins.list[Approval] = await self._vault.call("approvals", "list", flags={"all": all})
        return found

    async def show(self, approval: str) -> Approval:
        found: Approval = await self._vault.call("approvals", "show", args=[approval])
        return found

    async def approve(self, approval: str, *, message: str | None = None, seconds: float | None = None) -> Approval:
        """Let the command run, once, within some seconds (by default 15 minutes)."""
        flags: dict[str, Flag] = {"message": message, "for": c.duration(seconds)}
        decided: Approval = await self._vault.call("approvals", "approve", flags=flags, args=[approval])
        return decided

    async def deny(self, approval: str, *, message: str | None = None) -> Approval:
        decided: Approval = await self._vault.call("approvals", "deny", flags={"message": message}, args=[approval])
        return decided


class AsyncAudit:
    """What was asked for in a vault, run or not."""

    def __init__(self, vault: AsyncVault) -> None:
        self._vault = vault

    async def list(self, *, limit: int | None = None, since: str | None = None, status: str | None = None) -> builtins.list[AuditEntry]:
        """Oldest first."""
        found: builtins.list[AuditEntry] = await self._vault.call("audit", "list", flags={"limit": limit, "since": since, "status": status})
        return found

    async def verify(self, *heads: str) -> AuditReport:
        """Check that no entry was changed, moved or removed: ``findings`` is empty then."""
        report: AuditReport = await self._vault.call("audit", "verify", flags={"head": list(heads)})
        return report

    async def head(self) -> AuditHead:
        """What to keep elsewhere, as ``f"{seq}:{hash}"`` for ``verify``."""
        head: AuditHead = await self._vault.call("audit", "head")
        return head
