"""From ids to events: markers by id, stop strings, counting, and look-ups that change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlx_reasoning import Generation, GenerationEvent, ModelProfile, OptionError, StartState, family
from mlx_reasoning.decode.decoder import StandardTokenStreamDecoder, make_token_stream_decoder
from mlx_reasoning.decode.tables import DecoderTables
from mlx_reasoning.events import Completion, GenerationInfo, gather

from ..vocab import GEMMA, QWEN, byte_tokenizer, spelled

WORDS = ["plan", "the", "answer", "END", "name", "arguments", "thought"]
QWEN_TOKENIZER = byte_tokenizer(QWEN, words=WORDS)
GEMMA_TOKENIZER = byte_tokenizer([], special=GEMMA, words=WORDS)
TOKENIZERS = {"qwen3": QWEN_TOKENIZER, "gemma4": GEMMA_TOKENIZER}
TABLES = {name: DecoderTables(tokenizer) for name, tokenizer in TOKENIZERS.items()}
CALL = '<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>'


def ids_of(text: str, name: str = "qwen3") -> list[int]:
    return list(TOKENIZERS[name].encode(text, add_special_tokens=False))


def decode(
    ids: Sequence[int],
    name: str = "qwen3",
    *,
    reason: str = "stop",
    profile: ModelProfile | None = None,
    fresh: bool = False,
    **options: Any,
) -> tuple[Completion, Any, list[GenerationEvent]]:
    tables = DecoderTables(TOKENIZERS[name]) if fresh else TABLES[name]
    decoder = make_token_stream_decoder(TOKENIZERS[name], profile or family(name), tables=tables, **options)
    events: list[GenerationEvent] = []
    for token in ids:
        events += decoder.push(token)
        if decoder.stop_sequence is not None:
            break
    events += decoder.finish(reason)
    return gather([*events, Generation.info(GenerationInfo("stop"))]), decoder, events


def texts_of(name: str) -> st.SearchStrategy[list[int]]:
    """Ids: words, white space, half characters, markers by id and markers spelled out."""
    tokenizer = TOKENIZERS[name]
    rows = [
        ids_of(text, name) for text in ("plan", " the", "\n", "\n\n", " ", "`", "思", "END", "\nUs", "<", "{", "[x]")
    ]
    rows += [[token] for marker in (QWEN if name == "qwen3" else GEMMA[3:]) for token in ids_of(marker, name)]
    rows += [spelled(tokenizer, text) for text in (QWEN[:2] if name == "qwen3" else GEMMA[3:5])]
    rows += [ids_of("思", name)[:1], ids_of("thought\n", name), ids_of(CALL, name)]
    return st.lists(st.sampled_from(rows), max_size=14).map(lambda parts: [token for part in parts for token in part])


@pytest.mark.parametrize("name", ["qwen3", "gemma4"])
@pytest.mark.parametrize("scope", ["all", "response"])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_what_was_looked_up_is_what_the_stages_would_have_said(name: str, scope: str, data: st.DataObject) -> None:
    """Shared tables, full of what other streams met, give what a decoder gives that has met nothing."""
    ids = data.draw(texts_of(name))
    options = {
        "start": data.draw(st.sampled_from(StartState)),
        "stop_strings": data.draw(st.sampled_from([[], ["END"], ["\nUser:", "plan the"], ["<tool_call>"]])),
        "stop_scope": scope,
        "reason": data.draw(st.sampled_from(["stop", "length"])),
    }
    warm, warm_decoder, _ = decode(ids, name, **options)
    again, again_decoder, _ = decode(ids, name, **options)
    cold, cold_decoder, _ = decode(ids, name, fresh=True, **options)
    for got, decoder in ((again, again_decoder), (cold, cold_decoder)):
        assert (got.reasoning, got.content) == (warm.reasoning, warm.content)
        assert [call.arguments for call in got.tool_calls] == [call.arguments for call in warm.tool_calls]
        assert len(got.rejected) == len(warm.rejected)
        assert decoder.reasoning_tokens == warm_decoder.reasoning_tokens
        assert decoder.stop_sequence == warm_decoder.stop_sequence
        assert decoder.ended_inside_reasoning == warm_decoder.ended_inside_reasoning


def test_tables_that_are_full_start_over_and_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlx_reasoning.decode.tables._MOST_MOVES", 5)
    text = "<think>\nplan the plan\n</think>\n\nthe answer\nthe plan"
    got, _, _ = decode(ids_of(text) * 1, fresh=True)
    assert (got.reasoning, got.content) == ("plan the plan", "the answer\nthe plan")


def test_a_marker_by_id_opens_where_its_characters_would_not() -> None:
    opener = QWEN_TOKENIZER.convert_tokens_to_ids("<think>")
    got, _, _ = decode([*ids_of("the "), opener, *ids_of("plan</think> answer")])
    assert (got.reasoning, got.content) == ("plan", "the answer")
    got, _, _ = decode([*ids_of("the "), *spelled(QWEN_TOKENIZER, "<think>"), *ids_of("plan")])
    assert (got.reasoning, got.content) == ("", "the <think>plan")


def test_the_thoughts_closer_spelled_in_ordinary_tokens_is_text_of_the_thought() -> None:
    ids = ids_of("<think>a ") + spelled(QWEN_TOKENIZER, "</think>") + ids_of(" b</think>c")
    got, _, _ = decode(ids)
    assert (got.reasoning, got.content) == ("a </think> b", "c")


def test_detection_in_text_ignores_ids_and_detection_by_token_needs_them() -> None:
    row = family("qwen3")
    assert row.reasoning is not None
    text = replace(row, reasoning=replace(row.reasoning, detection="text"))
    ids = [*ids_of("the answer "), QWEN_TOKENIZER.convert_tokens_to_ids("<think>"), *ids_of("x")]
    got, _, _ = decode(ids, profile=text)
    assert got.content == "the answer <think>x"  # in text, a word-like tag in mid-line is text
    missing = replace(row, reasoning=replace(row.reasoning, start_delimiter="<nope>", detection="token"))
    with pytest.raises(OptionError, match="<nope>"):
        decode([], profile=missing)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("<think>\nplan\n</think>\n\nthe answer", 5),  # opener, newline, plan, newline, closer
        ("the answer", 0),
        ("<think>plan", 2),
        ("<think></think>x", 2),
    ],
)
def test_law_12_ids_sampled_inside_are_counted_delimiters_included(text: str, count: int) -> None:
    assert decode(ids_of(text))[1].reasoning_tokens == count


def test_law_12_a_prefilled_opener_is_not_counted_and_a_call_is_no_thought() -> None:
    assert decode(ids_of("plan</think>x"), start=True)[1].reasoning_tokens == 2
    candidate = ids_of(CALL)
    assert decode([*ids_of("plan"), *candidate], start=True)[1].reasoning_tokens == 1  # it ran
    draft = decode([*ids_of("plan"), *candidate, *ids_of("x</think>y")], start=True)[1]
    assert draft.reasoning_tokens == 1 + len(candidate) + 2
    assert decode([*ids_of("plan"), *candidate], start=True, reason="length")[1].reasoning_tokens == 1 + len(candidate)


def test_law_12_an_opener_of_several_tokens_is_counted_whole() -> None:
    row = family("tags-thinking")
    got, decoder, _ = decode(ids_of("<thinking>ab</thinking>c"), profile=row)
    assert (got.reasoning, got.content) == ("ab", "c")
    assert decoder.reasoning_tokens == len(ids_of("<thinking>ab</thinking>"))


def test_a_label_is_counted_and_never_emitted() -> None:
    got, decoder, _ = decode(ids_of("<|channel>thought\nplan<channel|>the answer", "gemma4"), "gemma4")
    assert (got.reasoning, got.content) == ("plan", "the answer")
    assert decoder.reasoning_tokens == len(ids_of("<|channel>thought\nplan<channel|>", "gemma4"))


@pytest.mark.parametrize(
    ("stops", "scope", "reasoning", "content", "stopped"),
    [
        (["END"], "all", "plan", "", "END"),
        (["END"], "response", "plan END", "the ", "END"),
        (["nope"], "all", "plan END", "the END x", None),
        (["the END", "END"], "response", "plan END", "", "the END"),
        (["he E", "the END x"], "response", "plan END", "t", "he E"),
        (["</think>"], "all", "plan END", "", "</think>"),
    ],
)
def test_law_11_stop_strings(stops: list[str], scope: str, reasoning: str, content: str, stopped: str | None) -> None:
    for text in ("<think>plan END</think>the END x",):
        for ids in (
            ids_of(text),
            ids_of("<think>") + spelled(QWEN_TOKENIZER, "plan END") + ids_of("</think>the END x"),
        ):
            got, decoder, _ = decode(ids, stop_strings=stops, stop_scope=scope)
            assert (got.reasoning.rstrip(), got.content) == (reasoning, content)
            assert decoder.stop_sequence == stopped


def test_what_may_be_a_stop_string_is_let_go_before_a_call_and_at_the_end() -> None:
    got, _, events = decode(ids_of("the E" + CALL), stop_strings=["END"], stop_scope="response")
    assert got.content == "the E" and len(got.tool_calls) == 1
    assert isinstance(events[-1], Generation.tool_call)
    assert decode(ids_of("the EN"), stop_strings=["END"])[0].content == "the EN"


@pytest.mark.parametrize("stops", [[""], ["a", ""], [3]])
def test_an_empty_stop_string_is_refused(stops: list[Any]) -> None:
    with pytest.raises(OptionError, match="stop string"):
        decode([], stop_strings=stops)


def test_an_unknown_stop_scope_is_refused() -> None:
    with pytest.raises(OptionError, match="'all' or 'response'"):
        decode([], stop_scope="everywhere")


def test_a_model_without_thoughts_and_calls_passes_through_byte_for_byte() -> None:
    text = "\n\n <think>\nx\n</think>\n\n" + CALL + "  \n"
    got, decoder, _ = decode(ids_of(text), profile=ModelProfile("plain"))
    assert got.content == text
    assert isinstance(decoder, StandardTokenStreamDecoder) and decoder.reasoning_tokens == 0


def test_a_half_character_waits_and_is_replaced_at_the_end_only() -> None:
    first, second, third = ids_of("思")
    got, _, events = decode([first, second, third])
    assert events == [Generation.chunk("思")]
    assert got.content == "思"
    assert decode([first, second])[0].content == "\ufffd"
    closer = QWEN_TOKENIZER.convert_tokens_to_ids("</think>")
    got, _, _ = decode([first, closer, *ids_of("x")], start=True)
    assert (got.reasoning, got.content) == ("\ufffd", "x")
