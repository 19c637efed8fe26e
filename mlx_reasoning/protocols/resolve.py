"""Which family a checkpoint belongs to: an explicit word, its model type, or what its template and vocabulary show.

The same ids and the same model type ship with opposite defaults, and some checkpoints carry markers that they never
write. So the name of a repository decides nothing, a template wins over a vocabulary, and what the switch does is read
by rendering the template with it. Rendering is the sandboxed one of transformers; nothing here touches a network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from .checkpoint import Checkpoint, compared_with
from .config import EFFORTS, ModelProfile, PromptStrategy, ReasoningConfig
from .families import FAMILIES, family
from .probe import end_of_turn, history, probe

Wanted: TypeAlias = "Literal['auto'] | str | ReasoningConfig | ModelProfile | None"

_SWITCHES = ("enable_thinking", "thinking", "thinking_mode", "thinking_budget", "reasoning")


def resolve_profile(reasoning: Wanted = "auto", *, model_type: str | None, tokenizer: Any) -> ModelProfile:
    """The profile of a checkpoint.

    Args:
        reasoning: "auto", a family's name, the markers themselves, or None for no splitting of thoughts.
        model_type: of config.json.

    Raises:
        UnknownFamilyError: there is no family of that name; the message lists the names.
    """
    if isinstance(reasoning, ModelProfile):
        return reasoning
    shown = Checkpoint.of(tokenizer)
    return _with_end(_chosen(reasoning, model_type, shown), shown)


def _chosen(
    reasoning: Literal["auto"] | str | ReasoningConfig | None, model_type: str | None, shown: Checkpoint
) -> ModelProfile:
    if isinstance(reasoning, ReasoningConfig):
        return ModelProfile("custom", reasoning, shown.any_calls, evidence=("the markers were given by the caller",))
    if reasoning is None:
        found = _resolve(model_type, shown)
        return replace(
            found, reasoning=None, frames=None, evidence=(*found.evidence, "the caller wants no thoughts split out")
        )
    if reasoning != "auto":
        return _fitted(_spelled(family(reasoning), shown), shown, f"the caller named the family {reasoning!r}")
    return _resolve(model_type, shown)


def _with_end(profile: ModelProfile, shown: Checkpoint) -> ModelProfile:
    """The profile with the token that ends a turn in the template among those that stop the model."""
    own = profile.frames.markers if profile.frames is not None else ()
    own += tuple(frame.end for frame in profile.reasoning.answer_frames) if profile.reasoning is not None else ()
    end = end_of_turn(shown.render, shown.added, own)
    ids = () if end is None else (int(shown.tokenizer.convert_tokens_to_ids(end)),)
    return replace(profile, stop_token_ids=(*profile.stop_token_ids, *ids))


def _spelled(row: ModelProfile, shown: Checkpoint) -> ModelProfile:
    """The row with its markers as the checkpoint spells them: in a prompt, in its template, or in its vocabulary."""
    if row.suffix is None:
        return row
    switch = {row.prompt.switch: row.prompt.on} if row.prompt.switch else {}
    texts = (shown.generation_prompt(**switch) or "", shown.template, "\n".join(shown.vocabulary))
    return row.read(next((text for text in texts if row.suffix.found(text) is not None), ""))


def _resolve(model_type: str | None, shown: Checkpoint) -> ModelProfile:
    table = [_spelled(row, shown) for row in FAMILIES.values()]
    for row in table:
        if model_type is not None and model_type in row.model_types:
            return _fitted(row, shown, f"config.json says model_type {model_type!r}, which only {row.name} has")
    rows = [row for row in table if _markers_shown(row, shown)]
    if rows:
        prompt = shown.generation_prompt() or ""
        best = max(rows, key=lambda row: _likeness(row, shown, prompt))
        marker = _telling_markers(best)[-1]
        where = "template" if marker in shown.template else "vocabulary"
        return _fitted(best, shown, f"the {where} has {marker!r}, as {best.name} does")
    probed = probe(shown.render)
    if probed is not None:
        row = ModelProfile("probed", probed.config, shown.any_calls, turn_header=_header(shown))
        return _fitted(row, shown, "no row of the table fits", probed.evidence)
    why = "no thought's markers in the template" if shown.template else "no thought's markers in the vocabulary"
    return ModelProfile("plain", None, shown.any_calls, prompt=PromptStrategy(default=False), evidence=(why,))


def _header(shown: Checkpoint) -> str | None:
    """What the template adds to open an assistant's turn, up to its newline."""
    without = shown.generation_prompt(add_generation_prompt=False)
    prompt = shown.generation_prompt()
    if prompt is None or without is None or not prompt.startswith(without):
        return None
    return prompt[len(without) :].lstrip().partition("\n")[0] or None


