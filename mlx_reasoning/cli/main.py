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
from . import options as take
from .output import fail, prepare_streams

app = typer.Typer(
    name="mlx-reasoning",
    help="Chat with thinking models on this machine: the thought, the answer and the tool calls apart.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None if os.environ.get("TERM") == "dumb" else "rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
models_app = typer.Typer(help="The models on this machine, and how more come there.")
app.add_typer(models_app, name="models")


@app.command()
def generate(
    prompt: Annotated[Optional[str], typer.Argument(help="The prompt; read from stdin if left out.")] = None,
    model: take.Model = None,
    system: take.System = None,
    messages: Annotated[
        Optional[Path],
        typer.Option(help="A JSON list of OpenAI messages; the prompt, if any, comes behind it."),
    ] = None,
    tools: take.Tools = None,
    thinking: take.Thinking = None,
    effort: take.Effort = None,
    budget: take.Budget = None,
    max_tokens: take.MaxTokens = None,
    temperature: take.Temperature = None,
    top_p: take.TopP = None,
    top_k: take.TopK = None,
    min_p: take.MinP = None,
    seed: take.Seed = None,
    stop: take.Stop = None,
    prompt_cache: take.PromptCacheFile = None,
    stats: Annotated[bool, typer.Option("--stats", help="Say counts and speeds at the end, on stderr.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One event a line, as JSON, on stdout.")] = False,
    no_reasoning: take.NoReasoning = False,
) -> None:
    """Answers one prompt: the answer on stdout, the thought dim on stderr.

    mlx-reasoning generate "What is 347 + 286?"

    echo "Sort 5 3 9" | mlx-reasoning generate --no-reasoning

    mlx-reasoning generate -m mlx-community/Qwen3-4B-4bit --json "Hi" | jq .

    mlx-reasoning generate --messages chat.json --tools tools.py --stats
    """
    from .generate import run_generate

    given = take.turn_options(thinking=thinking, effort=effort, budget=budget, max_tokens=max_tokens,
                              temperature=temperature, top_p=top_p, top_k=top_k, min_p=min_p, seed=seed)  # fmt: skip
    if stop:
        given |= {"stop_strings": stop, "stop_scope": "response"}
    code = run_generate(
        model,
        prompt,
        system,
        given,
        as_json=json,
        show_reasoning=not no_reasoning,
        messages=messages,
        tools=tools,
        show_stats=stats,
        prompt_cache=prompt_cache,
    )
    raise typer.Exit(code)


@app.command()
def chat(
    name: take.Name = None,
    model: take.Model = None,
    system: take.System = None,
    tools: take.Tools = None,
    thinking: take.Thinking = None,
    effort: take.Effort = None,
    budget: take.Budget = None,
    max_tokens: take.MaxTokens = None,
    temperature: take.Temperature = None,
    top_p: take.TopP = None,
    top_k: take.TopK = None,
    min_p: take.MinP = None,
    seed: take.Seed = None,
    prompt_cache: take.PromptCacheFile = None,
    show_thinking: take.ShowThinking = "folded",
    no_reasoning: Annotated[bool, typer.Option("--no-reasoning", help="The same as --show-thinking hidden.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the last conversation.")] = False,
    autosave: Annotated[
        bool, typer.Option("--autosave/--no-autosave", help="Keep conversations.", envvar="MLX_REASONING_AUTOSAVE")
    ] = True,
) -> None:
    """Chats in the terminal, or with lines from a pipe. /help lists the commands, /quit or Ctrl-D leaves.

    mlx-reasoning chat

    mlx-reasoning chat mlx-community/Qwen3-4B-4bit --temperature 0.6 --show-thinking full

    mlx-reasoning chat --resume

    printf '2 + 3\\nAnd plus 4?\\n' | mlx-reasoning chat
    """
    from .chat import run_chat

    given = take.turn_options(thinking=thinking, effort=effort, budget=budget, max_tokens=max_tokens,
                              temperature=temperature, top_p=top_p, top_k=top_k, min_p=min_p, seed=seed)  # fmt: skip
    show: Any = "hidden" if no_reasoning else show_thinking
    code = run_chat(
        name or model,
        system,
        given,
        show=show,
        tools=tools,
        prompt_cache=prompt_cache,
        resume=resume,
        autosave=autosave,
    )
    raise typer.Exit(code)


@app.command()
def inspect(name: take.Name = None, model: take.Model = None, json: take.AsJSON = False) -> None:
    """Says what a model was taken for and why, how its prompts end, and what it cannot do. No weights are read.

    mlx-reasoning inspect mlx-community/Qwen3-4B-4bit
    """
    from .inspect import run_inspect

    raise typer.Exit(run_inspect(name or model, as_json=json))


@models_app.callback(invoke_without_command=True)
def models(context: typer.Context, json: take.AsJSON = False) -> None:
    """Lists the models in the Hub's cache: size, family, whether they think, and when they were last used.

    mlx-reasoning models

    mlx-reasoning models get mlx-community/Qwen3-4B-4bit
    """
    from .models import run_models

    if context.invoked_subcommand is None:
        raise typer.Exit(run_models(as_json=json))


@models_app.command()
def get(
    repository: Annotated[str, typer.Argument(help="A repository on the Hub, such as mlx-community/Qwen3-4B-4bit.")],
    revision: Annotated[Optional[str], typer.Option(help="A branch, tag or commit.")] = None,
) -> None:
    """Downloads a model, or what is missing of it, and prints its folder.

    mlx-reasoning models get mlx-community/Qwen3-4B-4bit
    """
    from .models import run_get

    raise typer.Exit(run_get(repository, revision))


@app.command()
def split(
    protocol: Annotated[str, typer.Option("--protocol", "-p", help="A family; see `families`.")] = "qwen3",
    inside: Annotated[bool, typer.Option("--inside", help="The text begins inside a thought.")] = False,
    tools: take.Tools = None,
) -> None:
    """Splits text on stdin into thought, answer and tool calls: one event a line, as JSON.

    curl -s ... | mlx-reasoning split --protocol deepseek-r1 --inside
    """
    from .splitting import run_split

    raise typer.Exit(run_split(protocol, inside=inside, tools=tools))


@app.command()
def families(json: take.AsJSON = False) -> None:
    """Lists the model families: their markers, their calls, and what switches their thoughts.

    mlx-reasoning families --json | jq -r '.[].family'
    """
    from .splitting import run_families

    raise typer.Exit(run_families(as_json=json))


@app.command()
def cache(
    prompt: Annotated[str, typer.Argument(help="A file with the system message; - is stdin.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")],
    model: take.Model = None,
    tools: take.Tools = None,
    thinking: take.Thinking = None,
    effort: take.Effort = None,
) -> None:
    """Reads a long system message once and keeps what the model made of it, for --prompt-cache.

    mlx-reasoning cache rules.md -o rules.cache

    mlx-reasoning chat --prompt-cache rules.cache --system "$(cat rules.md)"
    """
    from .cache import run_cache

    raise typer.Exit(run_cache(model, prompt, out, tools, take.turn_options(thinking=thinking, effort=effort)))


@app.command()
def config(json: take.AsJSON = False) -> None:
    """Shows the settings and where each comes from: a flag wins over the environment, and that over the file.

    mlx-reasoning config
    """
    from .settings import run_config

    raise typer.Exit(run_config(as_json=json))


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"mlx-reasoning {version('mlx-reasoning')}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    from .settings import read_settings

    if context.invoked_subcommand != "config":  # which says itself what is wrong with the file
        found = read_settings()
        context.default_map = dict.fromkeys(("chat", "generate", "inspect", "cache"), found)


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
