"""The command line: what the commands are called and what they take. What they do stands beside it.

Nothing heavy is imported here, so that `--help` is quick. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from ..errors import MLXReasoningError
from .output import fail, prepare_streams

app = typer.Typer(
    name="mlx-reasoning",
    help="Chat with thinking models on this machine: the thought, the answer and the tool calls apart.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Model = Annotated[
    Optional[str],  # noqa: UP045 - typer reads it at run time
    typer.Option("--model", "-m", help="A folder, a Hub repository, or 'demo'.", envvar="MLX_REASONING_MODEL"),
]
Thinking = Annotated[
    Optional[bool],  # noqa: UP045
    typer.Option("--thinking/--no-thinking", help="Think first, or answer at once; unset is the model's own default."),
]
Effort = Annotated[Optional[str], typer.Option(help="How hard to think, where the model has efforts.")]  # noqa: UP045
System = Annotated[Optional[str], typer.Option(help="Instructions before the conversation.")]  # noqa: UP045
MaxTokens = Annotated[Optional[int], typer.Option(help="The most tokens of a turn; unset is what fits.")]  # noqa: UP045
Budget = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--budget", help="The most tokens of the thought, which is closed then."),
]
PromptCacheFile = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--prompt-cache", help="A file of `mlx-reasoning cache`: prompts that begin so skip that part."),
]
NoReasoning = Annotated[bool, typer.Option("--no-reasoning", help="Do not show the thought.")]
Temperature = Annotated[Optional[float], typer.Option(help="0 is greedy; unset is the model's own.")]  # noqa: UP045
TopP = Annotated[Optional[float], typer.Option(help="Nucleus sampling.")]  # noqa: UP045
TopK = Annotated[Optional[int], typer.Option(help="Sample among the k likeliest tokens.")]  # noqa: UP045
MinP = Annotated[Optional[float], typer.Option(help="Drop tokens less likely than this share of the likeliest.")]  # noqa: UP045
Seed = Annotated[Optional[int], typer.Option(help="For the same random numbers again.")]  # noqa: UP045


def _options(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


@app.command()
def generate(
    prompt: Annotated[Optional[str], typer.Argument(help="The prompt; read from stdin if left out.")] = None,  # noqa: UP045
    model: Model = None,
    system: System = None,
    thinking: Thinking = None,
    effort: Effort = None,
    budget: Budget = None,
    max_tokens: MaxTokens = None,
    temperature: Temperature = None,
    top_p: TopP = None,
    top_k: TopK = None,
    min_p: MinP = None,
    seed: Seed = None,
    prompt_cache: PromptCacheFile = None,
    stop: Annotated[Optional[list[str]], typer.Option(help="End the answer at this text; may be repeated.")] = None,  # noqa: UP045
    json: Annotated[bool, typer.Option("--json", help="One event a line, as JSON, on stdout.")] = False,
    no_reasoning: NoReasoning = False,
) -> None:
    """Answers one prompt: the answer on stdout, the thought dim on stderr.

    mlx-reasoning generate "What is 347 + 286?"

    echo "Sort 5 3 9" | mlx-reasoning generate --no-reasoning

    mlx-reasoning generate -m mlx-community/Qwen3-4B-4bit --json "Hi" | jq .
    """
    from .generate import run_generate

    options = _options(thinking=thinking, effort=effort, max_reasoning_tokens=budget, max_tokens=max_tokens,
                       temperature=temperature, top_p=top_p, top_k=top_k, min_p=min_p, seed=seed)  # fmt: skip
    if stop:
        options |= {"stop_strings": stop, "stop_scope": "response"}
    raise typer.Exit(
        run_generate(
            model, prompt, system, options, as_json=json, show_reasoning=not no_reasoning, prompt_cache=prompt_cache
        )
    )


@app.command()
def chat(
    name: Annotated[Optional[str], typer.Argument(metavar="[MODEL]", help="The same as --model.")] = None,  # noqa: UP045
    model: Model = None,
    system: System = None,
    thinking: Thinking = None,
    effort: Effort = None,
    budget: Budget = None,
    max_tokens: MaxTokens = None,
    temperature: Temperature = None,
    top_p: TopP = None,
    top_k: TopK = None,
    min_p: MinP = None,
    seed: Seed = None,
    prompt_cache: PromptCacheFile = None,
    no_reasoning: NoReasoning = False,
) -> None:
    """Chats in the terminal, or with lines from a pipe. /quit or the end of the input leaves.

    mlx-reasoning chat

    mlx-reasoning chat mlx-community/Qwen3-4B-4bit --temperature 0.6

    printf '2 + 3\\nAnd plus 4?\\n' | mlx-reasoning chat
    """
    from .chat import run_chat

    options = _options(thinking=thinking, effort=effort, max_reasoning_tokens=budget, max_tokens=max_tokens,
                       temperature=temperature, top_p=top_p, top_k=top_k, min_p=min_p, seed=seed)  # fmt: skip
    raise typer.Exit(
        run_chat(name or model, system, options, show_reasoning=not no_reasoning, prompt_cache=prompt_cache)
    )


@app.command()
def cache(
    prompt: Annotated[str, typer.Argument(help="A file with the system message; - is stdin.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")],
    model: Model = None,
    tools: Annotated[Optional[Path], typer.Option(help="A JSON file with tools in OpenAI's form.")] = None,  # noqa: UP045
    thinking: Thinking = None,
    effort: Effort = None,
) -> None:
    """Reads a long system message once and keeps what the model made of it, for --prompt-cache.

    mlx-reasoning cache rules.md -o rules.cache

    mlx-reasoning chat --prompt-cache rules.cache --system "$(cat rules.md)"
    """
    from .cache import run_cache

    raise typer.Exit(run_cache(model, prompt, out, tools, _options(thinking=thinking, effort=effort)))


@app.command()
def inspect(
    name: Annotated[Optional[str], typer.Argument(metavar="[MODEL]", help="The same as --model.")] = None,  # noqa: UP045
    model: Model = None,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Says what a model was taken for and why, how its prompts end, and what it cannot do. No weights are read.

    mlx-reasoning inspect mlx-community/Qwen3-4B-4bit
    """
    from .inspect import run_inspect

    raise typer.Exit(run_inspect(name or model, as_json=json))


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"mlx-reasoning {version('mlx-reasoning')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """The console script."""
    prepare_streams()
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    code: object = 0
    try:
        code = app(standalone_mode=True)
    except MLXReasoningError as error:
        fail(" ".join(str(error).split()))
        code = 1
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        # the reader of the pipe has left; nobody is there to be told
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code if isinstance(code, int) else 0)
