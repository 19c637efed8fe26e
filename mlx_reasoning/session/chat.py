"""`ChatSession`: a conversation that forgets its thoughts and keeps its cache."""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ..engine.options import Progress
from ..errors import MLXReasoningError, OptionError
from ..events import Completion, Generation, GenerationEvent, gather
from ..generation import GenerateKeywords
from ..messages import Message, Tool
from .conversation import Conversation, Stream, asked
from .file import load, save
from .tools import Toolbox, ToolDispatch
from .transcript import Said, incoming, last_user, public

if TYPE_CHECKING:
    from ..engine.loading import LoadedModel

MAX_TOOL_ROUNDS = 16


class ChatSession(Conversation):
    """A conversation with one model.

    Thoughts stand beside the answers in `messages` and are dropped from later prompts, as the family's template has it.
    What the cache holds of the next prompt is kept, so that a turn computes only what is new.

    Args:
        instructions: the system message.
        messages: an earlier conversation, in OpenAI's form; a thought may be spelled in any way.
        tools: Python functions, which run when the model calls them, or tools in OpenAI's form.
        tool_dispatch: what runs a call of such a tool: functions by name, or one callable that gets the `ToolCall`.
            Calls that nothing runs end the turn, and their results are given with the next message.
        thinking, effort, max_reasoning_tokens: as in `stream_generate`.
        max_tool_rounds: how often in one turn the model may call.
        warm: prefill the last answer on a thread of its own while the person reads; see `warm`.
        options: further keywords of `stream_generate` for every turn; `stop_scope` is "response" if not given.

    Raises:
        OptionError: an unknown option, something that is no tool.
        PromptError: something that is no message.
        ReasoningControlError: the family cannot do what is asked of its thinking.

    Limits: one turn at a time, on any thread; `stop` and `end_thinking` may be called from any other one.
    """

    def __init__(
        self,
        model: LoadedModel,
        instructions: str | None = None,
        messages: Sequence[Mapping[str, Any]] | None = None,
        tools: Sequence[Tool | Callable[..., Any]] | None = None,
        tool_dispatch: ToolDispatch | None = None,
        thinking: bool | None = None,
        effort: str | None = None,
        max_reasoning_tokens: int | None = None,
        *,
        max_tool_rounds: int = MAX_TOOL_ROUNDS,
        warm: bool = False,
        **options: Any,
    ) -> None:
        own = next((name for name in ("prompt_cache", "start") if name in options), None)
        if own is not None:
            raise OptionError(f"a session takes no option {own!r}: it has its own")
        given = {"thinking": thinking, "effort": effort, "max_reasoning_tokens": max_reasoning_tokens}
        options |= {name: value for name, value in given.items() if value is not None}
        said = incoming(messages, model.profile) if messages else []
        system = [{"role": "system", "content": instructions}] if instructions else []
        toolbox = Toolbox(tools, tool_dispatch)
        super().__init__(model, system + said, toolbox, {"stop_scope": "response", **options}, max_tool_rounds, warm)
        self._checked({})

    @property
    def messages(self) -> list[Message]:
        """The conversation, in OpenAI's form; thoughts stand under `reasoning_content`. A copy."""
        return public(self._messages)

    # One turn.

    def respond(self, message: Said, **options: Unpack[GenerateKeywords]) -> Completion:
        """Says something (text, a message or several) and gathers the answer.

        A turn that is stopped is rolled back to its last completed tool round, and what was generated since stands in
        `interrupted`; one that fails is rolled back whole.

        Args:
            options: for this turn, in place of the session's.

        Raises:
            PromptError, OptionError: as in `stream_generate`; before any model work.
            ModelError: the model failed.
        """
        return gather(self.stream_details(message, **options))

    def stream_response(self, message: Said, **options: Unpack[GenerateKeywords]) -> Generator[str, None, None]:
        """The same as pieces of the answer's text, without thoughts and calls."""
        return (event.text for event in self.stream_details(message, **options) if isinstance(event, Generation.chunk))

    def stream_details(self, message: Said, **options: Unpack[GenerateKeywords]) -> Stream:
        """The same as events, those of tool rounds included; one `Generation.info` at the end adds up all rounds."""
        said = incoming(message, self.model.profile)
        return self._started(lambda: self._messages.extend(said), said, options)

    async def astream_details(
        self, message: Said, **options: Unpack[GenerateKeywords]
    ) -> AsyncGenerator[GenerationEvent, None]:
        """The same for asyncio: the turn runs on a thread of its own, and stops when the iterator is closed."""
        events: asyncio.Queue[GenerationEvent | BaseException | None] = asyncio.Queue()
        loop, over = asyncio.get_running_loop(), threading.Event()
        wanted = options.get("cancel")
        options["cancel"] = lambda: over.is_set() or asked(wanted)

        def work() -> None:
            last: BaseException | None = None
            try:
                for event in self.stream_details(message, **options):
                    loop.call_soon_threadsafe(events.put_nowait, event)
            except BaseException as error:
                last = error
            loop.call_soon_threadsafe(events.put_nowait, last)

        thread = threading.Thread(target=work, name="mlx-reasoning-turn", daemon=True)
        thread.start()
        try:
            while (event := await events.get()) is not None:
                if isinstance(event, BaseException):
                    raise event
                yield event
        finally:
            over.set()
            await asyncio.to_thread(thread.join)

    def continue_response(self, **options: Unpack[GenerateKeywords]) -> Completion:
        """Goes on with an answer that `max_tokens` cut off, also inside a thought; gives the new part.

        Raises:
            OptionError: the last answer is complete.
        """
        return gather(self.stream_continued(**options))

    def stream_continued(self, **options: Unpack[GenerateKeywords]) -> Stream:
        """`continue_response` as events."""
        if self._unfinished is None:
            raise OptionError("the last answer was not cut off, so there is nothing to continue: say something")
        return self._started(lambda: None, [], options, goes_on=self._unfinished)

    def retry(self, **options: Unpack[GenerateKeywords]) -> Completion:
        """Answers the last message of the user again; the old answer stays where the new one fails or is stopped."""
        return gather(self.stream_retried(**options))

    def stream_retried(self, **options: Unpack[GenerateKeywords]) -> Stream:
        """`retry` as events."""
        at = last_user(self._messages, "try again")
        return self._started(lambda: self._cut(at + 1), [copy.deepcopy(self._messages[at])], options)

    def edit(self, index: int, text: str, **options: Unpack[GenerateKeywords]) -> Completion:
        """Puts other words into a user's message, drops what follows it, and answers anew.

        Raises:
            OptionError: no message of a user stands there.
        """
        return gather(self.stream_edited(index, text, **options))

    def stream_edited(self, index: int, text: str, **options: Unpack[GenerateKeywords]) -> Stream:
        """`edit` as events."""
        if not -len(self._messages) <= index < len(self._messages) or self._messages[index]["role"] != "user":
            users = [at for at, message in enumerate(self._messages) if message["role"] == "user"]
            raise OptionError(f"messages[{index}] is no message of the user: those are at {users or 'no place yet'}")
        at = index % len(self._messages)
        said = [{**self._messages[at], **incoming(text, self.model.profile)[0]}]

        def change() -> None:
            self._cut(at)
            self._messages.extend(said)

        return self._started(change, said, options)

    def stop(self) -> None:
        """Stops the running turn between two tokens, or what warms the cache; from any thread, or a signal handler."""
        self._cancel.set()
        self._stop_warming.set()

    def end_thinking(self) -> bool:
        """Closes the running thought, so that the model answers now; from any thread. False where no turn can do it."""
        control = self._control
        if control is not None:
            control.close_soon()
        return control is not None

    # The conversation as a whole.

    def configure(self, **options: Any) -> None:
        """Changes options for all later turns; None takes one back to the model's own.

        Raises:
            OptionError, ReasoningControlError: they cannot be had; nothing is changed.
        """
        with self._alone():
            wanted = {name: value for name, value in {**self.options, **options}.items() if value is not None}
            before, self.options = self.options, wanted
            try:
                self._checked({})
            except MLXReasoningError:
                self.options = before
                raise

    def undo(self) -> list[Message]:
        """Takes back the last message of the user and all that followed; gives what was taken.

        Raises:
            OptionError: there is none.
        """
        with self._alone():
            at = last_user(self._messages, "undo")
            taken = public(self._messages[at:])
            self._cut(at)
            return taken

    def clear(self) -> None:
        """Begins anew; the system message and the options stay."""
        with self._alone():
            kept = 0
            while kept < len(self._messages) and self._messages[kept]["role"] in ("system", "developer"):
                kept += 1
            self._cut(kept)
            self.interrupted = None

    def fork(self) -> ChatSession:
        """A conversation of its own that begins as this one, cache included."""
        with self._alone():
            twin = copy.copy(self)
            twin.options, twin._messages = dict(self.options), copy.deepcopy(self._messages)
            twin._context = self._context.copy()
            twin._lock, twin._cancel, twin._stop_warming = threading.Lock(), threading.Event(), threading.Event()
            twin._unfinished = None if self._unfinished is None else self._unfinished.copy()
            twin._control = twin._running = twin._warming = None
            return twin

    def warm(self, *, background: bool = False, progress: Progress | None = None) -> int | None:
        """Prefills what the next prompt will begin with: the last answer without its thought, or the instructions.

        It stops at once when a message comes.

        Args:
            background: on a thread of its own; gives None.
            progress: called with tokens done and their total; not from the background.

        Returns:
            How many tokens were computed.
        """
        if not background:
            with self._alone():
                self._stop_warming.clear()
                return self._context.warm(self._messages, self.options, self._stop_warming.is_set, progress)
        self._start_warming()
        return None

    def save(self, path: str | Path, *, cache: bool = True) -> None:
        """Writes the conversation to one file: JSON, and behind it the cache; see `session.file`.

        The old file stays whole until the new one is. Without the cache it is plain JSON, whose `messages` can go
        to anything that takes OpenAI's.

        Raises:
            SessionFileError: it cannot be written.
        """
        with self._alone():
            kept = self._context.for_saving(self._messages, self.options) if cache else None
            save(Path(path), self.model, self._messages, kept)

    @classmethod
    def load(cls, path: str | Path, model: LoadedModel, *, strict: bool = True, **arguments: Any) -> ChatSession:
        """A session from a file of `save`, or from any JSON with OpenAI messages.

        Args:
            strict: refuse a file of another model or template; with False its messages are taken, and its cache is not.
            arguments: of `ChatSession`, such as tools and options, which no file holds.

        Raises:
            SessionFileError: the file is none, or it belongs to another model: the message says what differs.
        """
        messages, cache = load(Path(path), model, strict=strict)
        session = cls(model, messages=messages or None, **arguments)
        session._context.take(cache, session.options)
        return session
