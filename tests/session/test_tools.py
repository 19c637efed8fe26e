"""Tools in a session: what runs, what the model is told of it, and where a turn with calls can be stopped."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from mlx_reasoning import ChatSession, Generation, LoadedModel, load
from mlx_reasoning.errors import OptionError
from mlx_reasoning.events import gather

from ..conftest import Tiny
from ..tiny import CHATML_TEMPLATE, write_checkpoint
from .scripted import told


def look_up(key: str, times: int = 1) -> str:
    """Looks something up.

    Args:
        key: What to look up.
        times: How often.
    """
    return f"value of {key}" * times


DECLARED: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Looks something up.",
        "parameters": {
            "type": "object",
            "properties": {
                "key": {"type": "string", "description": "What to look up."},
                "times": {"type": "integer", "description": "How often."},
            },
            "required": ["key"],
        },
    },
}
END = "<|im_end|>"


def call(name: str = "look_up", thought: str = "I look.", **arguments: Any) -> str:
    return f"<think>\n{thought}\n</think>\n\n" + plain(name, **arguments) + END


def plain(name: str = "look_up", **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def answer(text: str = "It is so.") -> str:
    return f"<think>\nNow I know.\n</think>\n\n{text}{END}"


def results(session: ChatSession) -> list[str]:
    return [str(message["content"]) for message in session.messages if message["role"] == "tool"]


def talk(tiny: Tiny, tools: Any = (look_up,), **options: Any) -> ChatSession:
    return ChatSession(tiny("qwen3"), tools=list(tools), max_tokens=400, **options)


def test_a_function_is_its_own_declaration(tiny: Tiny) -> None:
    declared = talk(tiny)._tools.schemas[0]["function"]
    assert {name: declared[name] for name in DECLARED["function"]} == DECLARED["function"]


def test_a_turn_runs_its_calls_in_order_and_gives_every_event(tiny: Tiny) -> None:
    ran: list[Any] = []

    def note(key: str, times: int = 1) -> str:
        ran.append((key, times))
        return f"noted {key}"

    session = talk(tiny, [DECLARED], tool_dispatch={"look_up": note})
    both = call(key="a").removesuffix(END) + "\n" + plain(key="b", times=2) + END
    told(session, both, call(key="c", thought="Once more."), answer())
    events = list(session.stream_details("Q?"))
    assert ran == [("a", 1), ("b", 2), ("c", 1)]
    kinds = [kind for kind, _ in itertools.groupby(type(event) for event in events)]
    thought, called, chunk = Generation.reasoning, Generation.tool_call, Generation.chunk
    assert kinds == [thought, called, thought, called, thought, chunk, Generation.info]
    got = gather(events)
    assert got.finish_reason == "stop" and got.content == "It is so."
    roles = [message["role"] for message in session.messages]
    assert roles == ["user", "assistant", "tool", "tool", "assistant", "tool", "assistant"]
    asked = [c["id"] for message in session.messages for c in message.get("tool_calls") or []]
    assert [m["tool_call_id"] for m in session.messages if m["role"] == "tool"] == asked
    assert len(set(asked)) == 3
    assert got.usage.completion_tokens == session.usage.completion_tokens


RETURNED: list[tuple[Any, str]] = [
    ("text", "text"), ({"a": [1, "ä"]}, '{"a": [1, "ä"]}'), (None, "null"), (7, "7"), (b"x", '"b\'x\'"'), ("", ""),
]  # fmt: skip


@pytest.mark.parametrize(("returned", "read"), RETURNED, ids=str)
def test_what_a_tool_returns_is_text_for_the_model(returned: Any, read: str, tiny: Tiny) -> None:
    session = talk(tiny, [DECLARED], tool_dispatch=lambda call: returned)
    told(session, call(key="a"), answer())
    session.respond("Q?")
    assert results(session) == [read]


def broken(key: str) -> str:
    """Fails.

    Args:
        key: Anything.
    """
    raise LookupError(f"no {key} here")


def test_what_a_tool_raises_is_a_result_and_the_turn_goes_on(tiny: Tiny) -> None:
    session = talk(tiny, [broken])
    told(session, call("broken", key="a"), answer("I could not."))
    assert session.respond("Q?").content == "I could not."
    assert results(session) == ["Error: LookupError: no a here"]


def test_an_interrupt_in_a_tool_is_an_interrupt(tiny: Tiny) -> None:
    def interrupted(call: Any) -> str:
        raise KeyboardInterrupt

    session = talk(tiny, [DECLARED], tool_dispatch=interrupted)
    told(session, call(key="a"))
    with pytest.raises(KeyboardInterrupt):
        session.respond("Q?")
    assert session.messages == []
    told(session, answer())
    assert session.respond("Q?").content == "It is so."


BAD_CALLS = [
    (f"<think>\nT.\n</think>\n\n{plain('unknown', key='a')}{END}", "undeclared"),
    (
        '<think>\nT.\n</think>\n\n<tool_call>\n{"name": "look_up", "arguments": {"key": \n</tool_call>' + END,
        "malformed",
    ),
    (call(key="a", times="often"), "invalid_arguments"),
    (call(times=2), "invalid_arguments"),
]


@pytest.mark.parametrize(("text", "reason"), BAD_CALLS)
def test_a_call_that_cannot_be_used_is_shown_and_not_run(text: str, reason: str, tiny: Tiny) -> None:
    ran: list[Any] = []
    session = talk(tiny, [DECLARED], tool_dispatch=ran.append)
    told(session, text)
    got = session.respond("Q?")
    assert [bad.reason for bad in got.rejected] == [reason] and got.tool_calls == () and ran == []
    kept: Any = session.messages[-1]
    assert kept["rejected_tool_calls"] == [{"text": got.rejected[0].text, "reason": reason}]
    told(session, answer())
    assert session.respond("Try again").content == "It is so."


def test_rounds_have_a_limit_and_the_model_is_told(tiny: Tiny) -> None:
    ran: list[str] = []

    def count(call: Any) -> str:
        ran.append(call.arguments["key"])
        return "again"

    session = talk(tiny, [DECLARED], tool_dispatch=count, max_tool_rounds=2)
    told(session, *[call(key=str(at)) for at in range(9)])
    got = session.respond("Q?")
    assert ran == ["0", "1"] and got.finish_reason == "tool_calls"
    assert "limit of 2 rounds" in results(session)[-1]
    told(session, answer())
    assert session.respond("Go on").content == "It is so."


def test_calls_that_nothing_runs_end_the_turn_and_their_results_come_next(tiny: Tiny) -> None:
    session = talk(tiny, [DECLARED])
    told(session, call(key="a"))
    got = session.respond("Q?")
    assert got.finish_reason == "tool_calls" and [c.arguments for c in got.tool_calls] == [{"key": "a"}]
    rounds = told(session, answer())
    result = {"role": "tool", "tool_call_id": got.tool_calls[0].id, "content": "value"}
    assert session.respond([result]).content == "It is so."
    assert "value" in session.model.tokenizer.decode(rounds[0].ids)


@pytest.mark.parametrize("how", ["close", "stop", "in the tool"])
def test_a_stop_keeps_the_rounds_that_are_complete(how: str, tiny: Tiny) -> None:
    stops: list[Callable[[], None]] = []

    def look(call: Any) -> str:
        if call.arguments["key"] == "b" and how == "in the tool":
            stops[0]()
        return "value"

    session = talk(tiny, [DECLARED], tool_dispatch=look)
    stops.append(session.stop)
    told(session, call(key="a"), call(key="b"), answer("A long answer " * 9))
    events = session.stream_details("Q?")
    calls = 0
    for event in events:
        calls += isinstance(event, Generation.tool_call)
        if calls == 2 and isinstance(event, Generation.chunk) and how != "in the tool":
            (events.close if how == "close" else session.stop)()
    kept = [message["role"] for message in session.messages]
    if how == "in the tool":
        assert kept == ["user", "assistant", "tool"]
    else:
        assert kept == ["user", "assistant", "tool", "assistant", "tool"]
    assert session.interrupted is not None and session.interrupted.prompt == [{"role": "user", "content": "Q?"}]
    told(session, answer())
    assert session.respond("Go on").content == "It is so."


@pytest.fixture(scope="module")
def interleaved(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """A template that wants the thoughts of a running tool loop, and of no other turn."""
    loops = CHATML_TEMPLATE.replace(
        "{%- for message in messages %}\n{{- '<|im_start|>' + message.role",
        "{%- set last = namespace(user=-1) %}{%- for m in messages %}{%- if m.role == 'user' %}"
        "{%- set last.user = loop.index0 %}{%- endif %}{%- endfor %}"
        "{%- for message in messages %}\n{{- '<|im_start|>' + message.role",
        1,
    ).replace(" and loop.last", " and loop.index0 > last.user")
    return load(write_checkpoint(tmp_path_factory.mktemp("loops") / "qwen3", "qwen3", template=loops))


def test_thoughts_stay_within_a_tool_loop_and_go_when_the_user_speaks(interleaved: LoadedModel, tmp_path: Any) -> None:
    session = ChatSession(interleaved, tools=[look_up], max_tokens=400)
    rounds = told(session, call(key="a", thought="zebra"), call(key="b", thought="yak"), answer())
    session.respond("Q?")
    read = [session.model.tokenizer.decode(prepared.ids) for prepared in rounds]
    assert ["zebra" in text for text in read] == [False, True, True]
    assert ["yak" in text for text in read] == [False, False, True]
    later = told(session, answer())
    session.respond("R?")
    assert "zebra" not in session.model.tokenizer.decode(later[0].ids)
    # a loop that is open when the session is saved goes on with its thoughts
    open_loop = ChatSession(interleaved, tools=[DECLARED], max_tokens=400)
    told(open_loop, call(key="a", thought="zebra"))
    asked = open_loop.respond("Q?").tool_calls[0]
    open_loop.save(tmp_path / "talk")
    again = ChatSession.load(tmp_path / "talk", interleaved, tools=[DECLARED], max_tokens=400)
    rounds = told(again, answer())
    got = again.respond({"role": "tool", "tool_call_id": asked.id, "content": "value"})
    assert "zebra" in again.model.tokenizer.decode(rounds[0].ids) and got.content == "It is so."
    assert (got.usage.cached_tokens or 0) > 0


def untyped(key):  # type: ignore[no-untyped-def]
    """Looks.

    Args:
        key: What.
    """


def undocumented(key: str) -> str:
    return key


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"tools": [untyped]}, "untyped cannot be a tool"),
    ({"tools": [undocumented]}, "undocumented cannot be a tool"),
    ({"tools": [look_up, DECLARED]}, "two tools are called 'look_up'"),
    ({"tools": [{"name": "x"}]}, "a tool is a Python function"),
    ({"tools": ["look_up"]}, "a tool is a Python function"),
    ({"tools": [DECLARED], "tool_dispatch": {"other": look_up}}, "none of the tools: look_up"),
    ({"tools": [DECLARED], "tool_dispatch": 7}, "tool_dispatch must be"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_what_cannot_be_a_tool_is_said(arguments: dict[str, Any], message: str, tiny: Tiny) -> None:
    with pytest.raises(OptionError, match=message):
        ChatSession(tiny("qwen3"), **arguments)


def test_without_tools_their_syntax_is_text(tiny: Tiny) -> None:
    session = ChatSession(tiny("qwen3"), max_tokens=400)
    told(session, call(key="a"))
    got = session.respond("Q?")
    assert got.tool_calls == () and got.content == plain(key="a") and got.finish_reason == "stop"


def test_the_embedded_model_calls_and_tells_what_it_was_told(demo: LoadedModel) -> None:
    def get_weather(city: str) -> dict[str, Any]:
        """The current weather in a city.

        Args:
            city: The city.
        """
        return {"temperature": 21, "condition": "sunny"}

    session = ChatSession(demo, tools=[get_weather], max_tokens=200)
    got = session.respond("What is the weather in Paris?")
    assert [(c.name, c.arguments) for c in got.tool_calls] == [("get_weather", {"city": "Paris"})]
    assert "sunny" in got.content and "21" in got.content
    assert "sunny" in got.reasoning
