"""The laws of the splitter, each stated once, over every family of the table and texts that hypothesis makes.

Texts are made of what goes wrong in the field: whole and half markers, white space, backticks, fences, calls, drafts.
"""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlx_reasoning import ReasoningEventEmitter, Segment, StartState
from mlx_reasoning.decode.marks import Marks
from mlx_reasoning.decode.split import protocol_parts
from mlx_reasoning.decode.stop import Marker
from mlx_reasoning.protocols.config import ReasoningConfig, ToolCallFormat
from mlx_reasoning.protocols.families import FAMILIES

THINKING = [name for name, row in FAMILIES.items() if row.reasoning is not None]
CALLS = {
    "json_tools": '{"name": "f", "arguments": {"x": "a </think> b"}}',
    "qwen3_coder": "<function=f>\n<parameter=city>\nParis\n</parameter>\n</function>",
    "glm47": "f\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n",
    "gemma4": 'call:f{city:<|"|>Paris<|"|>}',
    "mistral": 'f[ARGS]{"x": 1}',
}
REASONS = ("stop", "length", "cancelled")


def protocol_of(name: str) -> tuple[ReasoningConfig, ToolCallFormat | None]:
    markers, calls = protocol_parts(name)
    assert isinstance(markers, ReasoningConfig)
    return markers, calls


