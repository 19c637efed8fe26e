"""What a conversation remembers: thoughts beside answers, turns cut off, stopped or failed, and changes."""

from __future__ import annotations

import asyncio
import copy
import itertools
import threading
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import pytest

from mlx_reasoning import ChatSession, Generation, LoadedModel
from mlx_reasoning.errors import ModelError, OptionError, PromptError
from mlx_reasoning.events import gather

from ..conftest import Tiny
from .scripted import thought, told

ASKED = {"role": "user", "content": "Q?"}
ANSWERED = {"role": "assistant", "content": "A.", "reasoning_content": "T."}


@pytest.fixture
def session(tiny: Tiny) -> ChatSession:
    """A conversation of one turn."""
    session = ChatSession(tiny("qwen3"), max_tokens=60)
    told(session, thought("qwen3", "T.", "A."))
    session.respond("Q?")
    return session


def goes_on(session: ChatSession, kind: str = "qwen3") -> None:
    """The next turn is an ordinary one, and its prompt is what a new session's would be."""
    messages = session.messages
    rounds = told(session, thought(kind, "U.", "B."))
    got = session.respond("R?")
    assert (got.reasoning, got.content, got.finish_reason) == ("U.", "B.", "stop")
    fresh = ChatSession(session.model, messages=messages or None, **session.options)
    cold = told(fresh, thought(kind, "U.", "B."))
    fresh.respond("R?")
    assert rounds[0].ids == cold[0].ids
    cache = session._context._cache
    assert cache is not None and cache.length in (len(cache.ids), None)


# Thoughts.


@pytest.mark.parametrize("kind", ["qwen3", "qwen3_5", "gemma4_text"])
def test_a_thought_stands_beside_the_answer_and_never_in_a_later_prompt(kind: str, tiny: Tiny) -> None:
    session = ChatSession(tiny(kind), max_tokens=60, thinking=True)
    rounds = told(session, thought(kind, "zebra", "A."), thought(kind, "yak", "B."), thought(kind, "", "C."))
    for text in ("Q?", "R?"):
        session.respond(text)
    assert session.messages == [
        ASKED, {"role": "assistant", "content": "A.", "reasoning_content": "zebra"},
        {"role": "user", "content": "R?"}, {"role": "assistant", "content": "B.", "reasoning_content": "yak"},
    ]  # fmt: skip
    session.respond("S?")
    for done in rounds[1:]:
        prompt = session.model.tokenizer.decode(done.ids)
        assert "zebra" not in prompt and "yak" not in prompt and "A." in prompt


def test_what_is_handed_out_and_in_is_a_copy(session: ChatSession) -> None:
    session.messages[1]["content"] = "changed"
    session.messages.clear()
    assert session.messages == [ASKED, ANSWERED]
    given: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "R?"}]},
        {"role": "assistant", "content": "<think>\nU.\n</think>\n\nB.", "extra": {"deep": [1]}},
        {"role": "user", "content": "S?"},
    ]
    before = copy.deepcopy(given)
    session.respond(given)
    ChatSession(session.model, messages=given)
    assert given == before


SPELLINGS: list[dict[str, Any]] = [
    {"content": "A.", "reasoning_content": "T."},
    {"content": "A.", "reasoning": "T."},
    {"content": "<think>T.</think>A."},
    {"content": "<think>\nT.\n</think>\n\nA."},
    {"content": [{"type": "text", "text": "A."}], "reasoning_content": "T."},
    {"content": [{"type": "thinking", "thinking": "T."}, {"type": "text", "text": "A."}]},
    {"content": [{"type": "text", "text": "<think>\nT.\n</think>\n\nA."}]},
]


@pytest.mark.parametrize("spelling", SPELLINGS, ids=str)
def test_every_spelling_of_a_thought_is_one_history(spelling: dict[str, Any], session: ChatSession) -> None:
    given = ChatSession(session.model, messages=[ASKED, {"role": "assistant", **spelling}])
    assert given.messages == session.messages
    goes_on(given)


def test_a_turn_that_only_thought_is_a_turn(tiny: Tiny) -> None:
    session = ChatSession(tiny("qwen3"), max_tokens=3)
    told(session, "<think>\nA long thought")
    got = session.respond("Q?")
    assert got.finish_reason == "length" and got.info.ended_inside_reasoning and got.content == ""
    assert session.messages == [ASKED, {"role": "assistant", "content": "", "reasoning_content": got.reasoning}]
    session.options["max_tokens"] = 60
    goes_on(session)


# Going on.


TEXT = thought("qwen3", "One two three.", "Four five six.")


