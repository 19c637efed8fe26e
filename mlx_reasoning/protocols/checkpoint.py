"""What a checkpoint shows of itself: its template, what that renders, its vocabulary. Read here, decided elsewhere."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from . import formats
from .config import ToolCallFormat
from .probe import call_format, called

_FORMATS = [value for value in vars(formats).values() if isinstance(value, ToolCallFormat) and value.opener]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a checkpoint shows of itself, read once.

    Args:
        called: a conversation with a call, rendered.
        calls: the format of that call.
        spelled: a format that only stands in the template.
    """

    template: str
    vocabulary: frozenset[str]
    added: frozenset[str]
    variables: frozenset[str]
    tokenizer: Any
    called: str = ""
    calls: ToolCallFormat | None = None
    spelled: ToolCallFormat | None = None

    @property
    def any_calls(self) -> ToolCallFormat | None:
        return self.calls or self.spelled

    @classmethod
    def of(cls, tokenizer: Any) -> Checkpoint:
        template = getattr(tokenizer, "chat_template", None) or ""
        if isinstance(template, dict):
            template = template.get("default") or next(iter(template.values()), "")
        added = frozenset(unwrapped(tokenizer).get_added_vocab())
        variables = template_variables(str(template))
        shown = cls(str(template), frozenset(tokenizer.get_vocab()), added, variables, tokenizer)
        text = called(shown.render) or ""
        return replace(shown, called=text, calls=_calls_in(text, shown), spelled=_calls_spelled(shown.template))

    def reads(self, name: str) -> bool:
        """Whether the template looks at a variable of this name that its caller may set."""
        return name in self.variables

    def generation_prompt(self, **arguments: Any) -> str | None:
        """A short conversation's prompt, or None where the template refuses."""
        return self.render([{"role": "user", "content": "Hi"}], **arguments)

    def render(self, messages: list[dict[str, Any]], **arguments: Any) -> str | None:
        """Messages as the template has them, up to the generation prompt, or None where it refuses."""
        if not self.template:
            return None
        arguments = {"add_generation_prompt": True} | arguments
        try:
            return str(unwrapped(self.tokenizer).apply_chat_template(messages, tokenize=False, **arguments))
        except Exception:  # a template is somebody's program, and may raise anything
            return None


def template_variables(template: str) -> frozenset[str]:
    """The variables of a template that its caller may set."""
    from jinja2 import meta

    tree = _parsed(template)
    return frozenset() if tree is None else frozenset(meta.find_undeclared_variables(tree))


def _parsed(template: str) -> Any:
    """The template's tree; None where it is no template."""
    from jinja2 import Environment, TemplateError

    environment = Environment(extensions=["jinja2.ext.loopcontrols"])
    plain = re.sub(r"\{%-?\s*(?:end)?generation\s*-?%\}", "", template)  # transformers' own tag
    try:
        return environment.parse(plain)
    except TemplateError:
        return None


def compared_with(template: str, name: str) -> set[str]:
    """The words that a template compares a variable with."""
    from jinja2 import nodes

    words: set[str] = set()
    tree = _parsed(template)
    for compare in tree.find_all(nodes.Compare) if tree is not None else ():
        if any(
            found.name == name
            for found in [compare.expr, *compare.expr.find_all(nodes.Name)]
            if isinstance(found, nodes.Name)
        ):
            words |= {str(const.value) for operand in compare.ops for const in operand.find_all(nodes.Const)}
    return words


def unwrapped(tokenizer: Any) -> Any:
    """The Hugging Face tokenizer inside mlx-lm's wrapper, whose templates get no arguments but the caller's."""
    return tokenizer._tokenizer if type(tokenizer).__name__ == "TokenizerWrapper" else tokenizer


def _calls_in(text: str, shown: Checkpoint) -> ToolCallFormat | None:
    """The format of a call that a template has rendered."""
    if not text:
        return None
    plain = shown.render([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "x"}]) or ""
    return call_format(text, plain, _FORMATS)


def _calls_spelled(template: str) -> ToolCallFormat | None:
    """The format whose markers stand in a template; the one that says most where several do."""
    fitting = [calls for calls in _FORMATS if _is_spelled(calls, template)]
    return max(fitting, key=lambda calls: len("".join(calls.shape)), default=None)


def _is_spelled(calls: ToolCallFormat, template: str) -> bool:
    if calls.opener not in template:
        return False
    if calls is formats.HERMES:
        return not any(word in template for word in ("<function=", "<arg_key>"))
    if calls.shape == "identifier":
        return all(quote.start in template for quote in calls.quotes)
    return not calls.shape or any(start in template for start in calls.shape)