def _telling_markers(row: ModelProfile) -> list[str]:
    """The markers that a checkpoint of this row cannot do without; the last one is the most telling."""
    if row.frames is not None:
        frames = row.frames
        direct = [marker for marker, _ in frames.direct[:2]]
        return [*frames.opens, *frames.bodies, *direct, *frames.parts[:1], *frames.closes[:1]]
    if row.reasoning is None:
        return []
    return [*row.reasoning.starts[:1], row.reasoning.end_delimiter]


def _markers_shown(row: ModelProfile, shown: Checkpoint) -> bool:
    """Whether a checkpoint writes these markers: by its template, or without a template by its vocabulary."""
    *others, last = _telling_markers(row) or [""]
    if not last:
        return False
    if not shown.template:
        return {*others, last} <= shown.vocabulary
    return last in shown.template and all(text in shown.template or text in shown.vocabulary for text in others)


def _likeness(row: ModelProfile, shown: Checkpoint, prompt: str) -> tuple[int, ...]:
    """How much of a row a checkpoint shows: its header, its calls, what it alone has, its switch."""
    header = row.turn_header is not None and row.turn_header in prompt
    told = 0 if not row.tells else 1 if re.search(row.tells, shown.template) else -1
    calls = row.tool_calls is not None and row.tool_calls == shown.any_calls
    switches = [name for name in _SWITCHES if shown.reads(name)]
    switch = (row.prompt.switch in switches) if row.prompt.switch else not switches
    return int(header), told, int(calls), int(switch)


def _fitted(row: ModelProfile, shown: Checkpoint, *evidence: str) -> ModelProfile:
    """The row with what the checkpoint's own template says about calls, old thoughts and the switch."""
    notes = list(evidence)
    if shown.template and row.frames is None:
        own = row.tool_calls.opener if row.tool_calls is not None else None
        calls = shown.calls or (
            row.tool_calls if own is not None and own in shown.template + shown.called else shown.spelled
        )
        if calls is None and own is not None and own not in shown.vocabulary:
            notes.append("neither the template nor the vocabulary has its tool syntax")
            row = replace(row, tool_calls=None)
        elif calls is not None and calls != row.tool_calls:
            notes.append(f"the template writes calls between {calls.opener!r} and {calls.closer or 'the end'!r}")
            row = replace(row, tool_calls=calls)
    if shown.template and (row.reasoning is not None or row.frames is not None):
        prompt, note = _switch(row.prompt, shown)
        row = replace(row, prompt=_with_efforts(prompt, shown))
        notes.append(note)
        found = history(shown.render, **({prompt.switch: prompt.on} if prompt.switch else {}))
        if found is not None and found != row.history:
            notes.append(f"the template's rule for old thoughts is {found!r}")
            row = replace(row, history=found)
    return replace(row, evidence=tuple(notes))


def _with_efforts(prompt: PromptStrategy, shown: Checkpoint) -> PromptStrategy:
    """The efforts that a template takes; none where it does not read any."""
    name = prompt.effort or "reasoning_effort"
    if not shown.reads(name):
        return replace(prompt, effort=None, efforts=())
    if prompt.effort is not None:
        return prompt
    words = compared_with(shown.template, name) - {prompt.off}
    efforts = tuple(word for word in EFFORTS if word in words)
    return replace(prompt, effort=name, efforts=efforts) if efforts else prompt


def _switch(row: PromptStrategy, shown: Checkpoint) -> tuple[PromptStrategy, str]:
    """What the template's switch is called, and what happens without it."""
    names: Iterable[str] = ([row.switch] if row.switch else []) + [name for name in _SWITCHES if name != row.switch]
    name = next((name for name in names if shown.reads(name)), None)
    if name is None:
        if row.effort is not None and shown.reads(row.effort):
            return replace(row, switch=None), f"the template reads {row.effort}"
        if row.words is not None and row.words[1] in shown.template:
            return replace(row, switch=None), f"the template reads {' and '.join(row.words)} in a system message"
        return replace(row, switch=None, words=None, default=True), "the template has no switch for thinking"
    on, off = (row.on, row.off) if name == row.switch else (True, False)
    unset, with_on, with_off = (
        shown.generation_prompt(),
        shown.generation_prompt(**{name: on}),
        shown.generation_prompt(**{name: off}),
    )
    if with_on == with_off:
        return replace(row, switch=name, on=on, off=off), f"the template reads {name}, with no effect on a short prompt"
    default = True if unset == with_on else False if unset == with_off else None
    word = {True: "on", False: "off", None: "the model's choice"}[default]
    return replace(row, switch=name, on=on, off=off, default=default), f"the template reads {name}; unset means {word}"
