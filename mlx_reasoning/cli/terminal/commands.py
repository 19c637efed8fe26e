"""What a line that begins with a slash does. None of them is ever sent to the model."""

from __future__ import annotations

import base64
import difflib
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from ...errors import MLXReasoningError, OptionError
from ...protocols.strategy import EFFORTS
from ..output import end_line, fail, note, typed
from ..setup import load_model
from ..toolfiles import read_tools
from . import store
from .registry import COMMANDS, chosen, command, file_path
from .talk import Talk

if TYPE_CHECKING:
    from ...session.chat import ChatSession


def run_command(talk: Talk, line: str) -> None:
    """Runs a line; what is wrong with it is said, and nothing is changed then."""
    name, _, rest = line[1:].strip().partition(" ")
    found = COMMANDS.get(name)
    if found is None:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        advice = f"did you mean /{near[0]}?" if near else "/help lists them"
        fail(f"no command /{name}: {advice} (a message may begin with a slash after a space)")
        talk.failed = True
        return
    try:
        found.run(talk, rest.strip())
    except MLXReasoningError as error:
        fail(" ".join(str(error).split()))
        talk.failed = True


# Thinking.

_SWITCH = {"on": True, "off": False, "auto": None}


@command("think", "on|off|auto", "think before the answer; auto is the model's own way", lambda talk: tuple(_SWITCH))
def _think(talk: Talk, text: str) -> None:
    talk.session.configure(thinking=_SWITCH[chosen(text, tuple(_SWITCH), "setting")])
    note(f"thinking: {text}")


def _efforts(talk: Talk) -> tuple[str, ...]:
    return (*(talk.session.model.profile.prompt.efforts or EFFORTS), "auto")


@command("effort", "LEVEL|auto", "how hard to think, where the model has levels", _efforts)
def _effort(talk: Talk, text: str) -> None:
    level = chosen(text, _efforts(talk), "effort")
    talk.session.configure(effort=None if level == "auto" else level)
    note(f"effort: {level}")


@command("budget", "TOKENS|none", "the most tokens of a thought", lambda talk: ("none",))
def _budget(talk: Talk, text: str) -> None:
    if text != "none" and not text.isdecimal():
        raise OptionError("a budget is a number of tokens, or none")
    talk.session.configure(max_reasoning_tokens=None if text == "none" else int(text))
    note(f"budget: {text}")


# The conversation.


def _anew(talk: Talk, messages: list[Any], **changed: Any) -> ChatSession:
    """A session with other messages, tools or model, and the options of this one."""
    from ...session.chat import ChatSession

    session = talk.session
    options = {"tools": talk.tools, "warm": talk.console is not None, **session.options, **changed}
    return ChatSession(options.pop("model", session.model), messages=messages or None, **options)


@command("system", "[TEXT|none]", "shows or sets the instructions", lambda talk: ("none",))
def _system(talk: Talk, text: str) -> None:
    messages = talk.session.messages
    if not text:
        said = [str(message["content"]) for message in messages if message["role"] == "system"]
        note("\n".join(said) or "no instructions")
        return
    rest = [message for message in messages if message["role"] not in ("system", "developer")]
    system = [] if text == "none" else [{"role": "system", "content": typed(text)}]
    talk.reset(_anew(talk, [*system, *rest]))
    note("no instructions" if text == "none" else "the instructions are set, for the whole conversation")


@command("tools", "[FILE|none]", "shows or sets the tools: .json, or .py with functions", lambda talk: ("none",), True)
def _tools(talk: Talk, text: str) -> None:
    if text:
        tools = None if text == "none" else read_tools(file_path(text, "with the tools"))
        talk.reset(_anew(talk, list(talk.session.messages), tools=tools))
        talk.tools = tools
    for tool in talk.tools or ():
        note(f"{tool.__name__} (runs when called)" if callable(tool) else f"{tool['function']['name']} (you answer)")
    if not talk.tools:
        note("no tools")


@command("model", "[NAME]", "shows or changes the model; the conversation stays", file=True)
def _model(talk: Talk, text: str) -> None:
    if not text:
        note(f"{talk.session.model.name} ({talk.session.model.profile.name})")
        return
    model = load_model(text)
    options = dict(talk.session.options)
    try:
        model.profile.prompt.arguments(options.get("thinking"), options.get("effort"))
    except MLXReasoningError as error:
        note(f"{error}; its own way of thinking is used")
        talk.session.configure(thinking=None, effort=None)
    talk.reset(_anew(talk, list(talk.session.messages), model=model))
    talk.last = None
    note(f"{model.name} ({model.profile.name})")


@command("save", "FILE", "writes the conversation, with its cache", file=True)
def _save(talk: Talk, text: str) -> None:
    path = file_path(text, "to write")
    talk.session.save(path)
    note(f"saved in {path}")


@command("load", "[FILE]", "goes on with a saved conversation; without a file, lists those that were kept", file=True)
def _load(talk: Talk, text: str) -> None:
    from ...session.chat import ChatSession

    if not text:
        for path, first in store.kept():
            note(f"{path}  {first}")
        note("/load FILE goes on with one of them")
        return
    path = file_path(text, "to load")
    options = {"tools": talk.tools, "warm": talk.console is not None, **talk.session.options}
    session = ChatSession.load(path, talk.session.model, strict=False, **options)
    talk.reset(session)
    note(f"{len(session.messages)} messages of {path}")