@pytest.mark.parametrize("cut", [*range(1, 40, 3), 200])
def test_an_answer_that_was_cut_off_goes_on_wherever_it_stood(cut: int, tiny: Tiny) -> None:
    model = tiny("qwen3")
    whole = ChatSession(model, max_tokens=400)
    told(whole, TEXT)
    whole.respond("Q?")
    ids = model.tokenizer.encode(TEXT, add_special_tokens=False)
    session = ChatSession(model, max_tokens=cut)
    told(session, TEXT, model.tokenizer.decode(ids[cut:]))
    events = list(session.stream_details("Q?"))
    if cut < len(ids):
        assert gather(events).finish_reason == "length"
        events += list(session.stream_continued(max_tokens=400))
        assert session.messages == whole.messages
        got = gather(events)
        assert (got.reasoning, got.content) == ("One two three.", "Four five six.")
    with pytest.raises(OptionError, match="not cut off"):
        session.continue_response()
    assert session.messages == whole.messages


def test_nothing_to_go_on_with(session: ChatSession) -> None:
    for action, message in ((session.continue_response, "was not cut off"),):
        with pytest.raises(OptionError, match=message):
            action()
    session.clear()
    assert session.messages == []
    with pytest.raises(OptionError, match="nothing to undo"):
        session.undo()
    with pytest.raises(OptionError, match="nothing to try again"):
        session.retry()
    with pytest.raises(OptionError, match="no place yet"):
        session.edit(0, "R?")


# Stopped turns.


def by_closing(session: ChatSession, events: Generator[Any, None, None]) -> None:
    events.close()


def by_ctrl_c(session: ChatSession, events: Generator[Any, None, None]) -> None:
    with pytest.raises(KeyboardInterrupt):
        events.throw(KeyboardInterrupt)


def by_stop(session: ChatSession, events: Generator[Any, None, None]) -> None:
    session.stop()
    last = list(events)[-1]
    assert isinstance(last, Generation.info) and last.info.finish_reason == "cancelled"


def by_another_thread(session: ChatSession, events: Generator[Any, None, None]) -> None:
    thread = threading.Thread(target=session.stop)
    thread.start()
    thread.join()
    assert gather(events).finish_reason == "cancelled"


@pytest.mark.parametrize("stop", [by_closing, by_ctrl_c, by_stop, by_another_thread])
@pytest.mark.parametrize("kind", ["qwen3", "qwen3_5", "gemma4_text"])
@pytest.mark.parametrize("after", [0, 3, 19])
def test_a_stopped_turn_leaves_the_session_whole(
    stop: Callable[[ChatSession, Any], None], kind: str, after: int, tiny: Tiny
) -> None:
    session = ChatSession(tiny(kind), max_tokens=60, thinking=True)
    told(session, thought(kind, "T.", "A."))
    session.respond("Q?")
    before = session.messages
    told(session, thought(kind, "A thought.", "And a long answer that somebody stops."))
    events = session.stream_details("Stop me")
    seen = gather(itertools.islice(events, after))
    stop(session, events)
    assert session.messages == before
    assert session.interrupted is not None
    assert session.interrupted.prompt == [{"role": "user", "content": "Stop me"}]
    assert session.interrupted.reasoning.startswith(seen.reasoning)
    assert session.interrupted.content.startswith(seen.content)
    goes_on(session, kind)
    assert session.interrupted is None


def test_a_turn_may_be_stopped_before_its_first_token(tiny: Tiny) -> None:
    session = ChatSession(tiny("qwen3"), max_tokens=60)
    seen: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        seen.append((done, total))
        session.stop()

    got = session.respond("word " * 400, progress=progress, prefill_step_size=64)
    assert got.finish_reason == "cancelled" and seen[-1][0] < seen[-1][1]
    assert session.messages == []
    goes_on(session)


def test_a_stopped_retry_keeps_the_old_answer(session: ChatSession) -> None:
    for start in (session.stream_retried, lambda: session.stream_edited(0, "Other?")):
        events = start()
        next(events)
        events.close()
        assert session.messages == [ASKED, ANSWERED]
    goes_on(session)


def test_a_stop_between_turns_stops_nothing_later(session: ChatSession) -> None:
    session.stop()
    assert not session.end_thinking()
    goes_on(session)


# Failures.


class Failing:
    """A model that fails at its n-th call."""

    def __init__(self, model: Any, at: int) -> None:
        self._model, self._left = model, at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        self._left -= 1
        result = self._model(*arguments, **keywords)
        if self._left == 0:
            raise RuntimeError("out of memory")
        return result


@pytest.mark.parametrize("at", [1, 2, 9])
@pytest.mark.parametrize("kind", ["qwen3", "qwen3_5", "gemma4_text"])
def test_a_turn_that_fails_is_rolled_back_whole(kind: str, at: int, tiny: Tiny) -> None:
    session = ChatSession(tiny(kind), max_tokens=60, thinking=True)
    told(session, thought(kind, "T.", "A."))
    session.respond("Q?")
    before, usage, model = session.messages, session.usage, session.model
    session._context._model = replace(model, model=Failing(model.model, at))
    with pytest.raises(ModelError, match="out of memory"):
        session.respond("Fail")
    session._context._model = model
    assert (session.messages, session.usage) == (before, usage)
    goes_on(session, kind)


