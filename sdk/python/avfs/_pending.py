"""What can be awaited or entered."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar


class Entered(Protocol):
    """An asynchronous context manager that gives itself."""

    async def __aenter__(self) -> Any: ...

    async def __aexit__(self, kind: Any, value: Any, trace: Any) -> Any: ...


T = TypeVar("T", bound=Entered)


class Pending(Generic[T]):
    """A call that has not begun: ``await`` gives what it makes, ``async with`` enters that."""

    def __init__(self, call: Coroutine[Any, Any, T]) -> None:
        self._call = call
        self._made: T | None = None

    def __await__(self) -> Generator[Any, Any, T]:
        return self._call.__await__()

    async def __aenter__(self) -> T:
        self._made = await self._call
        await self._made.__aenter__()
        return self._made

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._made is not None
        await self._made.__aexit__(kind, value, trace)
