# Generated from _async.py by "make sdk-types". Do not edit.
"""The synchronous API: what _async.py has, without await."""

from __future__ import annotations

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
from ._process import Input, Lines, Runner
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


class Avfs:
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

    def with_timeout(self, seconds: float | None) -> Avfs:
        """The same program, with another limit for each call."""
        other = Avfs.__new__(Avfs)
        other._settings = self._settings.changed(timeout=seconds)
        return other

    def version(self) -> Version:
        version: Version = self.call("version")
        return version

    def create(self, name: str, *, backend: str | None = None) -> Vault:
        """Create an empty vault."""
        self.call("vault", "create", flags={"backend": backend}, args=[name])
        return Vault(self, name)

    def vault(self, name: str) -> Vault:
        """A vault that exists. Nothing is asked for until it is used. No name, or an
        empty one, is an error: it never means the current vault."""
        return Vault(self, name)

    def vaults(self) -> list[VaultInfo]:
        """All vaults."""
        found: list[VaultInfo] = self.call("vault", "list")
        return found

    def check_policy(self, argv: Sequence[Path]) -> Decision:
        """What the policy says of a command; nothing runs."""
        decision: Decision = self.call("policy", "check", args=argv)
        return decision

    def call(
        self,
        *command: str,
        flags: Mapping[str, Flag] | None = None,
        args: Iterable[Path] = (),
        vault: str | None = None,
        stdin: Input | None = None,
    ) -> Any:
        """Any command of avfs: ``call("vault", "info", args=["project"])``.

        Gives the document that it prints with ``--json``, and raises its failure.
        """
        line = c.command_line(self._settings, command, flags, args, vault=vault)
        return c.document(Runner(self._settings).run(line, stdin))

    def _bytes(
        self, vault: str, command: str, flags: Mapping[str, Flag], args: Iterable[Path], sink: IO[bytes] | None = None
    ) -> bytes:
        """The output of a command that prints no document."""
        line = c.command_line(self._settings, [command], {**flags, "quiet": True}, args, vault=vault, mode="--json-errors")
        end = Runner(self._settings).run(line, None, sink)
        c.succeeded(end)
        return end.stdout


