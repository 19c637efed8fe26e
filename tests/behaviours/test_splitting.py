"""Situations of the splitter in which real systems went wrong, over every family that can get into them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlx_reasoning import StartState, family, make_token_stream_decoder, split_reasoning, start_state
from mlx_reasoning.decode.tables import DecoderTables
from mlx_reasoning.events import Generation, GenerationInfo, gather
from mlx_reasoning.protocols.families import FAMILIES

from ..vocab import GEMMA, byte_tokenizer
from .turns import CALLS, TAGGED, always, by_id, config_of, header_of, markers, parts, split

INSIDE = StartState.inside
WORDY = [name for name in TAGGED if not config_of(name).never_prose and name != "granite-3.2"]
FREE = [name for name in TAGGED if config_of(name).never_prose and name not in ("mistral", "apertus")]
IN_CALLS = [name for name in CALLS if name not in ("mistral", "apertus")]


@pytest.mark.parametrize("name", TAGGED)
@pytest.mark.parametrize("opened", [False, True], ids=["prefilled", "written"])
def test_a_marker_split_across_pieces_leaves_no_fragment(name: str, opened: bool) -> None:
    opener, closer = markers(name)
    text = f"{opener if opened else ''}aaa{closer}bbb"
    got = always(name, text, StartState.outside if opened else INSIDE)
    assert (got.reasoning, got.content) == ("aaa", "bbb")


@pytest.mark.parametrize("name", TAGGED)
def test_what_only_began_like_a_marker_is_let_go_at_the_end(name: str) -> None:
    opener, closer = markers(name)
    for length in range(1, len(opener)):
        got = always(name, f"a{closer}result: a {opener[:length]}", INSIDE)
        assert got.content == f"result: a {opener[:length]}"
    for length in range(1, len(closer)):
        got = always(name, f"plan: {closer[:length]}", INSIDE)
        assert (got.reasoning, got.content) == (f"plan: {closer[:length]}".rstrip(), "")


@pytest.mark.parametrize("name", CALLS)
def test_one_piece_may_end_a_thought_and_hold_a_whole_call(name: str) -> None:
    _, closer = markers(name)
    call, tool, arguments = CALLS[name]
    got = always(name, f"aaa bbb{closer}{call}", INSIDE)
    assert (got.reasoning, got.content) == ("aaa bbb", "")
    assert [(found.name, found.arguments) for found in got.tool_calls] == [(tool, arguments)]


@pytest.mark.parametrize("name", TAGGED)
def test_deltas_of_a_long_text_join_to_the_whole(name: str) -> None:
    _, closer = markers(name)
    numbers = "".join(f"{at} " for at in range(1, 13))
    for size in range(1, 7):
        text = f"{numbers}{closer}{numbers}"
        got = split(name, [text[at : at + size] for at in range(0, len(text), size)], INSIDE)
        assert (got.reasoning, got.content) == (numbers.rstrip(), numbers)


@pytest.mark.parametrize("name", TAGGED)
@pytest.mark.parametrize("behind", ["", "\n", " ", "\n\n"])
def test_the_start_comes_from_the_prompts_tail(name: str, behind: str) -> None:
    opener, closer = markers(name)
    tail = f"{header_of(name)}\n{opener}{behind}"
    assert start_state(tail, name) is INSIDE
    split_up = split_reasoning(f"aaa{closer}\n\nbbb", name, prompt_tail=tail)
    assert (split_up.reasoning, split_up.content) == ("aaa", "bbb")
    cut_off = split_reasoning("aaa", name, prompt_tail=tail, finish_reason="length")
    assert (cut_off.reasoning, cut_off.content, cut_off.ended_inside_reasoning) == ("aaa", "", True)


@pytest.mark.parametrize("name", [name for name in TAGGED if FAMILIES[name].turn_header])
@pytest.mark.parametrize("closed", ["{o}\n\n{c}\n\n", "{o}{c}", "{c}"], ids=["block", "empty", "lone closer"])
def test_a_tag_in_somebodys_text_is_no_start(name: str, closed: str) -> None:
    opener, closer = markers(name)
    header = header_of(name)
    earlier = f"system: {opener} user: what does {opener} do? tool: {opener} {header}{opener}old{closer}and {opener}"
    end = config_of(name).end_of_turn[:1]
    tail = f"{earlier}{''.join(end)}{header}\n{closed.format(o=opener, c=closer)}"
    assert start_state(tail, name) is StartState.outside
    assert split_reasoning("bbb", name, prompt_tail=tail).content == "bbb"


@pytest.mark.parametrize("tail", ["<s>[INST]Hi[/INST]"])
@pytest.mark.parametrize(("text", "reasoning", "content"), [
    ("bbb", "", "bbb"), ("[THINK]aaa[/THINK]bbb", "aaa", "bbb"), ("aaa[/THINK]bbb", "", "aaabbb"),
])  # fmt: skip
def test_the_start_is_never_guessed_from_the_family(tail: str, text: str, reasoning: str, content: str) -> None:
    assert start_state(tail, "mistral") is StartState.outside
    got = always("mistral", text, start_state(tail, "mistral"))
    assert (got.reasoning, got.content) == (reasoning, content)


@pytest.mark.parametrize("name", WORDY)
def test_a_second_closer_is_text_unless_it_is_known_by_id(name: str) -> None:
    _, closer = markers(name)
    text = f"{closer}aaa{closer}bbb"
    assert parts(always(name, text, INSIDE))[:2] == ("", f"aaa{closer}bbb")
    assert parts(by_id(name, text, INSIDE))[:2] == ("", "aaabbb")


@pytest.mark.parametrize("name", FREE)
def test_a_second_closer_that_is_never_prose_is_dropped(name: str) -> None:
    _, closer = markers(name)
    assert parts(always(name, f"{closer}aaa{closer}bbb", INSIDE))[:2] == ("", "aaabbb")


@pytest.mark.parametrize("name", WORDY)
def test_a_tag_that_an_answer_quotes_is_text(name: str) -> None:
    opener, closer = markers(name)
    assert parts(always(name, f"aaa{closer}use `{opener}` here", INSIDE))[:2] == ("aaa", f"use `{opener}` here")
    quoted = f"b {opener} c {closer} d"
    assert parts(always(name, f"{opener}aaa{closer}{quoted}"))[:2] == ("aaa", quoted)


@pytest.mark.parametrize("name", TAGGED)
def test_white_space_belongs_to_the_answer_where_the_answer_has_begun(name: str) -> None:
    _, closer = markers(name)
    pieces = [f"aaa{closer}", "\n\n", "1. x", "\n", "2. y", "\n\n", "    code"]
    assert split(name, pieces, INSIDE).content == "1. x\n2. y\n\n    code"
    assert always(name, f"\naaa{closer}bbb", INSIDE).reasoning == "aaa"


@pytest.mark.parametrize(("name", "text"), [
    ("gpt-oss", "<|channel|>analysis<|message|>aaa"),
    ("muse", " to=self<|message|>aaa"),
    ("kimi-k3", "<|open|>think<|sep|>aaa"),
    ("solar-open", "<|think|>aaa"),
    ("inkling", "<|content_thinking|>aaa"),
    *((name, f"{markers(name)[0]}aaa") for name in TAGGED),
    ("gemma4", "<|channel>thought\naaa"),
])  # fmt: skip
@pytest.mark.parametrize("reason", ["stop", "length", "cancelled"])
def test_a_thought_that_never_closes_is_a_thought(name: str, text: str, reason: str) -> None:
    got = always(name, text, reason=reason)
    assert (got.reasoning, got.content) == ("aaa", "")
    split_up = split_reasoning(text, name, finish_reason=reason)  # type: ignore[arg-type]
    assert split_up.ended_inside_reasoning


def test_markers_are_seen_by_id_where_they_are_special() -> None:
    """Tokens that a decoder would leave out, as reserved ones are."""
    frames = FAMILIES["gpt-oss"].frames
    assert frames is not None
    tokenizer = byte_tokenizer([], special=frames.markers)
    text = "<|channel|>analysis<|message|>aaa<|end|><|start|>assistant<|channel|>final<|message|>bbb<|return|>"
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert "<|" not in tokenizer.decode(ids, skip_special_tokens=True)
    decoder = make_token_stream_decoder(tokenizer, FAMILIES["gpt-oss"], tables=DecoderTables(tokenizer))
    events = [event for token in ids for event in decoder.push(token)]
    got = gather([*events, *decoder.finish("stop"), Generation.info(GenerationInfo("stop"))])
    assert (got.reasoning, got.content) == ("aaa", "bbb")


@pytest.mark.parametrize("special", [True, False])
def test_mistral_by_text_and_by_id(special: bool) -> None:
    pair = ["[THINK]", "[/THINK]"]
    tokenizer = byte_tokenizer([] if special else pair, special=pair if special else [])
    decoder = make_token_stream_decoder(tokenizer, FAMILIES["mistral"], tables=DecoderTables(tokenizer))
    ids = tokenizer.encode("[THINK]aaa[/THINK]bbb", add_special_tokens=False)
    events = [event for token in ids for event in decoder.push(token)]
    got = gather([*events, *decoder.finish("stop"), Generation.info(GenerationInfo("stop"))])
    assert (got.reasoning, got.content) == ("aaa", "bbb")
    assert parts(always("mistral", "[THINK]aaa[/THINK]bbb"))[:2] == ("aaa", "bbb")


def test_gemma_with_and_without_a_thought() -> None:
    for text, want in (("<|channel>thought\naaa<channel|>bbb", ("aaa", "bbb")), ("bbb", ("", "bbb"))):
        assert parts(always("gemma4", text))[:2] == want
        tokenizer = byte_tokenizer([], special=GEMMA)
        decoder = make_token_stream_decoder(tokenizer, FAMILIES["gemma4"], tables=DecoderTables(tokenizer))
        ids = tokenizer.encode(text, add_special_tokens=False)
        events = [event for token in ids for event in decoder.push(token)]
        got = gather([*events, *decoder.finish("stop"), Generation.info(GenerationInfo("stop"))])
        assert (got.reasoning, got.content) == want


@pytest.mark.parametrize("char", ["思", "é", "🤔", "\u00a0"])
@pytest.mark.parametrize("cut", [1, 2, 3])
def test_half_a_character_waits_and_is_replaced_at_the_end_only(char: str, cut: int) -> None:
    tokenizer = byte_tokenizer(["<think>", "</think>"])
    ids = tokenizer.encode(char, add_special_tokens=False)
    half = ids[: min(cut, len(ids) - 1)]
    spaced = tokenizer.encode(" word", add_special_tokens=False)
    for ids in (half + spaced, half, [*spaced, *half]):
        decoder = make_token_stream_decoder(tokenizer, FAMILIES["qwen3"], tables=DecoderTables(tokenizer))
        events = [event for token in ids for event in decoder.push(token)]
        before = "".join(event.text for event in events if isinstance(event, Generation.chunk))
        events += decoder.finish("stop")
        text = "".join(event.text for event in events if isinstance(event, Generation.chunk))
        assert text == tokenizer.decode(ids)
        assert not before.endswith("�")


@pytest.mark.parametrize("name", IN_CALLS)
def test_a_draft_stays_in_the_thought_and_the_call_behind_the_closer_runs(name: str) -> None:
    _, closer = markers(name)
    call, tool, arguments = CALLS[name]
    got = always(name, f"maybe {call} first{closer}{call}", INSIDE)
    assert (got.reasoning, got.content) == (f"maybe {call} first", "")
    assert [(found.name, found.arguments) for found in got.tool_calls] == [(tool, arguments)]


@pytest.mark.parametrize("name", IN_CALLS)
def test_a_call_that_ends_the_turn_inside_a_thought_runs_and_one_before_a_closer_does_not(name: str) -> None:
    _, closer = markers(name)
    call, tool, arguments = CALLS[name]
    got = always(name, f"aaa\n{call}", INSIDE)
    assert got.reasoning == "aaa" and got.content == ""
    assert [(found.name, found.arguments) for found in got.tool_calls] == [(tool, arguments)]
    draft = always(name, f"aaa\n{call}{closer}Let me do that:", INSIDE)
    assert (draft.reasoning, draft.content, draft.tool_calls) == (f"aaa\n{call}", "Let me do that:", ())
    lost = always(name, f"aaa\n{call}", INSIDE, reason="length")
    assert not lost.tool_calls and lost.reasoning == f"aaa\n{call}"


def test_mistral_never_calls_from_a_thought_and_apertus_always_does() -> None:
    call, _, _ = CALLS["apertus"]
    got = always("apertus", f"aaa {call} more<|inner_suffix|>b", INSIDE)
    assert len(got.tool_calls) == 1 and got.content == "b"
    text = '[TOOL_CALLS]f[ARGS]{"x": 1}'
    got = always("mistral", f"aaa {text}", INSIDE)
    assert (got.tool_calls, got.reasoning) == ((), f"aaa {text}")


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("tag", ["<function=", "<thought>", "<reasoning>", "<invoke ", "[TOOL", "<|tool"])
def test_other_tags_in_a_thought_are_its_text(name: str, tag: str) -> None:
    opener, closer = markers(name)
    if opener.startswith(tag) or tag in (opener, closer) or CALLS[name][0].startswith(tag):
        pytest.skip("this is the family's own")
    got = always(name, f"I write {tag} now{closer}b", INSIDE)
    assert (got.reasoning, got.content, got.tool_calls) == (f"I write {tag} now", "b", ())


@pytest.mark.parametrize("name", [name for name in WORDY if name in CALLS])
def test_a_closer_that_a_thought_quotes_does_not_close(name: str) -> None:
    _, closer = markers(name)
    call, tool, _ = CALLS[name]
    got = always(name, f"explain `{closer}` token{closer}{call}", INSIDE)
    assert (got.reasoning, got.content) == (f"explain `{closer}` token", "")
    assert [found.name for found in got.tool_calls] == [tool]


@pytest.mark.parametrize("name", CALLS)
def test_white_space_before_a_call_is_no_content(name: str) -> None:
    _, closer = markers(name)
    call, _, _ = CALLS[name]
    for chunks in ([f"aaa{closer}\n\n", call], [f"aaa{closer}", "\n\n" + call]):
        got = split(name, chunks, INSIDE)
        assert got.content == "" and len(got.tool_calls) == 1
    events = split_reasoning(f"aaa{closer}\n\n{call}", name, primed=True).events
    assert not any(isinstance(event, Generation.chunk) for event in events)


def test_without_reasoning_no_character_is_added_or_lost() -> None:
    profile = FAMILIES["gemma4"]
    tokenizer = byte_tokenizer([], special=GEMMA)
    text = "thought\naaa<channel|>bbb"
    decoder = make_token_stream_decoder(tokenizer, replace(profile, reasoning=None), tables=DecoderTables(tokenizer))
    events = [e for token in tokenizer.encode(text, add_special_tokens=False) for e in decoder.push(token)]
    got = gather([*events, *decoder.finish("stop"), Generation.info(GenerationInfo("stop"))])
    assert got.reasoning == "" and got.content in text and got.content.startswith("thought\naaa")


HERMES = [name for name in CALLS if family(name).tool_calls and CALLS[name][0].startswith("<tool_call>\n{")]


@pytest.mark.parametrize("name", HERMES)
def test_an_open_call_at_the_end_runs_if_its_arguments_are_whole(name: str) -> None:
    _, closer = markers(name)
    whole = '<tool_call>\n{"name": "f", "arguments": {"x": "y"}}'
    assert len(always(name, f"a{closer}{whole}", INSIDE).tool_calls) == 1
    for length in range(len("<tool_call>\n{"), len(whole)):
        got = always(name, f"a{closer}{whole[:length]}", INSIDE) if length % 7 == 0 else None
        if got is not None:
            assert not got.tool_calls and got.rejected[0].reason == "unfinished"


def test_an_opener_inside_an_argument_is_payload() -> None:
    call = '<tool_call>\n{"name": "f", "arguments": {"x": "<think>a</think>"}}\n</tool_call>'
    for got in (always("qwen3", call), by_id("qwen3", call)):
        assert [found.arguments for found in got.tool_calls] == [{"x": "<think>a</think>"}]
        assert (got.reasoning, got.content) == ("", "")
