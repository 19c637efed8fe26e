"""`mlx-reasoning inspect`: what a model was taken for, from what evidence, and where its turns start."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..errors import MLXReasoningError
from .output import end_line

if TYPE_CHECKING:
    from ..engine.loading import LoadedModel

TAIL = 60


def run_inspect(name: str | None, *, as_json: bool) -> int:
    """Prints what is known about a model; the weights are not read. Gives the exit code."""
    from ..engine.loading import load

    model = load(name or "demo", lazy=True, require_chat_template=False)
    facts = _facts(model)
    end_line()
    if as_json:
        print(json.dumps(facts, ensure_ascii=False, indent=2))
        return 0
    for key, value in facts.items():
        if isinstance(value, list):
            print(f"{key}:")
            for item in value:
                print(f"  {_line(item)}")
        else:
            print(f"{key}: {_line(value)}")
    return 0


def _line(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_line(item)}" for key, item in value.items())
    return "-" if value is None else str(value)


def _facts(model: LoadedModel) -> dict[str, Any]:
    profile = model.profile
    reasoning, frames, calls = profile.reasoning, profile.frames, profile.tool_calls
    return {
        "model": model.name,
        "model type": model.config.get("model_type"),
        "family": profile.name,
        "evidence": list(profile.evidence),
        "thoughts": f"{reasoning.start_delimiter} … {reasoning.end_delimiter}" if reasoning else frames and frames.name,
        "tool calls": f"{calls.opener} … {calls.closer}" if calls else None,
        "switch": profile.prompt.switch,
        "unset means": {True: "on", False: "off", None: "the model's choice"}[profile.prompt.default],
        "efforts": ", ".join(profile.prompt.efforts) or None,
        "history": profile.history,
        "context": model.context_length,
        "stop ids": {str(token): model.tokenizer.decode([token]) for token in profile.stop_token_ids},
        "prompts": [_prompt(model, thinking) for thinking in (None, True, False)],
        "cannot": _limits(model),
    }


def _prompt(model: LoadedModel, thinking: bool | None) -> dict[str, Any]:
    """The end of a short prompt for one setting, and where the first generated token stands."""
    from ..prompt import render

    word = {None: "unset", True: "on", False: "off"}[thinking]
    try:
        rendered = render(
            model.tokenizer, [{"role": "user", "content": "Hi"}], profile=model.profile, thinking=thinking
        )
    except MLXReasoningError as error:
        return {"thinking": word, "refused": " ".join(str(error).split())}
    return {"thinking": word, "ends": repr(rendered.text[-TAIL:]), "starts": rendered.start.value}


def _limits(model: LoadedModel) -> list[str]:
    """What the model cannot do."""
    profile = model.profile
    thinks = profile.reasoning is not None or profile.frames is not None
    limits = [] if thinks else ["think: no thought's markers are known"]
    if thinks and profile.prompt.switch is None:
        limits.append("have its thinking switched off: its template has no switch")
    if thinks and not profile.prompt.efforts:
        limits.append("tell efforts apart: any effort means thinking on")
    if profile.tool_calls is None:
        limits.append("call tools: no call format is known")
    if not model.tokenizer.has_chat_template:
        limits.append("take messages: it has no chat template")
    return limits
