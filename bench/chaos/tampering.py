"""What the proxy is told to do to requests and answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from chaos.proxy import Cut, Line
from chaos.wire import Request, refusal


class Leave:
    """Does nothing to anything. `most` is how often others do what they do."""

    def __init__(self, most: int = 1) -> None:
        self.most = most
        self.bites = 0

    async def request(self, request: Request, line: Line) -> bool:
        """Leave it to the proxy."""
        return False

    async def answer(self, request: Request, answer: bytes) -> bytes:
        """Pass it on as it is."""
        return answer

    async def streamed(self, request: Request, data: bytes) -> bytes:
        """Pass it on as it is."""
        return data


class Killed(Leave):
    """At the n-th write the operator is killed: before the API server gets it, or after."""

    def __init__(self, write: int, kill: Callable[[], None], *, after: bool) -> None:
        super().__init__()
        self.write = write
        self._kill = kill
        self._after = after

    async def request(self, request: Request, line: Line) -> bool:
        """Kill at that write."""
        if request.number != self.write:
            return False
        if self._after:
            await line.fetch(request)
        self._kill()
        self.bites += 1
        return True


class AnswersCut(Leave):
    """Some answers break off: each has a share of its bytes, its head included."""

    def __init__(self, count: int, share: float) -> None:
        super().__init__(count)
        self._share = share

    async def request(self, request: Request, line: Line) -> bool:
        """Answer with a part of the answer."""
        if request.streams or self.bites >= self.most:
            return False
        self.bites += 1
        answer = await line.fetch(request)
        await line.send(answer[: int(len(answer) * self._share)])
        await line.end()
        return True


class AnswersLost(Leave):
    """`most` writes are done, and the connection ends without an answer."""

    async def request(self, request: Request, line: Line) -> bool:
        """Do it and say nothing."""
        if not request.writes or self.bites >= self.most:
            return False
        self.bites += 1
        await line.fetch(request)
        return True


class WatchesCut(Leave):
    """Each open watch breaks off once it has said so many bytes more."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count
        self._left: dict[int, int] = {}

    async def streamed(self, request: Request, data: bytes) -> bytes:
        """Break off once enough was said; what is left of that is lost."""
        left = self._left.setdefault(id(request), self._count)
        self._left[id(request)] = left - len(data)
        if len(data) > left:
            self.bites += 1
            raise Cut(data[: max(0, left)])
        return data


class WatchesFrozen(Leave):
    """What watches would say is withheld; their connections stay open."""

    async def streamed(self, request: Request, data: bytes) -> bytes:
        """Say nothing until the operator goes away."""
        self.bites += 1
        await asyncio.sleep(120)
        raise Cut


class WatchesExpired(Leave):
    """Open watches break off at their next word; new ones begin too far back (410)."""

    _bite = 1

    def __init__(self) -> None:
        super().__init__()
        self._new: list[Request] = []

    async def request(self, request: Request, line: Line) -> bool:
        """Refuse to watch."""
        if request.verb != "watch":
            return False
        self._new.append(request)
        if not self._refuses(request):
            return False
        self.bites += self._bite
        await line.send(refusal(410, "Expired", "too old resource version: 1 (2)"))
        await line.end()
        return True

    def _refuses(self, request: Request) -> bool:
        return True

    async def streamed(self, request: Request, data: bytes) -> bytes:
        """Break off what was begun before; logs go on."""
        if request.verb != "watch" or any(one is request for one in self._new):
            return data
        raise Cut


class ListsStale(WatchesExpired):
    """Lists are of some time ago, as of an API server that lags behind; watches go on from there.

    So that there are lists at all, each watch is once too old. `version` returns the resource
    version of that time.
    """

    _bite = 0

    def __init__(self, version: Callable[[], str | None]) -> None:
        super().__init__()
        self._version = version

    def _refuses(self, request: Request) -> bool:
        return sum(one.path == request.path for one in self._new) == 1

    async def request(self, request: Request, line: Line) -> bool:
        """Ask for an older list."""
        version = self._version()
        if request.verb != "list" or version is None or "continue" in request.query:
            return await super().request(request, line)
        self.bites += 1
        more = f"resourceVersion={version}&resourceVersionMatch=Exact"
        joint = "&" if "?" in request.target else "?"
        await line.send(await line.fetch(request, f"{request.target}{joint}{more}"))
        await line.end()
        return True


class Refused(Leave):
    """Requests are refused before the API server gets them; all of them, or so many writes."""

    def __init__(self, answer: bytes, writes: int | None = None) -> None:
        super().__init__(writes or 1)
        self._answer = answer
        self._writes = writes

    async def request(self, request: Request, line: Line) -> bool:
        """Refuse."""
        if self._writes is not None and (not request.writes or self.bites >= self._writes):
            return False
        self.bites += 1
        await line.send(self._answer)
        await line.end()
        return True


class Unanswered(Leave):
    """Some requests are never answered, although they were `done`, or not."""

    def __init__(self, count: int, *, done: bool) -> None:
        super().__init__(count)
        self._done = done

    async def request(self, request: Request, line: Line) -> bool:
        """Wait until the operator gives up."""
        if request.streams or self.bites >= self.most:
            return False
        self.bites += 1
        if self._done:
            await line.fetch(request)
        await line.silence()
        return True


class Slow(Leave):
    """Whole answers and what watches say come late."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    async def answer(self, request: Request, answer: bytes) -> bytes:
        """Wait."""
        self.bites += 1
        await asyncio.sleep(self._seconds)
        return answer

    async def streamed(self, request: Request, data: bytes) -> bytes:
        """Wait."""
        await asyncio.sleep(self._seconds)
        return data


class ClockDiffers(Leave):
    """Times that API server and nodes have set are others, as by another clock.

    Times in the status of runs are the operator's own and stay. The text has the same length, so
    nothing else of an answer changes.
    """

    _SET_BY_OTHERS = re.compile(
        rb'("(?:creationTimestamp|deletionTimestamp|startTime|startedAt|finishedAt|'
        rb'completionTime|lastTransitionTime|time)":")(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)Z"'
    )
    _OF_RUNS = re.compile(
        rb'("(?:creationTimestamp|deletionTimestamp)":")(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)Z"'
    )

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._by = timedelta(seconds=seconds)

    async def answer(self, request: Request, answer: bytes) -> bytes:
        """Shift its times."""
        return self._shifted(request, answer)

    async def streamed(self, request: Request, data: bytes) -> bytes:
        """Shift its times; one that comes in two parts is left as it is."""
        return data if request.verb == "follow" else self._shifted(request, data)

    def _shifted(self, request: Request, data: bytes) -> bytes:
        def later(found: re.Match[bytes]) -> bytes:
            at = datetime.fromisoformat(found[2].decode()).replace(tzinfo=UTC) + self._by
            return found[1] + at.strftime("%Y-%m-%dT%H:%M:%SZ").encode() + b'"'

        pattern = self._OF_RUNS if "/benchmarkruns" in request.path else self._SET_BY_OTHERS
        shifted, count = pattern.subn(later, data)
        self.bites += count
        return shifted