def fragments(name: str) -> list[str]:
    config, calls = protocol_of(name)
    markers = [*config.starts, *config.ends, *config.end_of_turn[:1]]
    markers += [text for frame in config.answer_frames for text in (frame.start, frame.end)]
    parts = markers * 2
    parts += [marker[: len(marker) // 2] for marker in markers]
    parts += [" ", "\n", "\n\n", "  ", "\t", "`", "```", "a", "plan ", "x\n", "思", "🤔", "é", "<", ">", "[", "{"]
    if config.channel:
        parts += ["thought", "content", "thought\n", "content\n", "musing\n", "Loud\n"]
    if calls is not None:
        payload = CALLS.get(calls.parser, '[{"name": "f", "arguments": {}}]')
        parts += [calls.opener, calls.closer, calls.opener + payload + calls.closer, calls.opener + payload]
    return [part for part in parts if part]


def texts(name: str) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(fragments(name)), max_size=12).map("".join)


def run(name: str, chunks: list[str], start: StartState, reason: str) -> tuple[list[Segment], bool]:
    config, calls = protocol_of(name)
    emitter = ReasoningEventEmitter(config, start, calls=calls)
    segments = [segment for chunk in chunks for segment in emitter.push(chunk)]
    segments += emitter.finish(reason)
    return joined(segments), emitter.ended_inside_reasoning


def joined(segments: list[Segment]) -> list[Segment]:
    out: list[Segment] = []
    for segment in segments:
        if out and segment.kind != "call" and out[-1].kind == segment.kind:
            out[-1] = Segment(segment.kind, out[-1].text + segment.text)
        else:
            out.append(segment)
    return out


def cut(text: str, at: list[int]) -> list[str]:
    places = sorted({0, len(text), *(place % (len(text) + 1) for place in at)})
    return [text[a:b] for a, b in itertools.pairwise(places)]


@pytest.mark.parametrize("name", THINKING)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_law_2_the_same_text_gives_the_same_segments_however_it_is_cut(name: str, data: st.DataObject) -> None:
    text = data.draw(texts(name))
    start = data.draw(st.sampled_from(StartState))
    reason = data.draw(st.sampled_from(REASONS))
    places = data.draw(st.lists(st.integers(0, 500), max_size=8))
    whole = run(name, [text], start, reason)
    assert run(name, list(text), start, reason) == whole
    assert run(name, cut(text, places), start, reason) == whole


def is_conserved(text: str, output: str, config: ReasoningConfig, markers: list[str]) -> bool:
    """Whether `output` is `text` less whole markers, labels and white space, in order."""
    gone = re.compile("|".join(re.escape(marker) for marker in sorted(markers, key=len, reverse=True)))
    label = re.compile(r"[a-z][a-z0-9_]*\n?")
    states = {(0, 0)}
    seen = set(states)
    while states:
        at, out = states.pop()
        if at == len(text) and out == len(output):
            return True
        steps: list[tuple[int, int]] = []
        if at < len(text):
            if out < len(output) and text[at] == output[out]:
                steps.append((at + 1, out + 1))
            if text[at].isspace():
                steps.append((at + 1, out))
            match = gone.match(text, at)
            if match:
                steps.append((match.end(), out))
                word = label.match(text, match.end()) if config.channel and match.group() in config.starts else None
                if word:
                    steps.append((word.end(), out))
        states |= set(steps) - seen
        seen |= set(steps)
    return False


@pytest.mark.parametrize("name", THINKING)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_law_1_every_character_ends_up_in_exactly_one_place(name: str, data: st.DataObject) -> None:
    text = data.draw(texts(name))
    config, _ = protocol_of(name)
    segments, _ = run(name, [text], data.draw(st.sampled_from(StartState)), data.draw(st.sampled_from(REASONS)))
    markers = [*config.starts, *config.ends, *config.end_of_turn]
    markers += [part for frame in config.answer_frames for part in (frame.start, frame.end)]
    assert is_conserved(text, "".join(segment.text for segment in segments), config, markers)


@pytest.mark.parametrize("name", THINKING)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_law_3_a_visible_character_waits_for_a_marker_and_no_longer(name: str, data: st.DataObject) -> None:
    """Where no call and no label can be under way, what waits is shorter than the longest marker, and white space."""
    config, _ = protocol_of(name)
    text = data.draw(texts(name))
    start = data.draw(st.sampled_from(StartState))
    emitter = ReasoningEventEmitter(config, start)  # without calls
    longest = max(map(len, [*Marks(config, None).in_answer, *Marks(config, None).in_thought]))
    sent = "".join(segment.text for char in text for segment in emitter.push(char))
    filler = "~" * 65  # begins no marker, and no label is as long
    sent += "".join(segment.text for segment in emitter.push(filler))
    assert sent.endswith(filler)
    held = [segment.text for segment in emitter.finish("length")]
    assert sum(map(len, held)) <= longest


@pytest.mark.parametrize("name", THINKING)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_law_7_a_thought_without_a_closer_stays_reasoning(name: str, data: st.DataObject) -> None:
    config, _ = protocol_of(name)
    ends = (*config.ends, *config.end_of_turn)
    text = data.draw(st.text("ab \n`é", max_size=40))
    segments, inside = run(name, list(text), StartState.inside, data.draw(st.sampled_from(REASONS)))
    assert not any(end in text for end in ends)
    assert "".join(s.text for s in segments if s.kind == "reasoning") == text.strip()
    assert inside and all(segment.kind == "reasoning" for segment in segments)


LATE = [name for name in THINKING if protocol_of(name)[0].calls_in_reasoning != "always"]


@pytest.mark.parametrize("name", [name for name in LATE if protocol_of(name)[0].channel is None])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_law_10_nothing_runs_from_a_thought_that_was_cut(name: str, data: st.DataObject) -> None:
    """Apertus means every call, and a Gemma label may turn the rest into an answer, so these two have their cases."""
    config, _ = protocol_of(name)
    ends = config.ends
    text = data.draw(texts(name).map(lambda drawn: without(drawn, ends)))
    segments, _ = run(name, list(text), StartState.inside, "length")
    assert not any(segment.kind == "call" for segment in segments)


def without(text: str, markers: tuple[str, ...]) -> str:
    """The text with every marker taken out, also those that only appear when another is taken out."""
    while any(marker in text for marker in markers):
        for marker in markers:
            text = text.replace(marker, "")
    return text


def markers_by_id(name: str) -> tuple[Marks, ReasoningConfig]:
    config, calls = protocol_of(name)
    texts = {*config.starts, *config.ends}
    return Marks(config, calls, texts), config


def is_plain_pair(name: str) -> bool:
    config = FAMILIES[name].reasoning
    return config is not None and bool(config.start_delimiter) and not config.channel and not config.answer_frames


@pytest.mark.parametrize("name", [name for name in THINKING if is_plain_pair(name)])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_law_6_a_marker_known_by_id_is_the_only_one(name: str, data: st.DataObject) -> None:
    """The markers' characters in ordinary tokens are text, in the thought and in the answer."""
    marks, config = markers_by_id(name)
    start, end = config.starts[0], config.end_delimiter
    thought = f"a {end} b {start} c"
    answer = f"x {start} y {end} z"
    emitter = ReasoningEventEmitter(config, marks=marks)
    pieces: list[str | Marker] = [Marker(start), *cut(thought, data.draw(st.lists(st.integers(0, 99), max_size=4)))]
    pieces += [Marker(end), *cut(answer, data.draw(st.lists(st.integers(0, 99), max_size=4)))]
    segments = joined([segment for piece in pieces for segment in emitter.push(piece)] + emitter.finish())
    assert [(s.kind, s.text) for s in segments] == [("reasoning", thought), ("response", answer)]
