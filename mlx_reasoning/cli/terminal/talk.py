"""A conversation with a person, or with a pipe: its session, what is typed next, and how one turn runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from ...errors import ContextLengthError, MLXReasoningError, SessionFileError
from ...events import Generation, GenerationEvent, GenerationInfo
from ..interrupt import Interrupt
from ..output import EventPrinter, fail, note, prefill_line, typed
from .store import Autosave

if TYPE_CHECKING:
    from rich.console import Console

    from ...session.chat import ChatSession
    from ...session.conversation import Stream
    from .drawing import Show


class View(Protocol):
    """Where the events of a turn go."""

    def push(self, event: GenerationEvent) -> None: ...

    def progress(self, done: int, total: int) -> None: ...


class Talk:
    """What commands change and turns go through.

    Args:
        console: where turns are drawn; None writes them plainly.
        show: thoughts in full, folded or hidden.
        autosave: writes the conversation after every turn; None keeps nothing.
    """

    def __init__(self, session: ChatSession, *, console: Console | None, show: Show, autosave: Autosave | None) -> None:
        self.session = session
        self.console = console
        self.show: Show = show
        self.autosave = autosave
        self.tools: list[Any] | None = None
        self.draft = ""
        self.editing: int | None = None
        self.attached: list[str] = []
        self.forked: list[ChatSession] = []
        self.last: GenerationInfo | None = None
        self.failed = False
        self.over = False
        self._results: list[dict[str, Any]] = []
        self._cannot_save = False

    # What is typed.

    def say(self, text: str) -> None:
        """One message to the model: with what is attached, in an edited one's place, or as the result of a call."""
        text = typed(text)
        call = self._open_call()
        if call is not None and self.editing is None:
            self._results.append(
                {"role": "tool", "tool_call_id": call["id"], "name": call["function"]["name"], "content": text}
            )
            if self._open_call() is None:
                results, self._results = self._results, []
                self.turn(lambda **options: self.session.stream_details(results, **options), text)
            return
        said = "\n\n".join([*self.attached, text])
        index, attached = self.editing, self.attached
        self.editing, self.attached = None, []
        if index is None:
            done = self.turn(lambda **options: self.session.stream_details(said, **options), text)
        else:
            done = self.turn(lambda **options: self.session.stream_edited(index, said, **options), text)
        if not done:
            self.editing, self.attached = index, attached

    @property
    def asks(self) -> str:
        """What stands before the input line."""
        call = self._open_call()
        if self.editing is not None:
            return "edit> "
        return "> " if call is None else f"result of {call['function']['name']}> "

    def _open_call(self) -> dict[str, Any] | None:
        """The first call of the last answer that has no result yet."""
        messages: Sequence[Mapping[str, Any]] = self.session.messages
        last: Mapping[str, Any] = messages[-1] if messages else {}
        calls = last.get("tool_calls") or [] if last.get("role") == "assistant" else []
        return calls[len(self._results)] if len(self._results) < len(calls) else None

    def reset(self, session: ChatSession) -> None:
        """Goes on with another session."""
        self.session, self.editing, self._results = session, None, []

    # One turn.

    def turn(self, start: Callable[..., Stream], text: str = "") -> bool:
        """Runs one turn; one that is stopped or fails is taken back whole, and its text stands in the line again.

        Args:
            start: begins it, with `cancel` and `progress`.

        Returns:
            Whether the turn stands.

        Raises:
            KeyboardInterrupt: it was interrupted twice.
        """
        before = len(self.session.messages)
        info: GenerationInfo | None = None
        try:
            with Interrupt() as interrupt, self._viewing() as view:
                events = start(cancel=interrupt.event, progress=view.progress)
                with contextlib.closing(events):
                    for event in events:
                        if isinstance(event, Generation.info):
                            info = event.info
                        view.push(event)
        except MLXReasoningError as error:
            crowded = isinstance(error, ContextLengthError) and before
            fail(" ".join(str(error).split()) + (" (/clear begins a new conversation)" if crowded else ""))
            self.failed = True
        if info is None or info.finish_reason == "cancelled":
            self._taken_back(text, stopped=info is not None, whole=len(self.session.messages) <= before)
            return False
        self.last = info
        self._told(info)
        self.save()
        return True

    @contextmanager
    def _viewing(self) -> Iterator[View]:
        if self.console is None:
            plain = _Plain(show=self.show != "hidden")
            try:
                yield plain
            finally:
                plain.close()
            return
        from .drawing import TurnDrawing
        from .keys import CTRL_O, CTRL_T, Keys

        drawing = TurnDrawing(self.console, self.show, lambda: self.session.reasoning_tokens)
        keys = Keys({CTRL_T: self.session.end_thinking, CTRL_O: drawing.unfold})
        try:
            with keys, drawing:
                yield drawing
        finally:
            self.draft = keys.typed

    def _taken_back(self, text: str, *, stopped: bool, whole: bool) -> None:
        if whole and self.console is not None and text:
            self.draft = text + ("\n" + self.draft if self.draft else "")
        if not stopped:
            return
        if not whole:
            note("(stopped; the rounds of calls that were done stay: say something to go on, or /retry)")
            self.save()
        elif self.console is None:
            note("(stopped; that turn is forgotten)")
        else:
            note("(stopped; that turn is forgotten, and what you said stands in the line again)")

    def _told(self, info: GenerationInfo) -> None:
        if self.console is not None:
            for text in info.notes:
                note(text)
        if info.finish_reason == "length":
            where = "thought" if info.ended_inside_reasoning else "answer"
            reason = "the limit of tokens or the model's context is reached"
            note(f"cut off in its {where}: {reason}; /continue goes on")
        call = self._open_call()
        if call is not None:
            function = call["function"]
            note(f"the model waits for the result of {function['name']}({function['arguments']}): type it")

    # What stays.

    def save(self) -> None:
        """Keeps the conversation; where that fails it says so once, and the conversation goes on."""
        if self.autosave is None:
            return
        try:
            self.autosave.save(self.session)
            self._cannot_save = False
        except SessionFileError as error:
            if not self._cannot_save:
                fail(f"this conversation is not kept: {error}; it goes on, and /save FILE writes it elsewhere")
            self._cannot_save = True

    def status(self) -> str:
        """One line: the model, speed, the context used and left, and what was reused."""
        model, last = self.session.model, self.last
        parts = [str(model.name)]
        if last is not None and last.generation_tps:
            parts.append(f"{last.generation_tps:,.0f} tokens/s")
        used, room = self.session.context_tokens, model.context_length
        parts.append(f"context {used:,}" + (f" of {room:,}, {max(room - used, 0):,} left" if room else ""))
        if last is not None and last.usage.cached_tokens is not None:
            parts.append(f"{last.usage.cached_tokens:,} of {last.usage.prompt_tokens:,} reused")
        if self.attached:
            parts.append(f"{len(self.attached)} attached")
        return " · ".join(parts)


class _Plain(EventPrinter):
    """Events as plain text: the answer to stdout, the rest to stderr."""

    def __init__(self, *, show: bool) -> None:
        super().__init__(show_reasoning=show)

    def push(self, event: GenerationEvent) -> None:
        if isinstance(event, Generation.info):
            self.close()
            for text in event.info.notes:
                note(text)
        else:
            super().push(event)

    def progress(self, done: int, total: int) -> None:
        prefill_line(done, total)
