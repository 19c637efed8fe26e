"""What a turn computes: what is new, exactly, on every kind of cache, at turn 12 as at turn 2."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mlx_reasoning import ChatSession, LoadedModel, load
from mlx_reasoning.engine.cache import cache_length

from ..conftest import Tiny
from ..tiny import CHATML_TEMPLATE, write_checkpoint
from .scripted import END, prompt_ids, shared, thought, told

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "full attention": ("qwen3", {}),
    "sliding window": ("gemma4_text", {}),
    "sliding window, nothing behind the header": ("gemma4_text", {"thinking": True}),
    "recurrent": ("qwen3_5", {}),
    "quantised": ("qwen3", {"kv_bits": 8, "kv_group_size": 32}),
    "no thoughts": ("llama", {}),
}
TURNS = 12


@dataclass(frozen=True)
class Turn:
    """What a turn prefilled, and how many ids of its prompt stand behind three beginnings.

    Args:
        prompt: what the last prompt began with too: the last answer, the new message and the scaffold are new.
        answer: all that the template renders before the new message's text.
        held: what the last turn left in the cache.
    """

    prefilled: int
    prompt: int
    answer: int
    held: int


def conversation(
    model: LoadedModel, kind: str, options: dict[str, Any], *, warm: bool = False, thoughts: bool = True
) -> list[Turn]:
    """Twelve turns of one length; the first, which has nothing before it, is left out."""
    session = ChatSession(model, "Be brief.", max_tokens=400, **options)
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
    arguments = {} if options.get("thinking") is None else {"enable_thinking": options["thinking"]}
    turns: list[Turn] = []
    before: list[int] = []
    held: list[int] = []
    for turn in range(TURNS):
        answer = f"Answer {turn:02}."
        text = thought(kind, "A long thought, step by step.", answer) if thoughts else answer + END[kind]
        rounds = told(session, text)
        messages.append({"role": "user", "content": f"Question {turn:02}?"})
        ids = prompt_ids(model, messages, **arguments)
        if warm and turn:
            session.warm()
        got = session.respond(f"Question {turn:02}?")
        assert (got.content, got.finish_reason) == (answer, "stop")
        assert rounds[0].ids == ids
        prefilled = got.usage.prefilled_tokens or 0
        assert got.usage.prompt_tokens == len(ids) == (got.usage.cached_tokens or 0) + prefilled
        cache = session._context._cache
        assert cache is not None and cache_length(cache.entries) in (len(cache.ids), None)
        if turn:
            done = prompt_ids(model, [*messages[:-1], {"role": "user", "content": "\x00"}], **arguments)
            turns.append(Turn(prefilled, *(len(ids) - shared(ids, other) for other in (before, done, held))))
        before, held = ids, list(cache.ids)
        messages.append({"role": "assistant", "content": answer})
    return turns


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
def test_a_turn_prefills_the_last_answer_and_the_new_message_and_nothing_else(
    name: str, warm: bool, tiny: Tiny
) -> None:
    kind, options = KINDS[name]
    turns = conversation(tiny(kind), kind, options, warm=warm)
    for turn in turns:
        if warm:
            assert turn.prefilled == turn.answer < turn.prompt
        elif name == "no thoughts":
            assert turn.prefilled == turn.held < turn.prompt  # the last answer is still there
        else:
            assert turn.prefilled == turn.prompt
    assert len(set(turns)) == 1  # turn 12 costs what turn 2 does


@pytest.mark.parametrize("kind", ["qwen3", "gemma4_text", "qwen3_5"])
def test_with_thinking_off_nothing_but_the_last_answer_is_read_again(kind: str, tiny: Tiny) -> None:
    turns = conversation(tiny(kind), kind, {"thinking": False}, thoughts=False)
    assert all(turn.prefilled <= turn.prompt for turn in turns)
    assert len(set(turns)) == 1


@pytest.fixture(scope="module")
def keeping(tmp_path_factory: pytest.TempPathFactory) -> dict[str, LoadedModel]:
    """Models whose template replays every thought as it was written."""
    whole = CHATML_TEMPLATE.replace(" and loop.last", "")
    folder = tmp_path_factory.mktemp("keeping")
    models = {"qwen3": load(write_checkpoint(folder / "qwen3", "qwen3", template=whole))}
    models["qwen3_5"] = load(write_checkpoint(folder / "qwen3_5", "qwen3_5", template=whole))
    return models


@pytest.mark.parametrize("kind", ["qwen3", "qwen3_5"])
def test_a_family_that_keeps_thoughts_prefills_nothing_again(kind: str, keeping: dict[str, LoadedModel]) -> None:
    model = keeping[kind]
    session = ChatSession(model, max_tokens=400)
    counts, behind = [], []
    held: list[int] = []
    for turn in range(TURNS):
        rounds = told(session, thought("qwen3", f"Thought {turn:02}.", f"Answer {turn:02}."))
        got = session.respond(f"Question {turn:02}?")
        assert got.reasoning == f"Thought {turn:02}."
        counts.append(got.usage.prefilled_tokens)
        behind.append(rounds[0].ids[len(held) :])
        assert rounds[0].ids[: len(held)] == held
        cache = session._context._cache
        assert cache is not None
        held = list(cache.ids)
    assert counts == [len(ids) for ids in behind]
    assert model.tokenizer.decode(behind[-1]).startswith("\n<|im_start|>user\nQuestion 11?")
    assert len(set(counts[1:])) == 1


def look_up(key: str) -> str:
    """Looks something up.

    Args:
        key: What to look up.
    """
    return f"value of {key}"


CALL = (
    '<think>\nI look.\n</think>\n\n<tool_call>\n{"name": "look_up", "arguments": {"key": "a"}}\n</tool_call><|im_end|>'
)


@pytest.mark.parametrize("name", ["full attention", "recurrent", "quantised"])
def test_a_tool_loop_splices_its_results_and_is_replayed_once(name: str, tiny: Tiny) -> None:
    kind, options = KINDS[name]
    model = tiny(kind)
    session = ChatSession(model, tools=[look_up], max_tokens=400, **options)
    call = CALL.removeprefix("<think>\n") if kind == "qwen3_5" else CALL
    spent = []
    for turn in range(4):
        rounds = told(session, call, thought(kind, "Now I know.", "It is so."))
        got = session.respond(f"Question {turn}?")
        assert got.content == "It is so." and [c.name for c in got.tool_calls] == ["look_up"]
        first, second = (len(prepared.ids) for prepared in rounds)
        held = rounds[0].ids + rounds[0].turn.record
        if options or kind == "qwen3":  # a trimmable cache keeps what both renderings share
            assert rounds[1].turn.cached_tokens == shared(rounds[1].ids, held)
        assert rounds[1].turn.cached_tokens >= shared(rounds[1].ids, rounds[0].ids)
        assert second > first
        spent.append(got.usage.prefilled_tokens)
    assert spent[2] == spent[3]


def test_thinking_switched_back_and_forth_finds_the_shared_part(tiny: Tiny) -> None:
    for kind in ("qwen3", "qwen3_5", "gemma4_text"):
        model = tiny(kind)
        session = ChatSession(model, max_tokens=100)
        messages: list[dict[str, Any]] = []
        before: list[int] = []
        for turn, wish in enumerate([True, False, True, False]):
            told(session, thought(kind, "T.", "A.") if wish else f"A.{END[kind]}")
            messages.append({"role": "user", "content": f"Q{turn}?"})
            ids = prompt_ids(model, messages, enable_thinking=wish)
            got = session.respond(f"Q{turn}?", thinking=wish)
            assert (got.usage.cached_tokens or 0) >= (shared(ids, before) if kind != "gemma4_text" else 0)
            before = ids
            messages.append({"role": "assistant", "content": got.content})


def test_a_reply_that_a_client_replays_is_served_from_the_cache(tiny: Tiny) -> None:
    session = ChatSession(tiny("qwen3"), max_tokens=100, thinking=False)
    told(session, "A.<|im_end|>")
    session.respond("Q?")
    first = session._context._cache
    assert first is not None
    held = len(first.ids)
    told(session, "B.<|im_end|>")
    got = session.respond("R?")
    prompt = "<|im_start|>user\nQ?<|im_end|>\n<|im_start|>assistant\n"
    assert (got.usage.cached_tokens or 0) >= len(session.model.tokenizer.encode(prompt))
    assert held > 0


@pytest.mark.parametrize("kind", ["qwen3", "gemma4_text", "qwen3_5"])
def test_fifty_turns_hold_no_more_than_their_tokens(kind: str, tiny: Tiny) -> None:
    session = ChatSession(tiny(kind), max_tokens=60)
    sizes, shots, tokens = [], [], 0
    for turn in range(50):
        told(session, thought(kind, "T.", "A."))
        session.respond(f"Q{turn:02}?")
        cache = session._context._cache
        assert cache is not None
        sizes.append(cache.nbytes)
        shots.append(sum(shot.nbytes for shot in cache.snapshots))
        assert len(cache.snapshots) <= 4
        tokens = len(cache.ids)
    assert len(set(shots[8:])) <= 2 or max(shots[8:]) <= 2 * max(shots[:8])
    layers, heads, size, floats = 6, 2, 32, 4
    assert sizes[-1] - shots[-1] <= 2 * 2 * layers * heads * size * floats * (tokens + 512)  # keys and values, twice


def test_a_session_that_was_loaded_goes_on_from_its_cache(tiny: Tiny, tmp_path: Path) -> None:
    for kind in ("qwen3", "gemma4_text", "qwen3_5"):
        model = tiny(kind)
        session = ChatSession(model, "Be brief.", max_tokens=60)
        told(session, thought(kind, "T.", "A."))
        session.respond("Q?")
        session.save(tmp_path / "talk")
        again = ChatSession.load(tmp_path / "talk", model, max_tokens=60)
        told(again, thought(kind, "T.", "B."))
        got = again.respond("R?")
        assert (got.usage.cached_tokens or 0) > 0 and got.content == "B."