@command("undo", "", "takes your last message and its answer back")
def _undo(talk: Talk, text: str) -> None:
    taken = talk.session.undo()
    talk.draft = str(taken[0]["content"])
    talk.reset(talk.session)
    talk.save()
    note("taken back" + (", and it stands in the line again" if talk.console is not None else ""))


@command("retry", "", "answers your last message again")
def _retry(talk: Talk, text: str) -> None:
    talk.turn(talk.session.stream_retried)


@command("edit", "[TEXT]", "puts other words in the place of your last message")
def _edit(talk: Talk, text: str) -> None:
    messages = talk.session.messages
    users = [at for at, message in enumerate(messages) if message["role"] == "user"]
    if not users:
        raise OptionError("there is nothing to edit: no message of yours is there yet")
    talk.editing = users[-1]
    if text:
        talk.say(text)
    elif talk.console is None:
        talk.editing = None
        raise OptionError("write the new words behind /edit")
    else:
        talk.draft = str(messages[users[-1]]["content"])
        note("change it and press Enter; an empty line leaves it as it is")


@command("fork", "[back]", "goes on in a copy; back returns to where it began", lambda talk: ("back",))
def _fork(talk: Talk, text: str) -> None:
    if text:
        chosen(text, ("back",), "way to fork")
        if not talk.forked:
            raise OptionError("there is no fork to come back from")
        talk.reset(talk.forked.pop())
        note("back where the fork began")
        return
    talk.forked.append(talk.session)
    talk.reset(talk.session.fork())
    note("in a copy of the conversation; /fork back returns")


@command("continue", "", "goes on with an answer that was cut off")
def _continue(talk: Talk, text: str) -> None:
    talk.turn(talk.session.stream_continued)


@command("attach", "FILE", "puts a file's text before your next message", file=True)
def _attach(talk: Talk, text: str) -> None:
    path = file_path(text, "to attach")
    talk.attached.append(store.attachment(path))
    note(f"{path} goes with the next message")


@command("clear", "", "begins a new conversation; the instructions stay")
def _clear(talk: Talk, text: str) -> None:
    talk.session.clear()
    talk.reset(talk.session)
    talk.attached, talk.forked, talk.last = [], [], None
    if talk.autosave is not None:
        talk.autosave = store.Autosave()
    note("a new conversation")


# What was said.


def _thoughts(talk: Talk) -> list[str]:
    found: list[str] = [str(m["reasoning_content"]) for m in talk.session.messages if m.get("reasoning_content")]
    stopped = talk.session.interrupted
    return [*found, stopped.reasoning] if stopped is not None and stopped.reasoning else found


@command("show", "[N]", "shows a thought: the last, or the N-th")
def show(talk: Talk, text: str) -> None:
    thoughts = _thoughts(talk)
    if text and (not text.isdecimal() or not 1 <= int(text) <= len(thoughts)):
        raise OptionError(f"there is no thought {text!r}: there are {len(thoughts)}, counted from 1")
    note(thoughts[int(text) - 1 if text else -1].strip() if thoughts else "no thought yet")


@command("copy", "[code|thought]", "copies the last answer to the clipboard", lambda talk: ("code", "thought"))
def _copy(talk: Talk, text: str) -> None:
    said = [str(m["content"]) for m in talk.session.messages if m["role"] == "assistant" and m.get("content")]
    found = _thoughts(talk) if text == "thought" else said
    if text:
        chosen(text, ("code", "thought"), "part to copy")
    if text == "code":
        found = [part for answer in said for part in store.code_blocks(answer)]
    if not found:
        raise OptionError("there is nothing to copy yet")
    _to_clipboard(found[-1])
    note(f"copied {len(found[-1]):,} characters")


def _to_clipboard(text: str) -> None:
    """By the Mac's program, or by the escape sequence (OSC 52) that most terminals take, also over ssh."""
    program = shutil.which("pbcopy")
    if program is not None:
        subprocess.run([program], input=text.encode(), check=False)
    elif sys.stdout.isatty():
        print(f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\a", end="", flush=True)
    else:
        raise OptionError("there is no clipboard here")


@command("stats", "", "what the last turn and the whole conversation cost")
def _stats(talk: Talk, text: str) -> None:
    from .. import stats

    if talk.last is None:
        raise OptionError("no turn was run yet")
    for line in stats.lines(talk.last):
        note(line)
    total = talk.session.usage
    note(f"whole conversation: {total.prompt_tokens:,} tokens of prompts, {total.prefilled_tokens:,} of them computed,"
         f" {total.completion_tokens:,} generated")  # fmt: skip


@command("export", "FILE", "writes the conversation as Markdown (.md) or JSON (.json)", file=True)
def _export(talk: Talk, text: str) -> None:
    path = file_path(text, "to write")
    store.export(talk.session.messages, path)
    note(f"written: {path}")


@command("help", "", "this list")
def _help(talk: Talk, text: str) -> None:
    end_line()
    for known in COMMANDS.values():
        note(f"/{known.name + ' ' + known.takes:26} {known.help}")
    if talk.console is not None:
        note("enter sends · alt-enter, ctrl-j or \\ enter: new line · ctrl-o the last thought · ctrl-t answer now")
        note("ctrl-c stops an answer, twice leaves · ctrl-d leaves · ctrl-r searches · tab completes")


@command("quit", "", "leaves")
def _quit(talk: Talk, text: str) -> None:
    talk.over = True
