"""What a hostile reader found: each kind once, so that it stays mended."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from mlx_reasoning import OptionError, ReasoningConfig, StartState, family, make_token_stream_decoder, split_reasoning
from mlx_reasoning.decode import tables as tables_module
from mlx_reasoning.decode.calls import CAP
from mlx_reasoning.decode.tables import DecoderTables
from mlx_reasoning.decode.tool_calls import misfit
from mlx_reasoning.events import event_to_dict

from ..cuts import every_cut
from ..vocab import QWEN, byte_tokenizer

SCHEMA = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]


def typed(kind: str) -> list[dict[str, Any]]:
    parameters = {"type": "object", "properties": {"x": {"type": kind}}}
    return [{"type": "function", "function": {"name": "f", "parameters": parameters}}]


def qwen_xml(value: str) -> str:
    return f"<tool_call>\n<function=f>\n<parameter=x>\n{value}\n</parameter>\n</function>\n</tool_call>"


NEVER_RAISES = [
    ("qwen3", '<tool_call>{"name":"f","arguments":"' + "[" * 5000 + "]" * 5000 + '"}</tool_call>', None),
    ("qwen3", '<tool_call>{"name":"f","arguments":{"x":' + "[" * 5000 + "]" * 5000 + "}}</tool_call>", None),
    *[("qwen3.5", qwen_xml(value), typed(kind)) for kind in ("array", "object") for value in ("{1,2}", "b'x'", "1j", "...")],
    ("lfm2.5", "<|tool_call_start|>[f(x={1,2})]<|tool_call_end|>", None),
    ("olmo-3", '<function_calls>f(**{"a":1})</function_calls>', None),
    ("qwen3", '<tool_call>{"name":"f","arguments":{"x":NaN}}</tool_call>', None),
    ("qwen3", '<tool_call>{"name":"f","arguments":{"x":"\\ud800"}}</tool_call>', None),
    ("qwen3", '<tool_call>{"name":"","arguments":{}}</tool_call>', None),
    ("hunyuan-a13b", "<tool_calls>[1]</tool_calls>", None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "tools"), NEVER_RAISES)
def test_what_is_no_json_is_rejected_and_nothing_raises(name: str, text: str, tools: Any) -> None:
    split = split_reasoning(text, name, tools=tools)
    assert not split.tool_calls and len(split.rejected) == 1
    assert len(split.rejected[0].detail) <= 200
    assert [event_to_dict(event)["type"] for event in split.events] == ["rejected_tool_call"]


DSML = "<｜DSML｜"
KIMI = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"


def kimi(call: str) -> str:
    return f"<|tool_call_begin|>{call}<|tool_call_end|>"


NOTHING_RUNS = [
    ("kimi-k2.6", KIMI[0] + "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}"),
    ("glm-4.5", "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x</tool_call>"),
    ("glm-4.5", "<tool_call>f\n<arg_key>a</arg_key>\n</tool_call>"),
    ("glm-4.5", "<tool_call>f\nhello world</tool_call>"),
    ("lfm2.5", "<|tool_call_start|>[f(1,2)]<|tool_call_end|>"),
    ("gemma4", '<|tool_call>call:f{x:1} and then I would say hello'),
    ("gemma4", "<|tool_call>call:f{x:1}call:g{y:"),
    ("minimax-m2", '<minimax:tool_call>\n<invoke name="f">\n<parameter name="x">a </invoke> b</parameter>\n</invoke>\n</minimax:tool_call>'),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text"), NOTHING_RUNS)
def test_half_a_call_and_a_call_that_was_misread_never_run(name: str, text: str) -> None:
    split = split_reasoning(text, name)
    assert not split.tool_calls
    assert "".join(rejection.text for rejection in split.rejected) in text and split.rejected


def names(text: str, family_name: str) -> tuple[list[str], int]:
    split = split_reasoning(text, family_name)
    return [call.name for call in split.tool_calls], len(split.rejected)


def test_each_call_of_a_section_is_judged_by_itself() -> None:
    good, bad = (f"functions.{n}:0<|tool_call_argument_begin|>{a}" for n, a in (("f", "{}"), ("g", "{x")))
    assert names(KIMI[0] + kimi(good) + kimi(bad) + KIMI[1], "kimi-k2.6") == (["f"], 1)
    assert names(KIMI[0] + kimi(bad) + kimi(good) + KIMI[1], "kimi-k2.6") == (["f"], 1)
    assert names(KIMI[0] + kimi(good) + "<|tool_call_begin|>functions.g:1", "kimi-k2.6") == (["f"], 1)
    two = qwen_xml("1").replace("</tool_call>", "<function=g>\n</function>\n</tool_call>")
    assert names(two, "qwen3.5") == (["f", "g"], 0)
    assert names("<|tool_call_start|>[f(x=1), g(y='a, b')]<|tool_call_end|>", "lfm2.5") == (["f", "g"], 0)
    assert names('[TOOL_CALLS]f[ARGS]{"x": 1}[TOOL_CALLS]g[ARGS]{"x"', "mistral") == (["f"], 1)
    assert names('[TOOL_CALLS]f[ARGS]{"x": 1}\nok done', "mistral") == ([], 1)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("hy3", "<tool_calls>\n<tool_call>f<tool_sep>\n<arg_key>x</arg_key>\n<arg_value>a</tool_call>b</arg_value>\n"
                "</tool_call>\n</tool_calls>", "a</tool_call>b"),
        ("k2-horizon", "<ifm|tool_calls><ifm|tool_call>f<ifm|arg_key>x</ifm|arg_key><ifm|arg_value>5\" pipe</ifm|tool_call>"
                       "</ifm|arg_value></ifm|tool_call></ifm|tool_calls>", '5" pipe</ifm|tool_call>'),
        ("deepseek-v3.2", f'{DSML}function_calls>\n{DSML}invoke name="f">\n{DSML}parameter name="x" string="true">a'
                          "</｜DSML｜invoke></｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>", "a</｜DSML｜invoke>"),
        ("deepseek-v3.1", '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{"x": "<｜tool▁call▁end｜>"}'
                          "<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "<｜tool▁call▁end｜>"),
        ("qwen3.5", qwen_xml("</function> and </tool_call>"), "</function> and </tool_call>"),
    ],
)  # fmt: skip
def test_a_closer_inside_a_value_is_payload(name: str, text: str, value: str) -> None:
    (call,) = split_reasoning(text, name).tool_calls
    assert (call.name, call.arguments) == ("f", {"x": value})


@pytest.mark.parametrize("thought", [False, True])
def test_an_end_of_turn_string_ends_a_turn_inside_an_open_call(thought: bool) -> None:
    text = '<tool_call>{"name":"f","arguments":{}}<|im_end|>'
    for chunks in ([text], list(text)):
        split = split_reasoning(chunks, "qwen3", primed=thought)
        assert [call.name for call in split.tool_calls] == ["f"] and not split.rejected


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("deepseek-r1", "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{}"),
        ("hy3", "<tool_call>f<tool_sep>"),
        ("k2-horizon", "<ifm|tool_call>f"),
        ("plamo3", "<|plamo:begin_tool_name:plamo|>f<|plamo:end_tool_name:plamo|>"),
        ("gemma4", "call:f{"),
        ("deepseek-v3.2", f'{DSML}invoke name="f">'),
        ("minimax-m3", ']<]minimax[>[<invoke name="f">'),
        ("glm-4.5", "f\n<arg_key>"),
    ],
)
def test_a_section_of_nonsense_costs_no_more_than_its_length(name: str, unit: str) -> None:
    """No timed assertion: a cubic or quadratic parser would not come back from this within the life of a test run."""
    calls = family(name).tool_calls
    assert calls is not None
    split = split_reasoning(calls.opener + unit * (200_000 // len(unit)) + calls.closer, name)
    assert not split.tool_calls


def test_many_candidates_in_a_thought_stay_linear() -> None:
    split = split_reasoning("a" + "<tool_call>{}</tool_call>" * 20_000 + "b", "qwen3", primed=True)
    assert split.reasoning.endswith("b") and not split.tool_calls


LONG = CAP + CAP // 2
OVERFULL = [
    ("qwen3", True, "a" + " " * LONG + "</think>b"),
    ("qwen3", True, "a</think>" + "\n" * LONG + "b"),
    ("granite-3.3", False, "<think>a</think><response>b" + " " * LONG + "</response>c"),
    ("qwen3", True, "a\n<tool_call>{}</tool_call>" + "\n" * LONG),
    ("qwen3", True, "a\n<tool_call>{}</tool_call></think>" + "\n" * LONG),
    ("qwen3", False, '<tool_call>{"x": "' + "y" * LONG + "\n<think>t</think>"),
]


@pytest.mark.parametrize(("name", "primed", "text"), OVERFULL)
def test_past_the_cap_the_cut_makes_no_difference_either(name: str, primed: bool, text: str) -> None:
    whole = split_reasoning(text, name, primed=primed)
    for size in (4096, 999_983):
        chunks = [text[at : at + size] for at in range(0, len(text), size)]
        pieces = split_reasoning(chunks, name, primed=primed)
        assert (pieces.reasoning, pieces.content) == (whole.reasoning, whole.content)


@pytest.mark.parametrize(
    ("name", "text", "content"),
    [
        ("mistral", "Hello.[THINK]t[/THINK] [THINK]u[/THINK]Bye", "Hello. Bye"),
        ("mistral", "Hello.[THINK]t[/THINK][THINK]u[/THINK] Bye", "Hello. Bye"),
        ("gemma4", "Hello<|channel>content\nfoo<channel|> bar", "Hellofoo bar"),
    ],
)
def test_a_line_goes_on_behind_what_interrupted_it(name: str, text: str, content: str) -> None:
    for chunks in ([text], list(text)):
        assert split_reasoning(chunks, name).content == content


def test_a_stop_string_under_way_does_not_reorder() -> None:
    tokenizer = byte_tokenizer(QWEN)
    ids = tokenizer.encode("A E<think>t</think>X", add_special_tokens=False)
    decoder = make_token_stream_decoder(tokenizer, family("qwen3"), stop_strings=["END"], stop_scope="response")
    events = [event for token in ids for event in decoder.push(token)] + list(decoder.finish())
    assert "".join(event.text for event in events) == "A EtX"  # type: ignore[union-attr]


def test_tokens_that_wait_are_counted_where_they_end_up() -> None:
    def count(
        text: str, name: str, *, start: bool = False, reason: str = "stop", added: list[str] | None = None
    ) -> Any:
        tokenizer = byte_tokenizer(added or [], special=[])
        decoder = make_token_stream_decoder(tokenizer, family(name), start=start)
        for token in tokenizer.encode(text, add_special_tokens=False):
            decoder.push(token)
        decoder.finish(reason)
        return decoder.reasoning_tokens

    assert count("[" * 50 + "[THINK]a[/THINK]b", "mistral") == len("[THINK]a[/THINK]")
    candidate = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    assert count("<" * 20 + candidate, "qwen3", start=True) == 20
    assert count("ab" + candidate, "qwen3", start=True, reason="length") == 2 + len(candidate)
    assert count("<|channel>content\nHello<channel|>", "gemma4", added=["<|channel>", "<channel|>"]) == 0


def test_counts_in_mid_stream_are_the_same_with_and_without_a_memory() -> None:
    tokenizer = byte_tokenizer([], special=[])
    ids = tokenizer.encode("a<b <c </d e</think>f <g", add_special_tokens=False)
    shared = DecoderTables(tokenizer)
    seen = []
    for tables in (shared, shared, DecoderTables(tokenizer)):
        decoder = make_token_stream_decoder(tokenizer, family("qwen3"), start=True, tables=tables)
        row = []
        for token in ids:
            decoder.push(token)
            row.append((decoder.reasoning_tokens, decoder.inside_reasoning))
        seen.append(row)
    assert seen[0] == seen[1] == seen[2]


def test_streams_of_many_threads_share_their_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_module, "_MOST_MOVES", 20)
    tokenizer = byte_tokenizer(QWEN)
    tables, profile = DecoderTables(tokenizer), family("qwen3")
    ids = tokenizer.encode("<think>\nplan <a> b\n</think>\n\nfor <x> in y:\n  z", add_special_tokens=False)
    failed: list[BaseException] = []

    def stream() -> None:
        try:
            for _ in range(60):
                decoder = make_token_stream_decoder(tokenizer, profile, tables=tables)
                events = [event for token in ids for event in decoder.push(token)] + list(decoder.finish())
                assert "".join(event.text for event in events) == "plan <a> bfor <x> in y:\n  z"  # type: ignore[union-attr]
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=stream) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


WRONG = [
    lambda: split_reasoning("x", None),  # type: ignore[arg-type]
    lambda: split_reasoning("x", 3),  # type: ignore[arg-type]
    lambda: split_reasoning("x", "nope"),
    lambda: split_reasoning([b"x"], "qwen3"),  # type: ignore[list-item]
    lambda: split_reasoning("x", "qwen3", tools="f"),  # type: ignore[arg-type]
    lambda: split_reasoning("x", "qwen3", tools=[{}]),
    lambda: split_reasoning("x", "qwen3", primed="outside"),  # type: ignore[arg-type]
    lambda: StartState.of("outside"),  # type: ignore[arg-type]
    lambda: ReasoningConfig("x", "x"),
    lambda: ReasoningConfig("##", "###"),
    lambda: ReasoningConfig("", "</a>"),
    lambda: ReasoningConfig(None, ""),
    lambda: ReasoningConfig("<a>", b"</a>"),  # type: ignore[arg-type]
    lambda: ReasoningConfig("<a>", "</a>", other_ends="</b>"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_call_of_ours_is_one_clear_error(wrong: Any) -> None:
    with pytest.raises(OptionError) as caught:
        wrong()
    assert len(str(caught.value)) > 10


def test_a_users_tag_behind_the_last_turn_does_not_count() -> None:
    from mlx_reasoning import start_state

    prompt = "<|im_start|>assistant\nhi<|im_end|>\n<|im_start|>user\nwhat does\n<think> do?"
    assert start_state(prompt, "qwen3") is StartState.outside


CITED = [
    ("Seen <co>twelve</co: 0:[1]> times", "Seen twelve times"),
    ("<co>a</co: 0:[1,2],1:[0]><co>b</co: 3:[4]>", "ab"),
    ("</co: never\nclosed>", "</co: never\nclosed>"),
    ("a </co:" + "x" * 80 + ">", "a </co:" + "x" * 80 + ">"),
    ("ends </co: 0", "ends </co: 0"),
]


@pytest.mark.parametrize(("written", "shown"), CITED)
def test_the_marks_of_a_citation_are_dropped_and_its_text_stays(written: str, shown: str) -> None:
    text = f"<|START_THINKING|>{written}!<|END_THINKING|><|START_RESPONSE|>{written}<|END_RESPONSE|>"
    for chunks in every_cut(text):
        split = split_reasoning(chunks, "cohere-command-a")
        assert (split.reasoning, split.content) == (f"{shown}!", shown)


NESTED = {
    "type": "object",
    "properties": {
        "place": {"type": "object", "properties": {"zip": {"type": "string"}}, "required": ["zip"]},
        "days": {"type": "array", "items": {"type": "integer"}},
        "unit": {"anyOf": [{"enum": ["C", "F"]}, {"type": "null"}]},
    },
}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"place": {"zip": "1"}, "days": [1, 2], "unit": None}, ""),
        ({"place": {"zip": 1}}, "the argument 'place.zip' is of the wrong type: 1"),
        ({"place": {}}, "the argument 'place.zip' is missing"),
        ({"days": [1, "2"]}, "the argument 'days[1]' is of the wrong type: '2'"),
        ({"unit": "K"}, "the argument 'unit' is none of ['C', 'F']"),
        ({"more": {"x": [object]}}, ""),
    ],
)
def test_arguments_are_checked_as_deep_as_their_schema_goes(arguments: dict[str, Any], problem: str) -> None:
    assert misfit(arguments, NESTED) == problem


TEXTS = typed("string")
BARE = [
    ("hy3", "<tool_calls>\n<tool_call>f<tool_sep>\n<arg_key>x</arg_key>\n<arg_value>{}</arg_value>\n</tool_call>\n</tool_calls>"),
    ("k2-horizon", "<ifm|tool_calls><ifm|tool_call>f<ifm|arg_key>x</ifm|arg_key><ifm|arg_value>{}</ifm|arg_value></ifm|tool_call></ifm|tool_calls>"),
    ("minimax-m3", ']<]minimax[>[<tool_call>]<]minimax[>[<invoke name="f">]<]minimax[>[<x>{}]<]minimax[>[</x>]<]minimax[>[</invoke>]<]minimax[>[</tool_call>'),
    ("qwen3.5", "<tool_call>\n<function=f>\n<parameter=x>\n{}\n</parameter>\n</function>\n</tool_call>"),
    ("glm-4.7", "<tool_call>f<arg_key>x</arg_key><arg_value>{}</arg_value></tool_call>"),
    ("deepseek-v4", '<｜DSML｜tool_calls><｜DSML｜invoke name="f"><｜DSML｜parameter name="x" string="true">{}</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜tool_calls>'),
    ("minicpm5", '<function name="f"><param name="x">{}</param></function>'),
    ("seed-oss", "<seed:tool_call>\n<function=f>\n<parameter=x>{}</parameter>\n</function>\n</seed:tool_call>"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "shape"), BARE)
@pytest.mark.parametrize("value", ["12", "true", "3.0", "[1]", "plain"])
def test_a_bare_value_is_text_where_the_schema_says_so(name: str, shape: str, value: str) -> None:
    split = split_reasoning(shape.replace("{}", value), name, tools=TEXTS)
    assert [call.arguments for call in split.tool_calls] == [{"x": value}], split.rejected


M3 = "]<]minimax[>["


def test_minimax_m3_nests_fields_and_items() -> None:
    inner = (
        f"{M3}<place>{M3}<zip>1{M3}</zip>{M3}<tags>{M3}<item>a{M3}</item>{M3}<item>b{M3}</item>{M3}</tags>{M3}</place>"
    )
    text = f'{M3}<tool_call>{M3}<invoke name="f">{inner}{M3}<n>2{M3}</n>{M3}</invoke>{M3}</tool_call>'
    for chunks in every_cut(text):
        calls = split_reasoning(chunks, "minimax-m3").tool_calls
        assert [call.arguments for call in calls] == [{"place": {"zip": 1, "tags": ["a", "b"]}, "n": 2}]