def test_a_consumer_that_fails_is_no_failure_of_the_session(session: ChatSession) -> None:
    told(session, thought("qwen3", "A thought.", "An answer."))
    with pytest.raises(ZeroDivisionError):
        for count, _ in enumerate(session.stream_details("R?")):
            assert 1 / (5 - count)
    assert session.messages == [ASKED, ANSWERED]
    goes_on(session)


WRONG: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    ("", {}, PromptError, "empty"),
    (" \n", {}, PromptError, "empty"),
    ([], {}, PromptError, "empty|no message"),
    (7, {}, PromptError, "int"),
    ([{"role": "nobody", "content": "x"}], {}, PromptError, "nobody"),
    ([{"content": "x"}], {}, PromptError, "role"),
    ("x", {"max_token": 5}, OptionError, "max_token"),
    ("x", {"max_tokens": 0}, OptionError, "max_tokens"),
    ("x", {"temperature": -1}, OptionError, "temperature"),
    ("x", {"stop_strings": [""]}, OptionError, "stop"),
    ("x", {"tools": []}, OptionError, "belongs to the session"),
    ("x", {"prompt_cache": None}, OptionError, "belongs to the session"),
    ("x", {"effort": "tremendous"}, Exception, "tremendous|effort"),
]


@pytest.mark.parametrize(("said", "options", "error", "message"), WRONG, ids=str)
def test_bad_input_is_refused_before_any_work(
    said: Any, options: dict[str, Any], error: type[Exception], message: str, session: ChatSession
) -> None:
    held = list(session._context._cache.ids) if session._context._cache else []
    for ask in (session.respond, session.stream_details, session.stream_response):
        with pytest.raises(error, match=message):
            ask(said, **options)
    cache = session._context._cache
    assert cache is not None and list(cache.ids) == held
    assert session.messages == [ASKED, ANSWERED]
    goes_on(session)


def test_one_turn_at_a_time(session: ChatSession) -> None:
    told(session, thought("qwen3", "A thought.", "An answer."))
    events = session.stream_details("R?")
    next(events)
    for action in (session.undo, session.clear, session.fork, session.warm, lambda: session.respond("S?")):
        with pytest.raises(OptionError, match="is running"):
            action()
    assert gather(events).content == "An answer."
    goes_on(session)


# Changes.


def test_undo_gives_back_what_it_took(session: ChatSession) -> None:
    assert session.undo() == [ASKED, ANSWERED]
    assert session.messages == []
    goes_on(session)


def test_retry_answers_anew(session: ChatSession) -> None:
    told(session, thought("qwen3", "Anew.", "Other."))
    assert session.retry(temperature=1.0, seed=3).content == "Other."
    assert session.messages == [ASKED, {"role": "assistant", "content": "Other.", "reasoning_content": "Anew."}]
    goes_on(session)


def test_edit_drops_what_follows(session: ChatSession) -> None:
    goes_on(session)
    for index, (there, text) in itertools.product((0, -4), (("qwen3", "First."), ("qwen3", "Second."))):
        twin = session.fork()
        told(twin, thought(there, "T.", text))
        assert twin.edit(index, "Other?").content == text
        assert [m["content"] for m in twin.messages] == ["Other?", text]
    for wrong in (1, 4, -5, 99):
        with pytest.raises(OptionError, match=r"those are at \[0, 2\]"):
            session.edit(wrong, "x")
    with pytest.raises(PromptError, match="empty"):
        session.edit(0, "  ")


@pytest.mark.parametrize("kind", ["qwen3", "qwen3_5", "gemma4_text"])
def test_a_fork_and_its_origin_do_not_touch_each_other(kind: str, tiny: Tiny) -> None:
    session = ChatSession(tiny(kind), "Be brief.", max_tokens=60, thinking=True)
    told(session, thought(kind, "T.", "A."))
    session.respond("Q?")
    before, twin = session.messages, session.fork()
    told(twin, thought(kind, "V.", "C."))
    assert (twin.respond("S?").usage.cached_tokens or 0) > 0
    assert session.messages == before
    told(session, thought(kind, "W.", "D."))
    session.respond("Elsewhere?")
    assert [m["content"] for m in twin.messages] == ["Be brief.", "Q?", "A.", "S?", "C."]
    assert [m["content"] for m in session.messages] == ["Be brief.", "Q?", "A.", "Elsewhere?", "D."]


def test_clear_keeps_the_instructions(tiny: Tiny) -> None:
    session = ChatSession(tiny("qwen3"), "Be brief.", max_tokens=60)
    told(session, thought("qwen3", "T.", "A."))
    session.respond("Q?")
    session.clear()
    assert session.messages == [{"role": "system", "content": "Be brief."}]
    goes_on(session)


