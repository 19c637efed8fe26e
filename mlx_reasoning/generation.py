"""One turn: a prompt in, ordered events out. The loop owns iteration, the decoder the response protocol.

Everything that can be wrong with a call is said when it is made, before the model does anything.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, Unpack

from .decode.decoder import make_token_stream_decoder
from .decode.prompt_state import start_state
from .decode.tables import StopScope
from .engine.cache import PromptCache, beginning, check_kv_bits, check_speculative, make_cache
from .engine.loading import LoadedModel, check_draft
from .engine.loop import TokenLoop
from .engine.options import LoopKeywords, LoopOptions
from .engine.sampling import SAMPLING_NAMES, SamplingOptions, check_count, check_ids
from .engine.thought import ThoughtControl, ThoughtKeywords, ThoughtLimits
from .errors import ContextLengthError, OptionError, PromptError, ReasoningControlError
from .events import Completion, GenerationEvent, gather
from .messages import Message, Tool
from .prompt import check_template_arguments, encode, render
from .protocols.config import ModelProfile, StartState
from .turn import Turn

Prompt: TypeAlias = "str | Sequence[int] | Sequence[Message] | Sequence[Mapping[str, Any]]"


class GenerateKeywords(LoopKeywords, ThoughtKeywords, total=False):
    """The keywords of `stream_generate` and `generate`; mlx-lm's names where mlx-lm has one.

    max_tokens: None is what the context has left; the end-of-turn token counts.
    tools: None takes every call of the family's format, a list only its own; with [] tool syntax is text.
    thinking, effort: None leaves them to the model's template.
    max_reasoning_tokens: a thought is closed once so many tokens were sampled inside, with the family's own words.
    min_answer_tokens: of `max_tokens`, kept free for the answer.
    eos_in_reasoning: where the model ends its turn inside a thought, "stop", or "close" it and answer.
    repetition_guard: closes a thought that goes in circles.
    stop_strings, stop_scope: "all" looks at every text, "response" at answers only.
    template_arguments: for the chat template, as they are.
    start: where the first token stands, instead of what the prompt says.
    prompt_cache: of an earlier turn; the prompt is the whole one, and must begin with what the cache holds.
    max_kv_size: a window for the cache; the context is not enforced then.
    kv_bits, kv_group_size, quantized_kv_start: quantise the cache once it holds so many tokens (0; mlx-lm: 5000).
    draft_model, num_draft_tokens: speculative decoding.
    prefill_step_size, progress: the prompt is fed in chunks; called with tokens done and their total.
    cancel: an event or a callable; looked at between tokens, and between chunks of the prompt.
    temperature … seed: see `SamplingOptions`.
    """

    tools: list[Tool] | None
    thinking: bool | None
    effort: str | None
    stop_strings: Sequence[str]
    stop_scope: StopScope
    template_arguments: Mapping[str, Any] | None
    start: StartState | bool | None
    prompt_cache: PromptCache | None
    draft_model: LoadedModel | None


_LOOP_COUNTS = {"max_kv_size": 8, "quantized_kv_start": 0, "num_draft_tokens": 1, "prefill_step_size": 1}


def stream_generate(
    model: LoadedModel, prompt: Prompt, **keywords: Unpack[GenerateKeywords]
) -> Generator[GenerationEvent, None, None]:
    """Generates one turn as events; the last one is `Generation.info`. Close the iterator to stop early.

    Args:
        prompt: text (taken as it is), token ids, or messages (rendered by the model's template).
        keywords: see `GenerateKeywords`.

    Raises:
        PromptError: an empty prompt, or messages that the template refuses.
        ContextLengthError: the prompt leaves no room in the context.
        OptionError: an unknown keyword, or a value out of range.
        ReasoningControlError: the family cannot do what is asked of its thinking.
        ModelError: later, while iterating: the model failed.
    """
    return prepare(model, prompt, dict(keywords)).events()


def generate(model: LoadedModel, prompt: Prompt, **keywords: Unpack[GenerateKeywords]) -> Completion:
    """Generates one turn and gathers it; see `stream_generate`."""
    return gather(stream_generate(model, prompt, **keywords))


@dataclass(frozen=True, slots=True)
class _Tokens:
    """A prompt as ids, the profile with its markers as the prompt spells them, and what is known about its end."""

    ids: list[int]
    profile: ModelProfile
    start: StartState
    notes: tuple[str, ...] = ()


def prepare(
    model: LoadedModel,
    prompt: Prompt,
    given: dict[str, Any],
    *,
    controlled: bool = False,
    replay: Sequence[int] = (),
    cache: Callable[[], PromptCache] | None = None,
) -> Turn:
    """A turn whose every option is checked; see `stream_generate`.

    Args:
        controlled: the turn can be asked to close its thoughts.
        replay: ids at the end of the prompt that the model wrote earlier in this turn: the decoder goes on from them.
        cache: gives the cache to use, and is not asked before all else is checked.
    """
    check_names(given)
    sampling = _sampling(model, given)
    tokens = _tokens(model, prompt, given)
    limits = ThoughtLimits.of(given, tokens.profile, model.tokenizer)
    options = _loop_options(model, given, sampling, len(tokens.ids))
    start, stops = given.get("start"), given.get("stop_strings")
    decoder = make_token_stream_decoder(
        model.tokenizer,
        tokens.profile,
        start=tokens.start if start is None else StartState.of(start),
        tools=given.get("tools"),
        stop_strings=() if stops is None else stops,
        stop_scope=given.get("stop_scope", "all"),
        tables=model.tables,
    )
    replayed = tuple(event for token in replay for event in decoder.push(token))
    thought = (decoder.reasoning_tokens or 0) if replay else 0
    draft: LoadedModel | None = given.get("draft_model")
    if draft is not None and limits.active:
        raise OptionError("a thought cannot be limited while a draft model runs: leave draft_model out")
    used = _cache(model, tokens.ids, given if cache is None else {**given, "prompt_cache": cache()}, options)
    cached = len(used.ids)
    loop = TokenLoop(model.model, tokens.ids[cached:], used, options, draft_model=draft and draft.model)
    control = None
    if limits.active or (controlled and limits.closer and draft is None):
        control = ThoughtControl(loop, decoder, limits, options.stop_token_ids, options.max_tokens)
    return Turn(
        loop, decoder, control, len(tokens.ids), cached, bool(stops), tokens.notes, replayed, thought, list(replay)
    )


def check_names(given: Mapping[str, Any]) -> None:
    known = sorted(GenerateKeywords.__optional_keys__)
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
            advice = f"did you mean {' or '.join(near)}?" if near else f"the options are {', '.join(known)}"
            raise OptionError(f"unknown option {name!r}: {advice}")
    if given.get("thinking") not in (None, True, False):
        raise OptionError(f"thinking is {given['thinking']!r}: it must be True, False or None")
    tools = given.get("tools")
    if tools is not None and not (isinstance(tools, list) and all(isinstance(tool, Mapping) for tool in tools)):
        raise OptionError("tools must be a list of dicts in OpenAI's form, or None")
    check_template_arguments(given.get("template_arguments"))


def _sampling(model: LoadedModel, given: Mapping[str, Any]) -> SamplingOptions:
    wanted = {name: given[name] for name in SAMPLING_NAMES if name in given}
    if wanted.get("xtc_probability") and "xtc_special_tokens" not in wanted:
        newline = model.tokenizer.encode("\n", add_special_tokens=False)
        wanted["xtc_special_tokens"] = (*newline, *model.profile.stop_token_ids)
    options = SamplingOptions.of(wanted, model.generation_config)
    check_ids("logit_bias", options.logit_bias or {}, model.vocab_size)
    return options


def _tokens(model: LoadedModel, prompt: Any, given: Mapping[str, Any]) -> _Tokens:
    if hasattr(prompt, "tolist"):
        prompt = prompt.tolist()
    kind, profile = _kind(prompt), model.profile
    if kind == "messages":
        rendered = render(
            model.tokenizer,
            prompt,
            profile=profile,
            tools=given.get("tools"),
            thinking=given.get("thinking"),
            effort=given.get("effort"),
            template_arguments=given.get("template_arguments"),
        )
        return _Tokens(rendered.ids, profile.read(rendered.text), rendered.start, rendered.notes)
    for name in ("thinking", "effort", "template_arguments"):
        if given.get(name) is not None:
            raise ReasoningControlError(f"{name} goes through the chat template: give messages, not a finished prompt")
    if kind == "text":
        return _Tokens(encode(model.tokenizer, prompt), profile.read(prompt), start_state(prompt, profile))
    check_ids("the prompt", prompt, model.vocab_size)
    start = start_state(prompt, profile, tokenizer=model.tokenizer)
    if profile.suffix is not None:
        profile = profile.read(model.tokenizer.decode(list(prompt), skip_special_tokens=False))
    return _Tokens(list(prompt), profile, start)


def _kind(prompt: Any) -> Literal["text", "ids", "messages"]:
    if isinstance(prompt, str):
        if not prompt:
            raise PromptError("the prompt is empty: give it some text")
        return "text"
    if not isinstance(prompt, Sequence) or isinstance(prompt, bytes):
        raise PromptError(f"the prompt is {type(prompt).__name__}: give text, token ids or messages")
    if not prompt:
        raise PromptError("the prompt is empty: give at least one message, or one token id")
    if all(isinstance(item, int) and not isinstance(item, bool) for item in prompt):
        return "ids"
    return "messages"


def _loop_options(
    model: LoadedModel, given: Mapping[str, Any], sampling: SamplingOptions, prompt_tokens: int
) -> LoopOptions:
    for name, low in _LOOP_COUNTS.items():
        if given.get(name) is not None:
            check_count(name, given[name], low)
    names = ("max_kv_size", "kv_bits", "kv_group_size", "progress", "cancel", *_LOOP_COUNTS)
    chosen = {name: given[name] for name in names if given.get(name) is not None}
    return LoopOptions(
        max_tokens=_room(model, given, prompt_tokens),
        stop_token_ids=frozenset(model.profile.stop_token_ids),
        sampling=sampling,
        vocab_size=model.vocab_size,
        **chosen,
    )


def _room(model: LoadedModel, given: Mapping[str, Any], prompt_tokens: int) -> int | None:
    """How many tokens may be generated; None for no limit."""
    wanted: int | None = given.get("max_tokens")
    if wanted is not None:
        check_count("max_tokens", wanted, 1)
    if prompt_tokens == 0:
        raise PromptError("the prompt has no tokens: give it some text")
    if model.context_length is None or given.get("max_kv_size") is not None:
        return wanted
    room = model.context_length - prompt_tokens
    if room < 1:
        raise ContextLengthError(
            f"the prompt has {prompt_tokens} tokens, and the model's context is {model.context_length}: shorten it"
        )
    return room if wanted is None else min(wanted, room)


def _cache(model: LoadedModel, ids: list[int], given: Mapping[str, Any], options: LoopOptions) -> PromptCache:
    """The cache to use, checked against the prompt and against what is asked of it."""
    draft: LoadedModel | None = given.get("draft_model")
    if draft is not None:
        check_draft(model, draft)
    cache: PromptCache | None = given.get("prompt_cache")
    if cache is None and draft is None and options.max_kv_size is None and options.kv_bits is None:
        cache = beginning(model.prompt_cache, ids, lambda: make_cache(model.model))
    elif cache is None:
        cache = make_cache(model.model, max_kv_size=options.max_kv_size, draft_model=draft and draft.model)
    elif not isinstance(cache, PromptCache):
        raise OptionError("prompt_cache must be a PromptCache: make one with mlx_reasoning.engine.cache.make_cache")
    elif cache.ids != ids[: len(cache.ids)] or len(cache.ids) == len(ids):
        raise OptionError("the prompt does not go on from what prompt_cache holds: give the whole one, or a new cache")
    if options.kv_bits is not None:
        check_kv_bits(cache.entries, options.kv_bits, options.kv_group_size, model.head_dim)
    if draft is not None:
        if cache.draft is None:
            cache.draft = make_cache(draft.model).entries
        check_speculative(cache.entries, len(model.model.layers), "model")
        check_speculative(cache.draft, len(draft.model.layers), "draft model")
    return cache
