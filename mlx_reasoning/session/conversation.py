"""How the turns of a conversation run: rounds of answers and calls, and what stays when one is stopped or fails."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from ..engine.thought import ThoughtControl
from ..errors import MLXReasoningError, OptionError
from ..events import Generation, GenerationEvent, GenerationInfo, Usage
from ..generation import check_names
from .context import Context
from .rounds import Round
from .tools import Toolbox
from .transcript import answer

if TYPE_CHECKING:
    from ..engine.loading import LoadedModel

Stream = Generator[GenerationEvent, None, None]
NOTHING = Usage(0, 0, 0, 0, 0)
_LIMIT = "Error: not run, since the limit of {} rounds of calls in one turn is reached"


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A turn that was stopped: what was asked, and what had been generated since the last completed tool round."""

    prompt: list[dict[str, Any]]
    content: str
    reasoning: str


class Conversation:
    """Messages, a cache, and one turn at a time.

    Args:
        options: keywords of `stream_generate` for every turn.
        warm: prefill the last answer on a thread of its own after every turn.
    """

    def __init__(
        self, model: LoadedModel, messages: list[dict[str, Any]], tools: Toolbox, options: dict[str, Any],
        max_tool_rounds: int, warm: bool,
    ) -> None:  # fmt: skip
        self.model = model
        self.options = options
        self.max_tool_rounds = max_tool_rounds
        self.interrupted: Interrupted | None = None
        self.usage = NOTHING
        self._messages = messages
        self._tools = tools
        self._context = Context(model, tools.schemas)
        self._lock = threading.Lock()
        self._cancel = threading.Event()
        self._control: ThoughtControl | None = None
        self._running: Round | None = None
        self._unfinished: Round | None = None
        self._warm = warm
        self._warming: threading.Thread | None = None
        self._stop_warming = threading.Event()

    @property
    def reasoning_tokens(self) -> int | None:
        """Tokens of thought in the running round so far; None where no turn runs, or they cannot be counted."""
        running = self._running
        return None if running is None else running.turn.decoder.reasoning_tokens

    @property
    def context_tokens(self) -> int:
        """Tokens that the cache holds: the conversation as the model last read or wrote it."""
        return self._context.length

    def _checked(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options of one turn.

        Raises:
            OptionError, ReasoningControlError: they cannot be had.
        """
        for name in ("tools", "prompt_cache", "start"):
            if name in options:
                raise OptionError(f"{name} belongs to the session, not to one turn")
        whole = {**self.options, **options}
        check_names(whole)
        self.model.profile.prompt.arguments(whole.get("thinking"), whole.get("effort"))
        return whole

    def _started(
        self, change: Callable[[], None], said: list[dict[str, Any]], options: Any, goes_on: Round | None = None
    ) -> Stream:
        """A turn that has been checked up to its first step of the model."""
        events = self._turn(change, said, self._checked(options), goes_on)
        next(events)
        return events  # type: ignore[return-value]

    def _turn(
        self, change: Callable[[], None], said: list[dict[str, Any]], options: dict[str, Any], goes_on: Round | None
    ) -> Generator[GenerationEvent | None, None, None]:
        """Gives None when everything is checked, then the events."""
        with self._alone():
            before, unfinished = list(self._messages), self._unfinished
            kept = before  # what stays if the turn is stopped
            self._cancel.clear()
            wanted = options.get("cancel")
            options["cancel"] = lambda: self._cancel.is_set() or asked(wanted)
            total = GenerationInfo("cancelled", usage=NOTHING)
            running: Round | None = None
            try:
                change()
                for count in range(self.max_tool_rounds + 1):
                    running = Round(self._context.prepare(self._messages, options, goes_on), goes_on)
                    self._control, self._running = running.turn.control, running
                    if count == 0:
                        yield None
                        self.interrupted, self._unfinished = None, None
                    yield from running.events()
                    total = _added(total, running.info)
                    if running.info.finish_reason == "cancelled":
                        raise _StoppedError
                    if goes_on is not None:
                        self._messages.pop()
                    goes_on = None
                    self._messages.append(answer(running.completion))
                    self._unfinished = running if running.info.finish_reason == "length" else None
                    calls = running.completion.tool_calls
                    if running.info.finish_reason != "tool_calls" or not all(map(self._tools.runs, calls)):
                        break
                    over = count == self.max_tool_rounds
                    for call in calls:
                        result = _LIMIT.format(self.max_tool_rounds) if over else self._tools.run(call)
                        self._messages.append(
                            {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": result}
                        )
                        if self._cancel.is_set():
                            raise _StoppedError
                    kept = list(self._messages)
                    self._control = None
            except (_StoppedError, GeneratorExit, KeyboardInterrupt) as stopped:
                self._rolled_back(kept, unfinished if kept is before else None, said, running)
                if not isinstance(stopped, _StoppedError):
                    raise
                total = replace(total, finish_reason="cancelled")
            except BaseException:
                self._messages[:], self._unfinished = before, unfinished
                raise
            finally:
                self._control = self._running = None
                self._context.settle()
            self.usage = _sum(self.usage, total.usage)
        if self._warm and total.finish_reason == "stop":
            self._start_warming()
        yield Generation.info(total)

    def _rolled_back(
        self, kept: list[dict[str, Any]], unfinished: Round | None, said: list[dict[str, Any]], running: Round | None
    ) -> None:
        self._messages[:], self._unfinished = kept, unfinished
        if running is not None:
            done = running.completion
            self.interrupted = Interrupted(copy.deepcopy(said), done.content, done.reasoning)

    def _cut(self, length: int) -> None:
        del self._messages[length:]
        self._unfinished = None

    def _alone(self) -> _Alone:
        return _Alone(self)

    def _start_warming(self) -> None:
        self._end_warming()
        self._stop_warming.clear()

        def work() -> None:
            if self._lock.acquire(blocking=False):
                try:
                    self._context.warm(self._messages, self.options, self._stop_warming.is_set)
                except MLXReasoningError:  # the next turn will say it
                    pass
                finally:
                    self._lock.release()

        self._warming = threading.Thread(target=work, name="mlx-reasoning-warm")
        self._warming.start()

    def _end_warming(self) -> None:
        if self._warming is not None:
            self._stop_warming.set()
            self._warming.join()
            self._warming = None


class _StoppedError(Exception):
    """The turn was asked to stop."""


class _Alone:
    """Nothing else happens to the session meanwhile; what warms it ends first."""

    def __init__(self, session: Conversation) -> None:
        self._session = session

    def __enter__(self) -> None:
        self._session._end_warming()
        if not self._session._lock.acquire(blocking=False):
            raise OptionError("a turn of this session is running: finish or close its iterator, or stop() it, first")

    def __exit__(self, *_: object) -> None:
        self._session._lock.release()


def asked(cancel: Any) -> bool:
    if cancel is None:
        return False
    return bool(cancel.is_set() if isinstance(cancel, threading.Event) else cancel())


def _sum(one: Usage, other: Usage) -> Usage:
    """Adds counts; what cannot be known stays unknown."""
    pairs = {f.name: (getattr(one, f.name), getattr(other, f.name)) for f in fields(Usage)}
    return Usage(**{name: None if a is None or b is None else a + b for name, (a, b) in pairs.items()})


def _added(total: GenerationInfo, info: GenerationInfo) -> GenerationInfo:
    """The info of a round with the counts and notes of those before it."""
    notes = tuple(dict.fromkeys(total.notes + info.notes))
    return replace(info, usage=_sum(total.usage, info.usage), notes=notes)
