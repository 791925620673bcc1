"""Processes of avfs, with threads and with asyncio.

A process gets a session of its own, so that Ctrl-C in a terminal reaches it once,
through this package. Whoever stops waiting for one, by an exception, a timeout or a
cancellation, ends it: SIGINT first, on which avfs ends what it runs and records it,
and SIGKILL after ``Settings.grace``. It is reaped in every case.
"""

from __future__ import annotations

import asyncio
import errno
import signal
import subprocess
import threading
from collections.abc import AsyncIterable, AsyncIterator, Coroutine, Iterable, Iterator
from contextlib import suppress
from typing import IO, Any, TypeVar, Union

from ._command import Finished, Settings
from ._errors import AvfsError, BinaryNotFound, CallTimeout, Usage

PIECE = 1 << 20

T = TypeVar("T")

#: What a call reads: content at hand, an open binary file, or pieces.
Input = Union[bytes, bytearray, memoryview, str, IO[bytes], Iterable[bytes]]
AsyncInput = Union[Input, AsyncIterable[bytes]]


def _cannot_start(settings: Settings, err: OSError) -> AvfsError:
    if err.errno == errno.E2BIG:
        return Usage("ArgumentsTooLong", "the arguments are longer than the system takes", exit_code=2, hint="give large content as stdin, or write it to a file")
    return BinaryNotFound(
        "BinaryNotFound",
        f"{settings.binary!r} cannot be started: {err}",
        hint="name the program with AVFS_BIN or Avfs(binary=...)",
        exit_code=127,
    )


def _too_slow(settings: Settings) -> AvfsError:
    return CallTimeout("CallTimeout", f"the call took longer than {settings.timeout} s and was ended", exit_code=124)


def _pieces(source: Input) -> Iterator[bytes]:
    if isinstance(source, str):
        yield source.encode()
    elif isinstance(source, (bytes, bytearray, memoryview)):
        yield bytes(source)
    elif hasattr(source, "read"):
        while piece := source.read(PIECE):
            yield piece
    else:
        yield from source


class Child:
    """A running process with its output."""

    def __init__(self, settings: Settings, argv: list[bytes], source: Input | None) -> None:
        self._settings = settings
        self._expired = False
        self._failed: BaseException | None = None  # why the input could not be read
        self._errors: list[bytes] = []
        try:
            self._proc: subprocess.Popen[bytes] = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL if source is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=settings.environ(),
                cwd=settings.cwd,
                start_new_session=True,
            )
        except OSError as err:
            raise _cannot_start(settings, err) from err
        self._threads = [threading.Thread(target=self._drain, daemon=True)]
        if source is not None:
            self._threads.append(threading.Thread(target=self._feed, args=(source,), daemon=True))
        for t in self._threads:
            t.start()
        self._timer: threading.Timer | None = None
        if settings.timeout is not None:
            self._timer = threading.Timer(settings.timeout, self._expire)
            self._timer.daemon = True
            self._timer.start()

    def _drain(self) -> None:
        assert self._proc.stderr is not None
        while piece := self._proc.stderr.read(PIECE):
            self._errors.append(piece)

    def _feed(self, source: Input) -> None:
        pipe = self._proc.stdin
        assert pipe is not None
        try:
            for piece in _pieces(source):
                try:
                    pipe.write(piece)
                    pipe.flush()
                except BrokenPipeError:
                    break  # the process has what it wants, or says why not
        except BaseException as err:  # an end of the input here would look like its true end
            self._failed = err
            self._proc.kill()
        finally:
            with suppress(OSError):
                pipe.close()

    def _expire(self) -> None:
        self._expired = True
        self._end()

    def _end(self) -> None:
        self.send(signal.SIGINT)
        try:
            self._proc.wait(self._settings.grace)
        except subprocess.TimeoutExpired:
            self._proc.kill()

    def send(self, signum: int) -> None:
        """Pass a signal on; a process that has ended gets none."""
        self._proc.send_signal(signum)

    def read(self) -> bytes:
        """The next piece of its output, empty at the end."""
        assert self._proc.stdout is not None
        return self._proc.stdout.read1(PIECE)  # type: ignore[attr-defined, no-any-return]

    def finish(self, stdout: bytes = b"") -> Finished:
        """Wait for the end. The output must have been read."""
        code = self._proc.wait()
        self._close()
        if self._failed is not None:
            raise self._failed
        if self._expired:
            raise _too_slow(self._settings)
        return Finished(code, stdout, b"".join(self._errors))

    def _close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for t in self._threads[:1]:
            t.join()
        for pipe in (self._proc.stdout, self._proc.stderr):
            if pipe is not None:
                pipe.close()

    def stop(self) -> None:
        """End the process and reap it."""
        rest = threading.Thread(target=self._discard, daemon=True)  # or it might wait for a reader
        rest.start()
        try:
            self._end()
            self._proc.wait()
        except BaseException:
            self._proc.kill()
            self._proc.wait()
            raise
        finally:
            rest.join()
            self._close()

    def _discard(self) -> None:
        with suppress(OSError, ValueError):
            while self.read():
                pass