class Vault:
    """A vault. Paths are those in it, with or without a slash at the beginning."""

    def __init__(self, avfs: Avfs, name: str) -> None:
        c.check_name(name)
        self.avfs = avfs
        self.name = name
        self.checkpoints = Checkpoints(self)
        self.approvals = Approvals(self)
        self.audit = Audit(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def with_timeout(self, seconds: float | None) -> Vault:
        """The same vault, with another limit for each call."""
        return Vault(self.avfs.with_timeout(seconds), self.name)

    def call(
        self,
        *command: str,
        flags: Mapping[str, Flag] | None = None,
        args: Iterable[Path] = (),
        stdin: Input | None = None,
    ) -> Any:
        """Any command of avfs on this vault: ``call("stats")``."""
        return self.avfs.call(*command, flags=flags, args=args, vault=self.name, stdin=stdin)

    # The vault itself.

    def info(self) -> VaultInfo:
        info: VaultInfo = self.avfs.call("vault", "info", args=[self.name])
        return info

    def fork(self, name: str | None = None, *, at: str | None = None) -> Fork:
        """Fork the vault, or its state at a checkpoint. As a context manager the fork
        is discarded at the end, merged or not, unless ``keep`` was called."""
        return self._fork(name, at)

    def _fork(self, name: str | None, at: str | None) -> Fork:
        name = name or f"{self.name}-{secrets.token_hex(4)}"
        self.avfs.call("vault", "fork", flags={"at": at}, args=[self.name, name])
        return Fork(self.avfs, name, self.name)

    def merge(
        self,
        into: Vault | str,
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
        merged: MergeResult = self.avfs.call("vault", "merge", flags=flags, args=[self.name])
        return merged

    def discard(self, *, dry_run: bool = False) -> DiscardResult:
        """Delete the vault and tell what no other vault has."""
        gone: DiscardResult = self.avfs.call("vault", "discard", flags={"yes": True, "dry-run": dry_run}, args=[self.name])
        return gone

    def delete(self) -> DeleteResult:
        """Delete the vault with its checkpoints."""
        gone: DeleteResult = self.avfs.call("vault", "delete", flags={"yes": True}, args=[self.name])
        return gone

    def quota(self) -> Quota:
        """What the vault uses and may use."""
        quota: Quota = self.call("quota", "show")
        return quota

    def set_quota(
        self, *, bytes: int | str | None = None, files: int | str | None = None, file_bytes: int | str | None = None
    ) -> Quota:
        """Set limits. A size may be text such as ``"2G"``; ``"none"`` removes a limit."""
        quota: Quota = self.call("quota", "set", flags={"bytes": bytes, "files": files, "file-bytes": file_bytes})
        return quota

    # Running commands.

    def exec(
        self,
        argv: Sequence[Path] = (),
        *,
        script: str | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str | None] | None = None,
        secrets: Mapping[str, str] | None = None,
        stdin: Input | None = None,
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
        return result_of(c.document(Runner(settings).run(line, stdin)), check)

    def stream(
        self,
        argv: Sequence[Path] = (),
        *,
        script: str | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str | None] | None = None,
        secrets: Mapping[str, str] | None = None,
        stdin: Input | None = None,
        timeout: float | None = None,
        **options: Unpack[ExecOptions],
    ) -> Stream:
        """Run a command as ``exec`` does, and tell what happens as it happens::

            with vault.stream(["make"]) as run:
                for event in run:
                    ...
            run.result.check()
        """
        line = self._exec_line("--json-errors", argv, script, cwd, env, secrets, stdin, timeout, {**c.flags_of(options), "events": True})
        return Stream(self.avfs._settings, line, stdin)

    def _exec_line(
        self,
        mode: str,
        argv: Sequence[Path],
        script: str | None,
        cwd: Path | None,
        env: Mapping[str, str | None] | None,
        secrets: Mapping[str, str] | None,
        stdin: Input | None,
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

    def output(
        self, exec_id: str = "last", *, stream: str = "stdout", tail: int | None = None, sink: IO[bytes] | None = None
    ) -> bytes:
        """All that a command has printed, as far as it is kept: of the stream stdout,
        stderr or combined. With a sink it goes there, and the result is empty."""
        flags: dict[str, Flag] = {"stderr": stream == "stderr", "combined": stream == "combined", "tail": tail}
        return self.avfs._bytes(self.name, "output", flags, [exec_id], sink)

    # Files.

    def read_bytes(self, path: Path, *, at: str | None = None) -> bytes:
        """The content of a file, also in another state: a checkpoint, an exec, a time."""
        return self.avfs._bytes(self.name, "cat", {}, [c.past(path, at)])

    def read_text(self, path: Path, *, at: str | None = None, encoding: str = "utf-8", errors: str = "strict") -> str:
        return (self.read_bytes(path, at=at)).decode(encoding, errors)

    def read_into(self, path: Path, sink: IO[bytes], *, at: str | None = None) -> None:
        """Copy a file, however large, into an open binary file."""
        self.avfs._bytes(self.name, "cat", {}, [c.past(path, at)], sink)

    def write(
        self, path: Path, content: Input, *, append: bool = False, parents: bool = False, mode: int | None = None
    ) -> WriteResult:
        """Write a file: bytes, text as UTF-8, an open binary file, or pieces."""
        if content is None:
            raise TypeError("the content of a file is bytes, text, an open binary file or pieces, not None")
        flags: dict[str, Flag] = {"append": append, "parents": parents, "mode": None if mode is None else f"{mode:04o}"}
        written: WriteResult = self.call("write", flags=flags, args=[path], stdin=content)
        return written

    def edit(self, path: Path, old: Path, new: Path, *, all: bool = False) -> EditResult:
        """Replace a text that is in a file once, or with ``all`` wherever it is."""
        edited: EditResult = self.call("edit", flags={"old": old, "new": new, "all": all}, args=[path])
        return edited

    def listdir(self, path: Path = "/", *, at: str | None = None) -> list[Entry]:
        found: list[Entry] = self.call("ls", args=[c.past(path, at)])
        return found

    def stat(self, path: Path, *, follow: bool = False, at: str | None = None) -> Entry:
        found: list[Entry] = self.call("stat", flags={"follow": follow}, args=[c.past(path, at)])
        return found[0]

    def exists(self, path: Path, *, at: str | None = None) -> bool:
        try:
            self.stat(path, follow=True, at=at)
        except AvfsError as err:
            if err.kind in ("NotFound", "NotDirectory"):
                return False
            raise
        return True

    def tree(self, path: Path = "/", *, depth: int | None = None, at: str | None = None) -> list[Entry]:
        """A directory with everything below it."""
        found: list[Entry] = self.call("tree", flags={"depth": depth}, args=[c.past(path, at)])
        return found

    def mkdir(self, path: Path, *, parents: bool = False, mode: int | None = None) -> None:
        flags: dict[str, Flag] = {"parents": parents, "mode": None if mode is None else f"{mode:04o}"}
        self.call("mkdir", flags=flags, args=[path])

    def remove(self, *paths: Path, recursive: bool = False, force: bool = False) -> None:
        """Remove files, and directories with ``recursive``; with ``force`` one that is not there is no error."""
        self.call("rm", flags={"recursive": recursive, "force": force}, args=paths)

    def move(self, source: Path, dest: Path) -> None:
        """Move to a name, or into a directory."""
        self.call("mv", args=[source, dest])

    def copy(self, source: Path, dest: Path, *, recursive: bool = False) -> None:
        """Copy to a name, or into a directory. Content is shared, not copied."""
        self.call("cp", flags={"recursive": recursive}, args=[source, dest])

    def link(self, target: Path, name: Path, *, symbolic: bool = False, force: bool = False) -> None:
        self.call("ln", flags={"symbolic": symbolic, "force": force}, args=[target, name])

    def find(
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
        found: list[Entry] = self.call("find", flags=flags, args=[c.past(p, at) for p in paths or ("/",)])
        return found

    def grep(
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
        found: list[GrepMatch] = self.call("grep", flags=flags, args=[pattern, *(c.past(p, at) for p in paths or ("/",))])
        return found

    def du(self, path: Path = "/", *, depth: int | None = None) -> list[PathUsage]:
        """What directories hold, as a quota counts it."""
        found: list[PathUsage] = self.call("du", flags={"depth": depth}, args=[path])
        return found

    def tag(self, tag: str, *paths: Path) -> None:
        """Give paths a tag."""
        if not paths:
            raise TypeError("tag takes a tag and paths")
        self.call("tag", args=[tag, *paths])

    def untag(self, tag: str, *paths: Path) -> None:
        self.call("untag", args=[tag, *paths])

    def tagged(self, tag: str) -> list[TaggedPath]:
        """What has a tag."""
        found: list[TaggedPath] = self.call("tag", args=[tag])
        return found

    def tags(self) -> list[TagCount]:
        found: list[TagCount] = self.call("tag")
        return found

    def meta(self, path: Path, values: Mapping[str, str] | None = None, *, unset: Sequence[str] = ()) -> Meta:
        """Note values about a path, and tell all that is noted."""
        meta: Meta = self.call("meta", flags={"unset": list(unset)}, args=[path, *(f"{k}={v}" for k, v in (values or {}).items())])
        return meta

    # Import and export.

    def import_from(
        self, source: Path, dest: Path = "/", *, update: bool = False, gitignore: bool = False, git: bool = False
    ) -> ImportResult:
        """Copy a directory or file of the host into the vault, or with ``git`` the
        tree of a commit (``REPO@REVISION``)."""
        flags: dict[str, Flag] = {"update": update, "gitignore": gitignore, "git": git}
        done: ImportResult = self.call("import", flags=flags, args=[source, dest])
        return done

    def import_tar(self, archive: Input, dest: Path = "/") -> ImportResult:
        """Unpack a tar archive, also a compressed one: bytes, an open binary file, or pieces."""
        done: ImportResult = self.call("import", flags={"tar": True}, args=["-", dest], stdin=archive)
        return done

    def export_to(
        self, dest: Path, source: Path = "/", *, at: str | None = None, changed_since: str | None = None, overwrite: bool = False
    ) -> TransferReport:
        """Copy a tree of the vault to the host."""
        flags: dict[str, Flag] = {"checkpoint": at, "changed-since": changed_since, "overwrite": overwrite}
        done: TransferReport = self.call("export", flags=flags, args=[source, dest])
        return done

    def export_tar(self, sink: IO[bytes], source: Path = "/", *, at: str | None = None, compress: str = "none") -> None:
        """Write a tree as a tar archive (compressed with gzip, zstd or none) to an open binary file."""
        flags: dict[str, Flag] = {"tar": True, "compress": compress, "checkpoint": at}
        self.avfs._bytes(self.name, "export", flags, [source, "-"], sink)

    def apply_to(self, dest: Path, *paths: Path, force: bool = False, dry_run: bool = False) -> ApplyReport:
        """Bring what changed since an import back to the host's directory."""
        flags: dict[str, Flag] = {"to": dest, "force": force, "dry-run": dry_run}
        done: ApplyReport = self.call("apply", flags=flags, args=paths)
        return done

    # History.

    def diff(
        self, before: str | None = None, after: str = "now", *paths: Path, text: bool = False, patch: bool = False, limit: int | None = None
    ) -> Diff:
        """What differs between two states; without the first a fork is compared with
        the state that it began with. ``text`` and ``patch`` add the lines."""
        states = [before if before is not None else "base", after]
        diff: Diff = self.call("diff", flags={"text": text, "patch": patch, "limit": limit}, args=[*states, *paths])
        return diff

    def log(self, *, limit: int | None = None) -> list[LogEntry]:
        """What was done in the vault, newest first."""
        found: list[LogEntry] = self.call("log", flags={"limit": limit})
        return found

    def log_of(self, path: Path, *, limit: int | None = None) -> list[PathLogEntry]:
        """What changed a path or something below it, newest first."""
        found: list[PathLogEntry] = self.call("log", flags={"limit": limit}, args=[path])
        return found

    def undo(
        self, *paths: Path, to: str | int | None = None, event: str | int | None = None, preview: bool = False, force: bool = False
    ) -> UndoResult:
        """Take back the newest change that stands, everything since the event ``to``,
        or one ``event``; of all paths or some."""
        flags: dict[str, Flag] = {"to": to, "event": event, "preview": preview, "force": force}
        done: UndoResult = self.call("undo", flags=flags, args=paths)
        return done

    def redo(self, *, preview: bool = False, force: bool = False) -> UndoResult:
        """Take back the newest undo, if nothing came after it."""
        done: UndoResult = self.call("redo", flags={"preview": preview, "force": force})
        return done

    def revert(self, event: str | int, *paths: Path, preview: bool = False, force: bool = False) -> UndoResult:
        """Take back one event alone, whatever came after it."""
        done: UndoResult = self.call("revert", flags={"preview": preview, "force": force}, args=[str(event), *paths])
        return done

    def checkout(self, path: Path, at: str, *, to: Path | None = None) -> RestoreResult:
        """Bring one path back from another state, or put it elsewhere."""
        done: RestoreResult = self.call("checkout", flags={"to": to}, args=[os.fsencode(path) + b"@" + os.fsencode(at)])
        return done


class Fork(Vault):
    """A fork of a vault. As a context manager it is discarded at the end."""

    def __init__(self, avfs: Avfs, name: str, parent: str) -> None:
        super().__init__(avfs, name)
        self.parent = parent
        self._kept = False

    def keep(self) -> None:
        """Let the fork stay when its context ends."""
        self._kept = True

    def merge(
        self,
        into: Vault | str | None = None,
        *,
        paths: Path | Iterable[Path] = (),
        ours: Path | Iterable[Path] = (),
        theirs: Path | Iterable[Path] = (),
        conflict_markers: bool = False,
        dry_run: bool = False,
    ) -> MergeResult:
        """Bring what changed here into another vault, by default the one it was forked from."""
        return super().merge(
            into if into is not None else self.parent,
            paths=paths,
            ours=ours,
            theirs=theirs,
            conflict_markers=conflict_markers,
            dry_run=dry_run,
        )

    def __enter__(self) -> Fork:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._kept:
            return
        try:
            self.discard()
        except NotFound:
            pass  # it was discarded or deleted before
        except AvfsError as err:
            if value is None:
                raise
            value.add_note(f"and the fork {self.name} could not be discarded: {err}")


class Stream:
    """A command that runs, event by event. Leaving the context before the end ends the command."""

    def __init__(self, settings: Settings, line: list[bytes], source: Input | None) -> None:
        self._start = (settings, line, source)
        self._lines: Lines | None = None
        self._result: ExecResult | None = None

    def __enter__(self) -> Stream:
        self._lines = _open_lines(*self._start)
        return self

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> ExecEvent:
        if self._lines is None:
            raise RuntimeError("a stream is used in its context")
        for line in self._lines:
            event: ExecEvent = json.loads(line)
            envelope = event.get("envelope")
            if event["event"] == "ended" and envelope is not None:
                self._result = result_of(envelope, False)
            return event
        end = self._lines.finish()
        if self._result is None:
            c.succeeded(end)
            raise c.broken(end)
        raise StopIteration

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

    def wait(self) -> ExecResult:
        """Take the events that are left."""
        for _ in self:
            pass
        return self.result

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lines is not None:
            self._lines.close()


def _open_lines(settings: Settings, line: list[bytes], source: Input | None) -> Lines:
    lines = Lines(settings, line, source)
    lines.open()
    return lines


class Checkpoints:
    """The kept states of a vault."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def save(self, name: str | None = None, *, message: str | None = None) -> Checkpoint:
        saved: Checkpoint = self._vault.call("checkpoint", "save", flags={"message": message}, args=[name] if name else [])
        return saved

    def list(self) -> builtins.list[Checkpoint]:
        """Oldest first."""
        found: builtins.list[Checkpoint] = self._vault.call("checkpoint", "list")
        return found

    def info(self, checkpoint: str) -> Checkpoint:
        info: Checkpoint = self._vault.call("checkpoint", "info", args=[checkpoint])
        return info

    def restore(self, checkpoint: str, *paths: Path, preview: bool = False) -> RestoreResult:
        """Bring a state back, as a whole or some paths of it."""
        done: RestoreResult = self._vault.call("checkpoint", "restore", flags={"preview": preview}, args=[checkpoint, *paths])
        return done

    def diff(self, checkpoint: str, after: str = "now", *paths: Path, text: bool = False, patch: bool = False) -> Diff:
        """What changed since a kept state, or between two."""
        return self._vault.diff(checkpoint, after, *paths, text=text, patch=patch)

    def delete(self, checkpoint: str) -> Checkpoint:
        gone: Checkpoint = self._vault.call("checkpoint", "delete", args=[checkpoint])
        return gone


class Approvals:
    """What the policy wants approval for in a vault's store."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def list(self, *, all: bool = False) -> builtins.list[Approval]:
        """Newest first; with ``all`` also those that are used or expired."""
        found: builtins.list[Approval] = self._vault.call("approvals", "list", flags={"all": all})
        return found

    def show(self, approval: str) -> Approval:
        found: Approval = self._vault.call("approvals", "show", args=[approval])
        return found

    def approve(self, approval: str, *, message: str | None = None, seconds: float | None = None) -> Approval:
        """Let the command run, once, within some seconds (by default 15 minutes)."""
        flags: dict[str, Flag] = {"message": message, "for": c.duration(seconds)}
        decided: Approval = self._vault.call("approvals", "approve", flags=flags, args=[approval])
        return decided

    def deny(self, approval: str, *, message: str | None = None) -> Approval:
        decided: Approval = self._vault.call("approvals", "deny", flags={"message": message}, args=[approval])
        return decided


class Audit:
    """What was asked for in a vault, run or not."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def list(self, *, limit: int | None = None, since: str | None = None, status: str | None = None) -> builtins.list[AuditEntry]:
        """Oldest first."""
        found: builtins.list[AuditEntry] = self._vault.call("audit", "list", flags={"limit": limit, "since": since, "status": status})
        return found

    def verify(self, *heads: str) -> AuditReport:
        """Check that no entry was changed, moved or removed: ``findings`` is empty then."""
        report: AuditReport = self._vault.call("audit", "verify", flags={"head": list(heads)})
        return report

    def head(self) -> AuditHead:
        """What to keep elsewhere, as ``f"{seq}:{hash}"`` for ``verify``."""
        head: AuditHead = self._vault.call("audit", "head")
        return head
