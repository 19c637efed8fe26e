"""Families that nobody has heard of, loaded from a folder: the template alone says how they think."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlx_lm
import pytest

from mlx_reasoning import Generation, LoadedModel, load, make_token_stream_decoder, split_reasoning, stream_generate
from mlx_reasoning.events import GenerationInfo, gather
from mlx_reasoning.prompt import render

from ..tiny import PLAIN_TEMPLATE, write_checkpoint

MULL = """{%- for m in messages %}
{{- '<|im_start|>' + m.role + '\\n' }}
{%- if m.KEY and RULE %}{{- 'OPEN' + m.KEY + 'CLOSE' }}{%- endif %}
{{- m.content or '' }}
{%- for call in m.tool_calls or [] %}
{{- '<do>' + {'name': call.function.name, 'arguments': call.function.arguments} | tojson + '</do>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- if SWITCH %}{{- 'PREFILL' }}{%- else %}{{- 'SHUT' }}{%- endif %}
{%- endif %}
"""


def template(opener: str, closer: str, *, key: str = "reasoning_content", rule: str = "loop.last", switch: str = "true",
             prefill: str = "", shut: str = "") -> str:  # fmt: skip
    filled = MULL.replace("KEY", key).replace("RULE", rule).replace("OPEN", opener).replace("CLOSE", closer)
    return filled.replace("SWITCH", switch).replace("PREFILL", prefill).replace("SHUT", shut)


OPEN, CLOSE = "<|mull:on|>", "<|mull:off|>"
LABELLED = "<|room>quiet\n", "<room|>"
INVENTED: dict[str, tuple[str, list[str], str, str, dict[str, Any]]] = {
    # name: template, added tokens, opener, closer, keywords that switch thinking off
    "tags": (template("<mull>\\n", "\\n</mull>\\n"), [], "<mull>", "</mull>", {}),
    "tokens": (template(OPEN, CLOSE), [OPEN, CLOSE], OPEN, CLOSE, {}),
    "opened by the prompt": (template(OPEN, CLOSE, prefill=OPEN), [OPEN, CLOSE], OPEN, CLOSE, {}),
    "brackets": (template("[MULL]", "[/MULL]", key="thinking"), ["[MULL]", "[/MULL]"], "[MULL]", "[/MULL]", {}),
    "another key": (template("◁mull▷", "◁/mull▷", key="reasoning", rule="true"), [], "◁mull▷", "◁/mull▷", {}),
    "off by default": (
        template(OPEN, CLOSE, switch="enable_thinking is defined and enable_thinking", prefill=OPEN, shut=OPEN + CLOSE),
        [OPEN, CLOSE], OPEN, CLOSE, {"thinking": False},
    ),
    "on by default": (
        template("<mull>", "</mull>", switch="not thinking is defined or thinking", prefill="<mull>",
                 shut="<mull></mull>"),
        [], "<mull>", "</mull>", {"thinking": False},
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=INVENTED, ids=lambda name: name.replace(" ", "-"))
def invented(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, LoadedModel]:
    text, added, *_ = INVENTED[request.param]
    folder = write_checkpoint(tmp_path_factory.mktemp("invented") / "model", "llama", template=text, added=added)
    return request.param, load(folder)


def gathered(model: LoadedModel, prompt: Any, text: str) -> tuple[str, str, list[Any]]:
    """What the decoder of a loaded model makes of a turn, token by token."""
    decoder = make_token_stream_decoder(model.tokenizer, model.profile, start=prompt.start)
    ids = model.tokenizer.encode(text, add_special_tokens=False)
    events = [event for token in ids for event in decoder.push(token)]
    got = gather([*events, *decoder.finish("stop"), Generation.info(GenerationInfo("stop"))])
    return got.reasoning, got.content, [(call.name, call.arguments) for call in got.tool_calls]


def test_an_invented_family_is_split_as_its_template_says(invented: tuple[str, LoadedModel]) -> None:
    name, model = invented
    _, _, opener, closer, off = INVENTED[name]
    assert model.profile.reasoning is not None
    assert (model.profile.reasoning.starts, model.profile.reasoning.ends) == ((opener,), (closer,))
    assert any("no row of the table" in sentence for sentence in model.profile.evidence)
    messages = [{"role": "user", "content": f"What is {opener}?"}]
    prompt = render(model.tokenizer, messages, profile=model.profile, thinking=True if off else None)
    opened = prompt.text.endswith(opener)
    call = '<do>{"name": "f", "arguments": {"x": 1}}</do>'
    text = f"{'' if opened else opener}Hmm.{closer}Yes.{call}"
    assert gathered(model, prompt, text) == ("Hmm.", "Yes.", [("f", {"x": 1})])
    split = split_reasoning(list(text), model.profile, prompt_tail=prompt.text)
    assert (split.reasoning, split.content, len(split.tool_calls)) == ("Hmm.", "Yes.", 1)
    if off:
        closed = render(model.tokenizer, messages, profile=model.profile, **off)
        assert gathered(model, closed, "Yes.") == ("", "Yes.", [])
        unset = render(model.tokenizer, messages, profile=model.profile)
        assert unset.text == (prompt.text if model.profile.prompt.default else closed.text)


def test_its_history_rule_and_calls_are_what_the_template_does(invented: tuple[str, LoadedModel]) -> None:
    name, model = invented
    assert model.profile.history == ("keep" if name == "another key" else "strip")
    calls = model.profile.tool_calls
    assert calls is not None and (calls.opener, calls.closer) == ("<do>", "</do>")


def test_it_runs_from_the_folder_to_events(invented: tuple[str, LoadedModel]) -> None:
    _, model = invented
    events = list(stream_generate(model, [{"role": "user", "content": "Hi"}], max_tokens=12, temperature=0.0))
    assert isinstance(events[-1], Generation.info)
    assert 0 < (events[-1].info.usage.completion_tokens or 0) <= 12


@pytest.mark.parametrize(
    "text", ["<think>a</think>b", "<|channel>thought\na<channel|>", "<mull>x</mull>", "plain\n\n "]
)
def test_a_model_without_thoughts_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    model = load(write_checkpoint(tmp_path / "model", "llama", template=PLAIN_TEMPLATE, added=["<think>", "</think>"]))
    assert (model.profile.reasoning, model.profile.tool_calls) == (None, None)
    prompt = render(model.tokenizer, [{"role": "user", "content": text}], profile=model.profile)
    assert gathered(model, prompt, text) == ("", text, [])
    ours = list(stream_generate(model, prompt.ids, max_tokens=40, temperature=0.0))
    written = "".join(event.text for event in ours if isinstance(event, Generation.chunk))
    theirs = "".join(
        part.text for part in mlx_lm.stream_generate(model.model, model.tokenizer, prompt.ids, max_tokens=40)
    )
    assert written == theirs and not any(isinstance(event, Generation.reasoning) for event in ours)
