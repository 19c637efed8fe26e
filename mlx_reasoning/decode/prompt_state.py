"""Where the first generated character stands, read from the end of the prompt: one rule, for text and for ids.

The prompt's last assistant turn goes through the splitter itself, so that an opener counts just where it would have
counted had the model written it. Earlier turns, users' texts and tool results are never looked at.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ..errors import OptionError
from ..protocols.config import FrameProtocol, ModelProfile, ReasoningConfig, StartState
from ..protocols.families import as_profile
from .frames import FramedEmitter, FrameMarks
from .reasoning import ReasoningEventEmitter

ReasoningProtocol: TypeAlias = "ModelProfile | ReasoningConfig | str | None"


def start_state(tail: str | Sequence[int], protocol: ReasoningProtocol, *, tokenizer: Any = None) -> StartState:
    """The state after a prompt, or after the end of one.

    Args:
        tail: the prompt as text or ids; all of it, or what stands from the last assistant header on.
        protocol: a family's name, a profile, or the markers alone.
        tokenizer: needed for ids.

    Raises:
        OptionError: ids without a tokenizer, or something that is no protocol.
        UnknownFamilyError: there is no such family.
    """
    profile = as_profile(protocol)
    if isinstance(tail, str):
        config, header = _bounds(profile.read(tail))
        return StartState.outside if config is None else _from_text(tail, config, header)
    if tokenizer is None:
        raise OptionError("to read ids, pass tokenizer=")
    if profile.suffix is not None:
        profile = profile.read(tokenizer.decode(list(tail), skip_special_tokens=False))
    config, header = _bounds(profile)
    return StartState.outside if config is None else _from_ids(list(tail), config, header, tokenizer)


def prompt_ends_inside_reasoning(
    tail: str | Sequence[int], protocol: ReasoningProtocol, *, tokenizer: Any = None
) -> bool:
    """Whether the first generated character belongs to a thought; see `start_state`."""
    return start_state(tail, protocol, tokenizer=tokenizer) is not StartState.outside


def _bounds(profile: ModelProfile) -> tuple[ReasoningConfig | FrameProtocol | None, str | None]:
    return profile.frames or profile.reasoning, profile.turn_header


def _from_text(text: str, config: ReasoningConfig | FrameProtocol, header: str | None) -> StartState:
    if not header or header not in text:
        return _after(config, text) if isinstance(config, FrameProtocol) else _last_visible(text, config)
    tail = text.rpartition(header)[2]
    if isinstance(config, FrameProtocol):
        return _after(config, tail)
    for marker in config.end_of_turn:
        if marker in tail:  # that turn is over: what follows stands outside it
            return _last_visible(tail.rpartition(marker)[2], config) if config.start_delimiter else StartState.outside
    if "<" in header and ">" not in header:  # the header's own tag ends behind what the row knows of it
        tail = tail.partition(">")[2]
    return _after(config, tail)


def _last_visible(text: str, config: ReasoningConfig) -> StartState:
    """Without a header to bound the turn: inside where an opener is the last visible thing."""
    openers = "|".join(map(re.escape, config.starts)) or "(?!)"
    labels = "|".join(map(re.escape, config.channel.reasoning_labels)) if config.channel else ""
    pattern = rf"(?:{openers})(?:{labels})\s*\Z" if labels else rf"(?:{openers})\s*\Z"
    if config.start_delimiter is None:
        return StartState.outside if config.end_delimiter in text else StartState.inside
    return StartState.inside if re.search(pattern, text) else StartState.outside


def _from_ids(
    ids: list[int], config: ReasoningConfig | FrameProtocol, header: str | None, tokenizer: Any
) -> StartState:
    """The same rule on what the ids say: a prompt was text before, so its ids know no more than it did."""
    tail = _after_header(ids, header, tokenizer)
    if tail is None:
        return _from_text(tokenizer.decode(ids, skip_special_tokens=False), config, header)
    return _after(config, tokenizer.decode(tail, skip_special_tokens=False))


def _after_header(ids: list[int], header: str | None, tokenizer: Any) -> list[int] | None:
    """The ids behind the last assistant header, if the header is there as the tokenizer spells it."""
    if not header:
        return None
    wanted = list(tokenizer.encode(header, add_special_tokens=False))
    for at in range(len(ids) - len(wanted), -1, -1):
        if ids[at : at + len(wanted)] == wanted:
            return ids[at + len(wanted) :]
    return None


def _after(config: ReasoningConfig | FrameProtocol, tail: str) -> StartState:
    emitter: FramedEmitter | ReasoningEventEmitter
    if isinstance(config, FrameProtocol):
        emitter = FramedEmitter(FrameMarks(config, None))
    else:
        start = StartState.inside if config.start_delimiter is None else StartState.outside
        emitter = ReasoningEventEmitter(replace(config, detection="text"), start)
    emitter.push(tail)
    if not emitter.inside_reasoning:
        return StartState.outside
    return StartState.continued if emitter.spoken else StartState.inside
