"""Messages to prompts: every spelling of a thought, every kind of template, every refusal."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from mlx_lm.tokenizer_utils import TokenizerWrapper

from mlx_reasoning.errors import OptionError, PromptError, ReasoningControlError
from mlx_reasoning.prompt import RenderedPrompt, check_template_arguments, encode, normalized, render
from mlx_reasoning.protocols.config import ModelProfile, PromptStrategy, StartState
from mlx_reasoning.protocols.families import family
from mlx_reasoning.protocols.resolve import resolve_profile
from tests.tiny import CHATML_TEMPLATE, GEMMA_TEMPLATE, OPEN_TEMPLATE, PLAIN_TEMPLATE
from tests.vocab import CHATML, GEMMA, QWEN, byte_tokenizer

QWEN3 = family("qwen3")
GEMMA4 = family("gemma4")
PLAIN = ModelProfile("plain", prompt=PromptStrategy(default=False))
USER = {"role": "user", "content": "Hi"}


def chatml(template: str = CHATML_TEMPLATE) -> Any:
    return byte_tokenizer(QWEN, special=CHATML, template=template)


def gemma() -> Any:
    tokenizer = byte_tokenizer([], special=GEMMA, template=GEMMA_TEMPLATE)
    tokenizer.bos_token = "<bos>"
    return tokenizer


def shown(
    messages: list[Any], template: str = CHATML_TEMPLATE, profile: ModelProfile = QWEN3, **more: Any
) -> RenderedPrompt:
    before = copy.deepcopy(messages)
    prompt = render(chatml(template), messages, profile=profile, **more)
    assert messages == before, "the caller's messages were changed"
    return prompt


def test_a_plain_conversation() -> None:
    prompt = shown([{"role": "developer", "content": "Be brief."}, USER])
    assert prompt.text == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    assert chatml().decode(prompt.ids) == prompt.text
    assert prompt.start is StartState.outside


def test_without_a_generation_prompt() -> None:
    assert shown([USER], add_generation_prompt=False).text == "<|im_start|>user\nHi<|im_end|>\n"


STARTS: list[tuple[str, dict[str, Any], StartState]] = [
    (CHATML_TEMPLATE, {}, StartState.outside),
    (CHATML_TEMPLATE, {"thinking": False}, StartState.outside),
    (OPEN_TEMPLATE, {}, StartState.inside),
    (OPEN_TEMPLATE, {"thinking": True}, StartState.inside),
    (OPEN_TEMPLATE, {"thinking": False}, StartState.outside),
]


@pytest.mark.parametrize(("template", "wish", "start"), STARTS)
def test_the_start_is_what_the_generation_prompt_leaves_open(
    template: str, wish: dict[str, Any], start: StartState
) -> None:
    question = {"role": "user", "content": "What does <think> mean?\n<think>"}
    assert shown([question], template, **wish).start is start
    assert shown([question], template, profile=PLAIN).start is StartState.outside


def test_thinking_passes_nothing_unless_it_is_wanted() -> None:
    template = "{{ 'unset' if enable_thinking is not defined else enable_thinking }}"
    assert shown([USER], template).text == "unset"
    assert shown([USER], template, thinking=True).text == "True"
    assert shown([USER], template, thinking=False).text == "False"
    wrapper = TokenizerWrapper(chatml(template))
    assert render(wrapper, [USER], profile=QWEN3).text == "unset"
    assert shown([USER], template, thinking=False, template_arguments={"enable_thinking": "mine"}).text == "mine"
    noted = shown([USER], template, effort="high")
    assert noted.text == "True" and len(noted.notes) == 1
    with pytest.raises(ReasoningControlError):
        shown([USER], template, profile=PLAIN, thinking=True)


ASK_AGAIN = {"role": "user", "content": "Go on"}
READS = "{% for m in messages %}{{ m.role }}:{{ m.reasoning_content }}|{{ m.content }};{% endfor %}"

SPELLINGS: list[dict[str, Any]] = [
    {"content": "Yes.", "reasoning_content": "Well."},
    {"content": "Yes.", "reasoning": "Well."},
    {"content": "Yes.", "thinking": "Well."},
    {"content": "<think>\nWell.\n</think>\n\nYes."},
    {"content": "  <think>Well.</think>Yes."},
    {"content": "<think>other</think>Yes.", "reasoning_content": "Well."},
    {"content": [{"type": "thinking", "thinking": "Well."}, {"type": "text", "text": "Yes."}]},
    {
        "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "Well."}]},
            {"type": "text", "text": "Yes."},
        ]
    },
    {"content": [{"type": "text", "text": "<think>Well.</think>Y"}, {"type": "text", "text": "es."}]},
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_a_thought_is_one(spelling: dict[str, Any]) -> None:
    text = shown([USER, {"role": "assistant", **spelling}, ASK_AGAIN], READS).text
    assert text == "user:|Hi;assistant:Well.|Yes.;user:|Go on;"


def test_a_thought_keeps_the_answers_indentation_and_a_literal_tag_stays() -> None:
    turn = normalized({"role": "assistant", "content": "<think>t</think>\n \n    code"}, 0, QWEN3.reasoning)
    assert turn["content"] == "    code"
    text = "It writes <think>x</think>."
    assert normalized({"role": "assistant", "content": text}, 0, QWEN3.reasoning)["content"] == text
    assert (
        normalized({"role": "user", "content": "<think>t</think>"}, 0, QWEN3.reasoning)["content"] == "<think>t</think>"
    )
    assert normalized({"role": "assistant", "content": "<think>t</think>"}, 0)["content"] == "<think>t</think>"


def test_a_labelled_thought_in_the_content() -> None:
    turn = normalized({"role": "assistant", "content": "<|channel>thought\nWell.<channel|>Yes."}, 0, GEMMA4.reasoning)
    assert (turn["reasoning_content"], turn["content"]) == ("Well.", "Yes.")


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "thinking"])
@pytest.mark.parametrize(
    "reading", ["{{ m.%s }}", "{{ m['%s'] }}", "{{ m.get('%s') }}", "{%% if '%s' in m %%}{%% endif %%}"]
)
def test_the_thought_gets_the_name_that_the_template_reads(name: str, reading: str) -> None:
    turn = normalized({"role": "assistant", "content": "", "reasoning": "Well."}, 0, None, reading % name)
    assert turn == {"role": "assistant", "content": "", name: "Well."}


def test_no_content_is_empty_or_null_as_the_template_needs() -> None:
    call = {"function": {"name": "f", "arguments": {}}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    assert normalized(message, 0)["content"] == ""
    assert normalized(message, 0, None, "{% if m['content'] is none %}")["content"] is None
    assert normalized({**message, "content": "x"}, 0, None, "{% if m['content'] is not none %}")["content"] == "x"
    assert normalized({"role": "user"}, 0)["content"] == ""


CALLS: list[dict[str, Any]] = [
    {"id": "1", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}},
    {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
    {"id": "1", "name": "f", "arguments": {"x": 1}},
]


@pytest.mark.parametrize("call", CALLS)
def test_arguments_are_a_dict_for_the_template(call: dict[str, Any]) -> None:
    messages = [USER, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "content": "2"}]
    assert '\n{"name": "f", "arguments": {"x": 1}}\n' in shown(messages).text
    each = "{% for m in messages %}{% for c in m.tool_calls or [] %}%s{% endfor %}{% endfor %}"
    joining = each.replace("%s", "{{ 'f' + c.function.arguments }}")
    assert shown(messages, joining).text == 'f{"x": 1}'


def test_calls_without_arguments() -> None:
    spellings: list[Any] = ["", None, {}]
    for arguments in spellings:
        turn = normalized({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}, 0)
        assert turn["tool_calls"][0]["function"] == {"name": "f", "arguments": {}}


def test_tools_reach_the_template() -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    template = "{{ tools | map(attribute='function.name') | join if tools else 'none' }}"
    assert shown([USER], template, tools=tools).text == "f"
    assert shown([USER], template, tools=[]).text == "none"


PREFILLS: list[tuple[dict[str, Any], str, StartState]] = [
    ({"content": "The answer is"}, "assistant\nThe answer is", StartState.outside),
    ({"content": "The answer is "}, "assistant\nThe answer is ", StartState.outside),
    ({"content": "\n  code"}, "assistant\n\n  code", StartState.outside),
    ({"content": ""}, "assistant\n", StartState.outside),
    ({"reasoning_content": "Let me "}, "<think>\nLet me ", StartState.continued),
    ({"content": "<think>\nLet me"}, "<think>\nLet me", StartState.continued),
    ({"content": "Yes", "reasoning_content": "Well."}, "<think>\nWell.\n</think>\n\nYes", StartState.outside),
]


@pytest.mark.parametrize(("message", "end", "start"), PREFILLS)
def test_a_final_assistant_message_is_gone_on_with(message: dict[str, Any], end: str, start: StartState) -> None:
    prompt = shown([USER, {"role": "assistant", **message}])
    assert prompt.text.endswith(end)
    assert prompt.start is start


def test_a_prefill_ends_exactly_with_its_text_though_the_template_trims() -> None:
    trimming = PLAIN_TEMPLATE.replace("(message.content or '')", "(message.content or '').strip()")
    assert shown([USER, {"role": "assistant", "content": " \n The"}], trimming).text.endswith("assistant\n \n The")
    folding = PLAIN_TEMPLATE.replace("(message.content or '')", "(message.content or '') | upper")
    assert shown([USER, {"role": "assistant", "content": "The"}], folding).text.endswith("assistant\nTHE")


def test_a_prefill_alone_and_one_that_is_not_wanted() -> None:
    alone = [{"role": "assistant", "content": "Once upon"}]
    assert shown(alone).text == "<|im_start|>assistant\nOnce upon"
    closed = shown([USER, *alone], continue_final_message=False).text
    assert closed.endswith("Once upon<|im_end|>\n<|im_start|>assistant\n")
    with pytest.raises(PromptError, match=r"drops the text of messages\[0\]"):
        shown(alone, "{{ messages[0].role }}")


def test_the_first_token_is_not_given_twice() -> None:
    prompt = render(gemma(), [USER], profile=GEMMA4)
    assert prompt.ids.count(gemma().bos_token_id) == 1
    assert prompt.text.endswith("<|channel>thought\n<channel|>") and prompt.start is StartState.outside
    assert render(gemma(), [USER], profile=GEMMA4, thinking=True).start is StartState.outside
    calls: list[bool] = []

    class Spying:
        bos_token = "<bos>"

        def encode(self, text: str, add_special_tokens: bool) -> list[int]:
            calls.append(add_special_tokens)
            return [1]

    for text in ("<bos>Hi", "Hi"):
        encode(Spying(), text)
    Spying.bos_token = None  # type: ignore[assignment]
    encode(Spying(), "Hi")
    assert calls == [False, True, True]


def test_a_renderer_in_python() -> None:
    def template(messages: list[dict[str, Any]], tools: Any, add_generation_prompt: bool, **more: Any) -> str:
        return f"{len(messages)} {tools} {add_generation_prompt} {more}"

    wrapper = TokenizerWrapper(chatml(), chat_template=template)
    assert render(wrapper, [USER], profile=PLAIN, template_arguments={"a": 1}).text == "1 None True {'a': 1}"


def test_a_template_that_wants_a_generation_prompt() -> None:
    template = "{% if not add_generation_prompt %}{{ raise_exception('no') }}{% endif %}<|im_start|>assistant\n<think>"
    assert shown([USER], template).start is StartState.inside


def test_several_templates_in_one() -> None:
    tokenizer = chatml()
    tokenizer.chat_template = {"default": OPEN_TEMPLATE, "tool_use": PLAIN_TEMPLATE}
    assert render(tokenizer, [USER], profile=QWEN3).start is StartState.inside


ALTERNATE = (
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}{{ m.content }}{% endfor %}"
)
WRONG: list[tuple[Any, str, str]] = [
    ("Hi", CHATML_TEMPLATE, "messages is str"),
    ([], CHATML_TEMPLATE, "there are no messages"),
    (["Hi"], CHATML_TEMPLATE, r"messages\[0\] is str"),
    ([USER, {"role": "robot"}], CHATML_TEMPLATE, r"messages\[1\] has the role 'robot': choose one of system"),
    ([{"content": "Hi"}], CHATML_TEMPLATE, r"messages\[0\] has the role None"),
    ([{"role": "user", "content": 3}], CHATML_TEMPLATE, r"messages\[0\]: content is int"),
    ([{"role": "user", "content": ["Hi"]}], CHATML_TEMPLATE, r"messages\[0\].content\[0\] is str"),
    ([{"role": "user", "content": [{"type": "image_url"}]}], CHATML_TEMPLATE, r"content\[0\] is 'image_url'"),
    ([{"role": "assistant", "reasoning": ["x"]}], CHATML_TEMPLATE, r"messages\[0\]: its reasoning is list"),
    ([{"role": "assistant", "tool_calls": "f"}], CHATML_TEMPLATE, r"messages\[0\]: tool_calls is str"),
    ([{"role": "assistant", "tool_calls": ["f"]}], CHATML_TEMPLATE, r"tool_calls\[0\] has no function name"),
    ([{"role": "assistant", "tool_calls": [{}]}], CHATML_TEMPLATE, r"tool_calls\[0\] has no function name"),
    ([{"role": "assistant", "tool_calls": [{"name": "f", "arguments": "{"}]}], CHATML_TEMPLATE, "are not JSON"),
    ([{"role": "assistant", "tool_calls": [{"name": "f", "arguments": "[]"}]}], CHATML_TEMPLATE, "must be an object"),
    ([USER, USER, USER], ALTERNATE, r"at messages\[1\] \(user\): roles must alternate"),
    ([USER, {"role": "assistant", "tool_calls": [CALLS[0]]}, USER], "{{ 1 / 0 }}", "division by zero"),
    ([USER, ASK_AGAIN], "{{ raise_exception(messages | length | string) }}", r"messages\[1\] \(user\): 2"),
    ([USER], "{% if %}", "refuses the messages"),
    ([USER], "{{ '' }}", "renders these messages to nothing"),
]


@pytest.mark.parametrize(("messages", "template", "message"), WRONG)
def test_a_refusal_names_the_message_and_the_reason(messages: Any, template: str, message: str) -> None:
    with pytest.raises(PromptError, match=message):
        shown(messages, template)


def test_a_template_that_raises_without_a_word() -> None:
    def template(messages: list[dict[str, Any]], **more: Any) -> str:
        raise KeyError

    with pytest.raises(PromptError, match="KeyError"):
        render(TokenizerWrapper(chatml(), chat_template=template), [USER], profile=PLAIN)


def test_template_arguments_that_rendering_sets_itself() -> None:
    check_template_arguments(None)
    check_template_arguments({"enable_thinking": True})
    for wrong, message in [({"tokenize": True}, "cannot set 'tokenize'"), ([], "a dict"), ({1: 2}, "a dict")]:
        with pytest.raises(OptionError, match=message):
            check_template_arguments(wrong)


NULLS = (
    "{% for m in messages %}{% if m['content'] is none %}{% for c in m.tool_calls %}{{ c.function.name }}"
    "{{ JOIN }};{% endfor %}{% elif m.role == 'assistant' %}lost;{% endif %}{% endfor %}"
)


@pytest.mark.parametrize("join", ["'' + c.function.arguments", "c.function.arguments | tojson"])
def test_a_template_that_asks_for_null_gets_null(join: str) -> None:
    messages = [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [CALLS[0]]},
        {"role": "tool", "content": "2"},
    ]
    assert shown(messages, NULLS.replace("JOIN", join)).text == 'f{"x": 1};'


@pytest.mark.parametrize("join", ["'' + c.function.arguments", "c.function.arguments | tojson"])
def test_a_template_that_chokes_on_null_gets_empty_text(join: str) -> None:
    choking = "{% for m in messages %}{% if m.content is none %}{% endif %}{{ m.content + '' }}" + (
        "{% for c in m.tool_calls or [] %}{{ JOIN }};{% endfor %}{% endfor %}".replace("JOIN", join)
    )
    messages = [USER, {"role": "assistant", "content": None, "tool_calls": [CALLS[0]]}]
    assert shown(messages, choking, continue_final_message=False).text == 'Hi{"x": 1};'


DROPPING = PLAIN_TEMPLATE
OPENS = DROPPING.replace("assistant\\n' }}{%- endif", "assistant\\n<think>\\n' }}{%- endif")
CLOSES = DROPPING.replace("assistant\\n' }}{%- endif", "assistant\\n</think>' }}{%- endif")


def test_a_thought_is_gone_on_with_though_the_template_drops_thoughts() -> None:
    thought = [USER, {"role": "assistant", "reasoning_content": "Let me "}]
    for template in (DROPPING, OPENS):
        prompt = shown(thought, template)
        assert prompt.text.endswith("<|im_start|>assistant\n<think>\nLet me ")
        assert prompt.start is StartState.continued
    gemma_prompt = render(gemma(), thought, profile=GEMMA4, thinking=True)
    assert gemma_prompt.text.endswith("<|turn>model\n<|channel>thought\nLet me ")
    assert gemma_prompt.start is StartState.continued
    for wrong, template, profile in [
        (thought, CLOSES, QWEN3),
        (thought, DROPPING, PLAIN),
        (thought[1:], DROPPING, QWEN3),
    ]:
        with pytest.raises(PromptError, match="cannot be continued"):
            shown(wrong, template, profile=profile)
    with pytest.raises(PromptError, match="thinking=True"):
        render(gemma(), thought, profile=GEMMA4)


WORDS = """{% set ns = namespace(off=false) %}{% for m in messages %}{% if '/no_think' in m.content %}
{%- set ns.off = true %}{% endif %}<{{ m.role }}>{{ m.content }}{% endfor %}
{%- if add_generation_prompt %}<SPECIAL_11>Assistant
{% if ns.off %}<think></think>{% else %}<think>
{% endif %}{% endif %}"""


@pytest.mark.parametrize("system", [None, "Be brief."])
def test_a_family_whose_switch_is_a_word_of_the_system_message(system: str | None) -> None:
    tokenizer = byte_tokenizer(QWEN, template=WORDS)
    profile = resolve_profile("nemotron-nano-v2", model_type=None, tokenizer=tokenizer)
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": "Hi"})
    prompts = {wish: render(tokenizer, messages, profile=profile, thinking=wish).text for wish in (None, True, False)}
    assert "/think" not in prompts[None] and "/no_think" not in prompts[None]
    assert "/think" in prompts[True] and prompts[True].endswith("<think>\n")
    assert "/no_think" in prompts[False] and prompts[False].endswith("<think></think>")
    assert all((system or "") in text and text.count("<system>") <= 1 for text in prompts.values())
    assert render(tokenizer, messages, profile=profile, effort="none").text == prompts[False]


PARTS = """{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}
{%- for b in m.content %}{% if b['type'] == 'thinking' %}[THINK]{{ b['thinking'] }}[/THINK]{% else %}{{ b['text'] }}
{%- endif %}{% endfor %}{% endif %}{% endfor %}"""


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "thinking"])
def test_a_template_that_reads_thoughts_as_content_parts_gets_them_so(key: str) -> None:
    tokenizer = byte_tokenizer(QWEN, template=PARTS)
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "b", key: "a"}]
    messages.append({"role": "user", "content": "And?"})
    text = render(tokenizer, messages, profile=family("mistral")).text
    assert text == "<user>Hi<assistant>[THINK]a[/THINK]b<user>And?"


ONE_SYSTEM = """{% for m in messages %}{% if m.role == 'system' %}{% if loop.first %}<system>{{ m.content | trim }}
{%- else %}OTHERS{% endif %}{% else %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}"""


@pytest.mark.parametrize("others", ["", "{{ raise_exception('only the first may be a system message') }}"])
@pytest.mark.parametrize("places", [(0, 0), (0, 1), (1,), (0, 0, 2)], ids=str)
def test_system_messages_are_one_where_the_template_takes_one(others: str, places: tuple[int, ...]) -> None:
    tokenizer = byte_tokenizer(QWEN, template=ONE_SYSTEM.replace("OTHERS", others))
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}, USER]
    for count, place in enumerate(places):
        messages.insert(place + count, {"role": "developer" if count else "system", "content": f" rule {count}"})
    given = copy.deepcopy(messages)
    text = render(tokenizer, messages, profile=PLAIN).text
    rules = "\n\n".join(f" rule {count}" for count in range(len(places))).strip()
    assert text == f"<system>{rules}<user>Hi<assistant>Yes?<user>Hi"
    assert messages == given


def test_system_messages_stay_where_the_template_takes_them() -> None:
    messages = [{"role": "system", "content": "a"}, {"role": "system", "content": "b"}, USER]
    text = render(chatml(), messages, profile=QWEN3).text
    assert text.startswith("<|im_start|>system\na<|im_end|>\n<|im_start|>system\nb<|im_end|>\n<|im_start|>user")


EITHER = """{% for m in messages %}{% if m.tool_calls and m.content and m.thinking %}
{{- raise_exception('not both') }}{% endif %}<{{ m.role }}>{{ m.thinking or '' }}|{{ m.content or '' }}{% endfor %}"""


def test_a_template_that_takes_a_thought_or_a_text_beside_a_call_gets_both_in_one() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": {}}}
    messages: list[dict[str, Any]] = [USER, {"role": "assistant", "content": "Look.", "reasoning": "plan"}]
    messages[1]["tool_calls"] = [call]
    messages.append({"role": "tool", "content": "1", "tool_call_id": "c"})
    text = render(byte_tokenizer(QWEN, template=EITHER), messages, profile=family("gpt-oss")).text
    assert text == "<user>|Hi<assistant>plan\n\nLook.|<tool>|1"


@pytest.mark.parametrize("joint", ["", "\n", "\n\n"])
@pytest.mark.parametrize("space", ["", "\n", "\n\n", " "])
def test_the_white_space_before_a_call_is_not_written_twice(joint: str, space: str) -> None:
    calling = "{% if m.tool_calls %}{{ 'JOINT' }}<call>{% endif %}"
    template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}" + calling + "{% endfor %}"
    tokenizer = byte_tokenizer(QWEN, template=template.replace("JOINT", joint.replace("\n", "\\n")))
    calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": {}}}]
    messages: list[dict[str, Any]] = [USER, {"role": "assistant", "content": f"Look:{space}"}, USER]
    messages[1]["tool_calls"] = calls
    text = render(tokenizer, messages, profile=QWEN3).text
    kept = space.removesuffix(joint) if joint else space
    assert text == f"<user>Hi<assistant>Look:{kept}{joint}<call><user>Hi"
