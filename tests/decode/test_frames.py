"""Framed protocols: headers are never text, malformed frames are no exception, and the cut makes no difference."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlx_reasoning import Generation, StartState, family, make_token_stream_decoder, split_reasoning
from mlx_reasoning.decode.split import Split
from mlx_reasoning.decode.tables import DecoderTables
from mlx_reasoning.events import GenerationInfo, gather
from mlx_reasoning.protocols.families import FAMILIES

from ..cuts import every_cut
from ..vocab import byte_tokenizer, spelled

FRAMED = [name for name, row in FAMILIES.items() if row.frames is not None]
A, C, F = "<|channel|>analysis<|message|>", "<|channel|>commentary", "<|channel|>final<|message|>"
NEXT = "<|start|>assistant"


def seen(split: Split) -> tuple[str, str, list[tuple[str, object]], int]:
    return (
        split.reasoning,
        split.content,
        [(call.name, call.arguments) for call in split.tool_calls],
        len(split.rejected),
    )


HARMONY = [
    ("thought and answer", f"{A}t<|end|>{NEXT}{F}a<|return|>", ("t", "a", [], 0)),
    ("several thoughts", f"{A}t<|end|>{NEXT}{A}u<|end|>{NEXT}{F}a", ("tu", "a", [], 0)),
    ("commentary without a recipient is visible", f"{C}<|message|>Let me look.<|end|>{NEXT}{F}a", ("", "Let me look.a", [], 0)),
    ("recipient behind the channel", f'{C} to=functions.f <|constrain|>json<|message|>{{"x": 1}}<|call|>', ("", "", [("f", {"x": 1})], 0)),
    ("recipient before the channel", f' to=functions.f{C} json<|message|>{{"x": 1}}<|call|>', ("", "", [("f", {"x": 1})], 0)),
    ("a call on the analysis channel", f'{A}t<|end|>{NEXT}<|channel|>analysis to=functions.f<|message|>{{}}<|call|>', ("t", "", [("f", {})], 0)),
    ("a built-in tool", '<|channel|>analysis to=python<|message|>{"code": "1"}<|call|>', ("", "", [("python", {"code": "1"})], 0)),
    ("the stop token is not seen", f'{C} to=functions.f<|message|>{{"x": 1}}', ("", "", [("f", {"x": 1})], 0)),
    ("a call that ends early", f'{C} to=functions.f<|message|>{{"x": ', ("", "", [], 1)),
    ("a call that is no JSON", f"{C} to=functions.f<|message|>x = 1<|call|>", ("", "", [], 1)),
    ("a marker in a string of a call", f'{C} to=functions.f<|message|>{{"x": "<|end|>"}}<|call|>', ("", "", [("f", {"x": "<|end|>"})], 0)),
    ("the close is missing", f"{A}t{NEXT}{F}a", ("t", "a", [], 0)),
    ("the start is missing", f"{A}t<|end|>{F}a", ("t", "a", [], 0)),
    ("the channel marker is missing", "analysis<|message|>t<|end|>assistantfinal<|message|>a", ("t", "a", [], 0)),
    ("a header cut by the end", f"{A}t<|end|>{NEXT}<|channel|>fin", ("t", "", [], 0)),
    ("text without a header", "Hello, world.", ("", "Hello, world.", [], 0)),
    ("a word that could have been a header", "finally it is done", ("", "finally it is done", [], 0)),
    ("a marker without a header behind it", f"{F}a <|start|>\nb <|channel|>, c", ("", "a <|start|>\nb <|channel|>, c", [], 0)),
    ("an unterminated thought", f"{A} t\n", ("t", "", [], 0)),
]  # fmt: skip


@pytest.mark.parametrize(("what", "text", "want"), HARMONY, ids=[what for what, _, _ in HARMONY])
def test_harmony(what: str, text: str, want: tuple[object, ...]) -> None:
    for chunks in every_cut(text):
        assert seen(split_reasoning(chunks, "gpt-oss")) == want


OTHERS = [
    ("muse", " to=self<|message|>t<|eom|><|start|>assistant to=user<|message|>a<|eot|>", ("t", "a", [], 0)),
    ("muse", " to=self<|message|>t<|eom|> to=user<|message|>a", ("t", "a", [], 0)),
    ("muse", ' to=f<|message|><atem:function_calls>\n<atem:invoke name="f">\n<atem:parameter name="city">Paris'
             "</atem:parameter>\n</atem:invoke>\n</atem:function_calls><|eot|>", ("", "", [("f", {"city": "Paris"})], 0)),
    ("kimi-k3", "<|open|>think<|sep|>t<|close|>think<|sep|><|open|>response<|sep|>a<|close|>response<|sep|>"
                "<|close|>message<|sep|>", ("t", "a", [], 0)),
    ("kimi-k3", "<|open|>think<|sep|>t<|open|>response<|sep|>a", ("t", "a", [], 0)),
    ("kimi-k3", '<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|><|open|>argument '
                'key="city" type="string"<|sep|>Paris<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>',
     ("", "", [("f", {"city": "Paris"})], 0)),
    ("solar-open", "<|think|>t<|end|><|begin|>assistant<|content|>a<|end|>", ("t", "a", [], 0)),
    ("inkling", "<|content_thinking|>t<|end_message|><|message_model|><|content_text|>a<|end_message|>", ("t", "a", [], 0)),
    ("inkling", '<|content_invoke_tool_json|>{"name": "f", "arguments": {"x": 1}}<|end_message|>', ("", "", [("f", {"x": 1})], 0)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "want"), OTHERS)
def test_the_other_frames(name: str, text: str, want: tuple[object, ...]) -> None:
    for chunks in every_cut(text):
        assert seen(split_reasoning(chunks, name)) == want


def fragments(name: str) -> list[str]:
    frames = family(name).frames
    assert frames is not None
    parts = [*frames.markers, *frames.markers, *(marker[: len(marker) // 2] for marker in frames.markers)]
    parts += ["assistant", "analysis", "final", " to=self", " to=functions.f", "think", "response", "tools", "message"]
    return [*parts, " ", "\n", "a", "b, c", "思", '{"x": 1}', '"', "call tool"]


def texts(name: str) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(fragments(name)), max_size=14).map("".join)


def cut(text: str, at: list[int]) -> list[str]:
    places = sorted({0, len(text), *(place % (len(text) + 1) for place in at)})
    return [text[a:b] for a, b in itertools.pairwise(places)]


@pytest.mark.parametrize("name", FRAMED)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_the_cut_makes_no_difference_and_nothing_raises(name: str, data: st.DataObject) -> None:
    text = data.draw(texts(name))
    options: dict[str, Any] = {
        "primed": data.draw(st.booleans()),
        "tools": data.draw(st.sampled_from([None, []])),
        "finish_reason": data.draw(st.sampled_from(["stop", "length"])),
    }
    whole = split_reasoning([text], name, **options)
    for chunks in (list(text), cut(text, data.draw(st.lists(st.integers(0, 300), max_size=6)))):
        again = split_reasoning(chunks, name, **options)
        assert seen(again) == seen(whole)
        assert again.ended_inside_reasoning == whole.ended_inside_reasoning


@pytest.mark.parametrize("name", FRAMED)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_by_token_id_with_and_without_a_memory_it_is_the_same(name: str, data: st.DataObject) -> None:
    frames = family(name).frames
    assert frames is not None
    tokenizer = byte_tokenizer([], special=frames.markers)
    tables = DecoderTables(tokenizer)
    ids = tokenizer.encode(data.draw(texts(name)), add_special_tokens=False)
    start = data.draw(st.sampled_from([StartState.outside, StartState.inside]))
    results = []
    for shared in (tables, tables, DecoderTables(tokenizer)):
        decoder = make_token_stream_decoder(tokenizer, family(name), start=start, tables=shared)
        events = [event for token in ids for event in decoder.push(token)]
        done = gather([*events, *decoder.finish(), Generation.info(GenerationInfo("stop"))])
        results.append(
            (done.reasoning, done.content, len(done.tool_calls), len(done.rejected), decoder.reasoning_tokens)
        )
    assert results[0] == results[1] == results[2]


def test_a_marker_in_ordinary_tokens_is_text() -> None:
    frames = family("gpt-oss").frames
    assert frames is not None
    tokenizer = byte_tokenizer([], special=frames.markers)
    ids = tokenizer.encode(F + "say ", add_special_tokens=False) + spelled(tokenizer, "<|end|> twice")
    decoder = make_token_stream_decoder(tokenizer, family("gpt-oss"))
    events = [event for token in ids for event in decoder.push(token)] + list(decoder.finish())
    assert "".join(event.text for event in events if isinstance(event, Generation.chunk)) == "say <|end|> twice"
    assert decoder.reasoning_tokens == 0


def test_a_thoughts_header_is_counted_with_it() -> None:
    frames = family("gpt-oss").frames
    assert frames is not None
    tokenizer = byte_tokenizer([], special=frames.markers)
    thought = tokenizer.encode(A + "plan<|end|>", add_special_tokens=False)
    decoder = make_token_stream_decoder(tokenizer, family("gpt-oss"))
    for token in [*thought, *tokenizer.encode(NEXT + F + "a", add_special_tokens=False)]:
        decoder.push(token)
    decoder.finish()
    assert decoder.reasoning_tokens == len(thought)


ATEM = (
    '<atem:function_calls>\n<atem:invoke name="f">\n<atem:parameter name="x">1</atem:parameter>\n</atem:invoke>\n'
    "</atem:function_calls>"
)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (f" to=user<|message|>Look: {ATEM}<|eot|>", ("", "Look: ", [{"x": 1}])),
        (f" to=user<|message|>{ATEM} Done.<|eot|>", ("", " Done.", [{"x": 1}])),
        (f" to=user<|message|>{ATEM}{ATEM}<|eot|>", ("", "", [{"x": 1}, {"x": 1}])),
        (
            f" to=self<|message|>Not {ATEM}<|eom|><|start|>assistant to=user<|message|>b<|eot|>",
            (f"Not {ATEM}", "b", []),
        ),
        (
            " to=user<|message|>The tag <atem:function_calls> opens it.<|eot|>",
            ("", "The tag <atem:function_calls> opens it.", []),
        ),
        (f" to=f<|message|>{ATEM}<|eom|>", ("", "", [{"x": 1}])),
    ],
)
def test_a_call_of_muse_counts_in_an_answer_and_is_text_in_a_thought(
    text: str, want: tuple[str, str, list[Any]]
) -> None:
    for chunks in every_cut(text):
        split = split_reasoning(chunks, "muse", prompt_tail="<|start|>assistant")
        assert (split.reasoning, split.content, [call.arguments for call in split.tool_calls]) == want
        assert not split.rejected
