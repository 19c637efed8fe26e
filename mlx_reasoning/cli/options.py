"""What the commands take: every option once, with its environment variable."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from .settings import SHOWN, variable

# typer reads the annotations at run time, so that they say Optional.


def _option(*names: str, help: str, env: str | None = None, **more: Any) -> Any:
    return typer.Option(*names, help=help, envvar=variable(env) if env else None, **more)


def _shown(value: str) -> str:
    if value not in SHOWN:
        raise typer.BadParameter(f"{value!r} is none of {', '.join(SHOWN)}")
    return value


Name = Annotated[Optional[str], typer.Argument(metavar="[MODEL]", help="The same as --model.")]
Model = Annotated[Optional[str], _option("--model", "-m", help="A folder, a Hub repository, or 'demo'.", env="model")]
System = Annotated[Optional[str], _option("--system", help="Instructions before the conversation.", env="system")]
Thinking = Annotated[
    Optional[bool],
    _option(
        "--thinking/--no-thinking",
        help="Think first, or answer at once; unset is the model's own default.",
        env="thinking",
    ),
]
Effort = Annotated[
    Optional[str], _option("--effort", help="How hard to think, where the model has efforts.", env="effort")
]
Budget = Annotated[
    Optional[int], _option("--budget", help="The most tokens of the thought, which is closed then.", env="budget")
]
MaxTokens = Annotated[
    Optional[int], _option("--max-tokens", help="The most tokens of a turn; unset is what fits.", env="max_tokens")
]
Temperature = Annotated[
    Optional[float], _option("--temperature", help="0 is greedy; unset is the model's own.", env="temperature")
]
TopP = Annotated[Optional[float], _option("--top-p", help="Nucleus sampling.", env="top_p")]
TopK = Annotated[Optional[int], _option("--top-k", help="Sample among the k likeliest tokens.", env="top_k")]
MinP = Annotated[
    Optional[float],
    _option("--min-p", help="Drop tokens less likely than this share of the likeliest.", env="min_p"),
]
Seed = Annotated[Optional[int], _option("--seed", help="For the same random numbers again.", env="seed")]
Stop = Annotated[Optional[list[str]], _option("--stop", help="End the answer at this text; may be repeated.")]
Tools = Annotated[
    Optional[Path],
    _option("--tools", help="Tools: a .json list in OpenAI's form, or a .py file whose functions run when called."),
]
PromptCacheFile = Annotated[
    Optional[str],
    _option("--prompt-cache", help="A file of `mlx-reasoning cache`: prompts that begin so skip that part."),
]
ShowThinking = Annotated[
    str,
    _option(
        "--show-thinking",
        help="Thoughts: full, folded into a line while they run, or hidden.",
        env="show_thinking",
        callback=_shown,
        metavar="full|folded|hidden",
    ),
]
NoReasoning = Annotated[bool, _option("--no-reasoning", help="Do not show the thought.")]
AsJSON = Annotated[bool, _option("--json", help="As JSON, on stdout.")]


def turn_options(**values: Any) -> dict[str, Any]:
    """Those that were given, under the names of `stream_generate`."""
    given = {name: value for name, value in values.items() if value is not None}
    if "budget" in given:
        given["max_reasoning_tokens"] = given.pop("budget")
    return given