# Threads and asyncio.


def test_two_sessions_token_by_token_are_two_alone(tiny: Tiny) -> None:
    model = tiny("qwen3")
    alone = [ChatSession(model, "Be brief.", max_tokens=40).respond(text) for text in ("One?", "Two?")]
    assert alone[0].content != alone[1].content
    first, second = (ChatSession(model, "Be brief.", max_tokens=40) for _ in range(2))
    streams = [first.stream_details("One?"), second.stream_details("Two?")]
    events: list[list[Any]] = [[], []]
    for pair in itertools.zip_longest(*streams):
        for seen, event in zip(events, pair, strict=True):
            seen += [event] if event is not None else []
    assert [gather(seen).content for seen in events] == [got.content for got in alone]
    first, second = (ChatSession(model, "Be brief.", max_tokens=40) for _ in range(2))
    stopped, whole = first.stream_details("One?"), second.stream_details("Two?")
    seen = [next(whole)]
    next(stopped)
    stopped.close()
    assert gather([*seen, *whole]).content == alone[1].content


def test_turns_on_many_threads(demo: LoadedModel) -> None:
    session, got = ChatSession(demo, max_tokens=40), []
    for turn in range(3):
        thread = threading.Thread(target=lambda turn=turn: got.append(session.respond(f"{turn} + 1").content))
        thread.start()
        thread.join()
    assert len(got) == 3 and len(session.messages) == 6
    cold = ChatSession(demo, messages=session.messages[:4], max_tokens=40)
    assert cold.respond("2 + 1").content == got[2]


def test_asyncio_gives_the_same_events(tiny: Tiny) -> None:
    session = ChatSession(tiny("qwen3"), max_tokens=60)
    told(session, thought("qwen3", "T.", "A."))

    async def turn() -> list[Any]:
        return [event async for event in session.astream_details("Q?")]

    got = gather(asyncio.run(turn()))
    assert (got.reasoning, got.content) == ("T.", "A.")
    assert session.messages == [ASKED, ANSWERED]
    goes_on(session)


def test_asyncio_stops_with_its_iterator_and_its_task(session: ChatSession) -> None:
    async def leave() -> None:
        told(session, thought("qwen3", "A thought.", "A long answer " * 20))
        events = session.astream_details("R?", max_tokens=400)
        async for _ in events:
            break
        await events.aclose()

    async def cancelled() -> None:
        told(session, thought("qwen3", "A thought.", "A long answer " * 20))
        ready = asyncio.Event()

        async def turn() -> None:
            async for _ in session.astream_details("R?", max_tokens=400):
                ready.set()

        task = asyncio.create_task(turn())
        await ready.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    for stop in (leave, cancelled):
        asyncio.run(stop())
        assert session.messages == [ASKED, ANSWERED]
        assert session.interrupted is not None
    goes_on(session)


def test_asyncio_raises_what_the_turn_raises(session: ChatSession) -> None:
    async def turn(text: str, **options: Any) -> None:
        async for _ in session.astream_details(text, **options):
            pass

    with pytest.raises(PromptError, match="empty"):
        asyncio.run(turn(" "))
    with pytest.raises(OptionError, match="max_tokens"):
        asyncio.run(turn("x", max_tokens=0))
    goes_on(session)


def test_a_thought_is_ended_from_another_thread(demo: LoadedModel) -> None:
    session = ChatSession(demo, thinking=True, max_tokens=300)
    events = session.stream_details("What is 4821 - 3975?")
    seen = [next(events) for _ in range(4)]
    assert all(isinstance(event, Generation.reasoning) for event in seen)
    thread = threading.Thread(target=session.end_thinking)
    thread.start()
    thread.join()
    got = gather([*seen, *events])
    free = ChatSession(demo, thinking=True, max_tokens=300).respond("What is 4821 - 3975?")
    assert len(got.reasoning) < len(free.reasoning) and free.reasoning.startswith(gather(seen).reasoning)
    assert got.content and not got.info.ended_inside_reasoning
    assert session.messages[-1]["content"] == got.content


def test_usage_adds_up(tiny: Tiny) -> None:
    session = ChatSession(tiny("qwen3"), max_tokens=60)
    told(session, thought("qwen3", "T.", "A."), thought("qwen3", "U.", "B."))
    each = [session.respond(text).usage for text in ("Q?", "R?")]
    assert session.usage.prompt_tokens == sum(usage.prompt_tokens or 0 for usage in each)
    assert session.usage.completion_tokens == sum(usage.completion_tokens or 0 for usage in each)
    assert (session.usage.reasoning_tokens or 0) == sum(usage.reasoning_tokens or 0 for usage in each) > 0