class Runner:
    """Runs calls to their end."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def run(self, argv: list[bytes], source: Input | None = None, sink: IO[bytes] | None = None) -> Finished:
        """Run a call. With a sink its output goes there, piece by piece."""
        child = Child(self.settings, argv, source)
        kept: list[bytes] = []
        take = kept.append if sink is None else sink.write
        try:
            while piece := child.read():
                take(piece)
            return child.finish(b"".join(kept))
        except BaseException:
            child.stop()
            raise


class Lines:
    """The lines that a process prints, as they come."""

    def __init__(self, settings: Settings, argv: list[bytes], source: Input | None = None) -> None:
        self._start = (settings, argv, source)
        self._child: Child | None = None
        self._buffer = b""
        self._end: Finished | None = None

    def open(self) -> None:
        self._child = Child(*self._start)

    def __iter__(self) -> Lines:
        return self

    def __next__(self) -> bytes:
        assert self._child is not None
        while b"\n" not in self._buffer:
            piece = self._child.read()
            if not piece:
                raise StopIteration
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def finish(self) -> Finished:
        """Wait for the end. All lines must have been taken."""
        assert self._child is not None
        if self._end is None:
            self._end = self._child.finish()
        return self._end

    def send(self, signum: int) -> None:
        if self._child is not None:
            self._child.send(signum)

    def close(self) -> None:
        if self._child is not None and self._end is None:
            self._child.stop()
            self._end = Finished(-signal.SIGKILL, b"", b"")


class AsyncChild:
    """A running process with its output, for asyncio."""

    def __init__(self, settings: Settings, proc: asyncio.subprocess.Process) -> None:
        self._settings = settings
        self._proc = proc
        self._errors: list[bytes] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._deadline: float | None = None

    @classmethod
    async def start(cls, settings: Settings, argv: list[bytes], source: AsyncInput | None) -> AsyncChild:
        try:
            proc = await asyncio.create_subprocess_exec(
                *argv,
                stdin=subprocess.DEVNULL if source is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=settings.environ(),
                cwd=settings.cwd,
                start_new_session=True,
            )
        except OSError as err:
            raise _cannot_start(settings, err) from err
        child = cls(settings, proc)
        child._tasks.append(asyncio.create_task(child._drain()))
        if source is not None:
            child._tasks.append(asyncio.create_task(child._feed(source)))
        if settings.timeout is not None:
            child._deadline = asyncio.get_running_loop().time() + settings.timeout
        return child

    async def _drain(self) -> None:
        assert self._proc.stderr is not None
        while piece := await self._proc.stderr.read(PIECE):
            self._errors.append(piece)

    async def _feed(self, source: AsyncInput) -> None:
        pipe = self._proc.stdin
        assert pipe is not None
        try:
            async for piece in _async_pieces(source):
                try:
                    pipe.write(piece)
                    await pipe.drain()
                except ConnectionError:
                    break  # the process has what it wants, or says why not
        except BaseException:  # an end of the input here would look like its true end
            self.send(signal.SIGKILL)
            raise
        finally:
            pipe.close()

    def send(self, signum: int) -> None:
        """Pass a signal on; a process that has ended gets none."""
        with suppress(ProcessLookupError):
            self._proc.send_signal(signum)

    async def read(self) -> bytes:
        """The next piece of its output, empty at the end."""
        assert self._proc.stdout is not None
        return await self._within(self._proc.stdout.read(PIECE))

    async def _within(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            async with asyncio.timeout_at(self._deadline) as limit:
                return await work
        except TimeoutError:
            if limit.expired():
                raise _too_slow(self._settings) from None
            raise

    async def finish(self, stdout: bytes = b"") -> Finished:
        """Wait for the end. The output must have been read."""
        code = await self._within(self._proc.wait())
        for task in self._tasks[1:]:
            if task.done():
                task.result()  # the failure of the input, if there was one
            else:
                task.cancel()  # nobody reads what it has
        await asyncio.gather(*self._tasks, return_exceptions=True)
        return Finished(code, stdout, b"".join(self._errors))

    async def stop(self) -> None:
        """End the process and reap it, also where this is cancelled again."""
        try:
            self.send(signal.SIGINT)
            async with asyncio.timeout(self._settings.grace):
                await self._reap()
        except TimeoutError:
            pass
        finally:
            if self._proc.returncode is None:
                self.send(signal.SIGKILL)
                await self._reap()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _reap(self) -> None:
        assert self._proc.stdout is not None
        while await self._proc.stdout.read(PIECE):  # or it might wait for a reader
            pass
        await self._proc.wait()


async def _async_pieces(source: AsyncInput) -> AsyncIterator[bytes]:
    if isinstance(source, AsyncIterable):
        async for piece in source:
            yield piece
    elif hasattr(source, "read"):
        while piece := await asyncio.to_thread(source.read, PIECE):
            yield piece
    else:
        for piece in _pieces(source):
            yield piece


class AsyncRunner:
    """Runs calls to their end, for asyncio."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    async def run(self, argv: list[bytes], source: AsyncInput | None = None, sink: IO[bytes] | None = None) -> Finished:
        """Run a call. With a sink its output goes there, piece by piece."""
        child = await AsyncChild.start(self.settings, argv, source)
        kept: list[bytes] = []
        try:
            while piece := await child.read():
                if sink is None:
                    kept.append(piece)
                else:
                    await asyncio.to_thread(sink.write, piece)
            return await child.finish(b"".join(kept))
        except BaseException:
            await child.stop()
            raise


class AsyncLines:
    """The lines that a process prints, as they come, for asyncio."""

    def __init__(self, settings: Settings, argv: list[bytes], source: AsyncInput | None = None) -> None:
        self._start = (settings, argv, source)
        self._child: AsyncChild | None = None
        self._buffer = b""
        self._end: Finished | None = None

    async def open(self) -> None:
        self._child = await AsyncChild.start(*self._start)

    def __aiter__(self) -> AsyncLines:
        return self

    async def __anext__(self) -> bytes:
        assert self._child is not None
        while b"\n" not in self._buffer:
            piece = await self._child.read()
            if not piece:
                raise StopAsyncIteration
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    async def finish(self) -> Finished:
        """Wait for the end. All lines must have been taken."""
        assert self._child is not None
        if self._end is None:
            self._end = await self._child.finish()
        return self._end

    def send(self, signum: int) -> None:
        if self._child is not None:
            self._child.send(signum)

    async def aclose(self) -> None:
        if self._child is not None and self._end is None:
            await self._child.stop()
            self._end = Finished(-signal.SIGKILL, b"", b"")
