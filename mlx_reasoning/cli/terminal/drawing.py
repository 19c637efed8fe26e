"""One turn on the screen: a thought that is folded while it runs, and an answer that is drawn once.

What is finished is printed and never touched again; only what is open, and smaller than the screen, is redrawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from types import TracebackType
from typing import Literal

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from ...events import Generation, GenerationEvent
from .markdown import Block, Blocks

Show = Literal["full", "folded", "hidden"]
WIDEST = 1000
"""Characters of one line of a thought that are kept open."""
_FRAMES = {True: "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", False: "|/-\\"}
_CODE_THEME = "ansi_dark"
DIM = Style(dim=True)


def make_console() -> Console:
    """The terminal, as rich sees it; no colour where nobody wants it (NO_COLOR)."""
    return Console(highlight=False, markup=False, emoji=False)


class TurnDrawing:
    """Draws the events of one turn.

    Args:
        show: thoughts in full, folded into a line, or not at all.
        count: gives the tokens of the running thought, where they are counted.
    """

    def __init__(self, console: Console, show: Show, count: Callable[[], int | None] = lambda: None) -> None:
        self.show: Show = show
        self._console = console
        self._count = count
        self._blocks = Blocks()
        self._answered = False
        self._began = perf_counter()
        self._thought_began = 0.0
        self._thinking = False
        self._pieces: list[str] = []  # of the running thought, until they stand above
        self._line = ""  # its line that is not whole yet, or the end of it
        self._last = ""  # the one before
        self._reading = (0, 0)
        self._live = Live(get_renderable=lambda: self, console=console, transient=True, refresh_per_second=10,
                          vertical_overflow="crop")  # fmt: skip

    def __enter__(self) -> TurnDrawing:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._end_thought(cut=True)
            for block in self._blocks.finish():
                self._print_block(block)
        finally:
            self._live.stop()

    def progress(self, done: int, total: int) -> None:
        """How much of the prompt was read."""
        self._reading = (done, total)

    def unfold(self) -> None:
        """Shows the running thought in full from now on, what there is of it included; from any thread."""
        self.show = "full"

    def push(self, event: GenerationEvent) -> None:
        match event:
            case Generation.reasoning(text):
                self._think(text)
            case Generation.chunk(text):
                self._end_thought()
                for block in self._blocks.push(text):
                    self._print_block(block)
            case Generation.tool_call(call):
                self._end_thought()
                self._finish_answer()
                arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
                self._say(f"tool call: {call.name}({arguments})")
            case Generation.rejected_tool_call(rejection):
                self._end_thought()
                self._finish_answer()
                detail = f": {rejection.detail}" if rejection.detail else ""
                self._say(f"unusable tool call ({rejection.reason}{detail}), not run:")
                self._say(rejection.text)
            case Generation.info():
                self._end_thought(cut=event.info.ended_inside_reasoning)
                self._finish_answer()

    # Thoughts.

    def _think(self, text: str) -> None:
        if not self._thinking:
            self._finish_answer()
            self._thinking, self._thought_began = True, perf_counter()
            self._pieces, self._line, self._last = [], "", ""
        self._pieces.append(text)
        whole, newline, self._line = (self._line + text).rpartition("\n")
        if newline:
            self._last = whole.rstrip().rpartition("\n")[2] or self._last
        if self.show == "full":
            long = len(self._line) > WIDEST
            if long:
                self._line = self._line.rpartition(" ")[2][-WIDEST:]
            if newline or long:
                self._print_thought(len(self._line))
        else:
            self._line = self._line[-WIDEST:]

    def _print_thought(self, rest: int) -> None:
        """Prints the pieces, but for `rest` characters at their end."""
        text = "".join(self._pieces)
        cut = len(text) - rest
        if text[:cut].strip():
            self._console.print(Text(text[:cut].removesuffix("\n"), style=DIM))
        self._pieces = [text[cut:]]

    def _end_thought(self, *, cut: bool = False) -> None:
        if not self._thinking:
            return
        self._thinking = False
        if self.show == "full":
            self._print_thought(0)
        if self.show != "hidden":
            seconds, tokens = perf_counter() - self._thought_began, self._count()
            counted = "" if tokens is None else f", {tokens:,} tokens"
            unfold = "" if self.show == "full" else "  (ctrl-o shows it)"
            self._say(f"{'cut off in its thought after' if cut else 'thought for'} {seconds:.1f} s{counted}{unfold}")
            self._console.print()

    # Answers.

    def _print_block(self, block: Block) -> None:
        if self._answered and not block.joined:
            self._console.print()
        self._console.print(_Drawn(block.text))
        self._answered = True

    def _finish_answer(self) -> None:
        for block in self._blocks.finish():
            self._print_block(block)

    def _say(self, text: str) -> None:
        self._console.print(Text(text, style=DIM))

    # What is open.

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = max(console.height - 3, 1)
        lines = list(self._open(console, options))[-room:]
        for line in lines:
            yield from line
            yield Segment.line()

    def _open(self, console: Console, options: ConsoleOptions) -> Iterator[list[Segment]]:
        block = self._blocks.open
        if block.text.strip():
            if self._answered and not block.joined:
                yield []
            yield from tight(console, options, Markdown(block.text, code_theme=_CODE_THEME))
            return
        if self._thinking and self.show == "full":
            yield from console.render_lines(Text(self._line, style=DIM), options, pad=False) if self._line else ()
        frames = _FRAMES[console.encoding.startswith("utf")]
        frame = frames[int(perf_counter() * 10) % len(frames)]
        for line in self._working():
            text = Text(f"{frame} {line}", style=DIM, no_wrap=True, overflow="ellipsis")
            text.truncate(max(options.max_width - 1, 1), overflow="ellipsis")
            yield list(console.render(text, options.update(no_wrap=True)))[:-1]
            frame = " "

    def _working(self) -> list[str]:
        """What is going on, in lines."""
        done, total = self._reading
        if self._thinking:
            seconds, tokens = perf_counter() - self._thought_began, self._count()
            counted = "" if tokens is None else f" · {tokens:,} tokens"
            last = self._line.strip() or self._last
            return [f"thinking {seconds:.1f} s{counted}", *([last] if self.show == "folded" and last else [])]
        if done < total:
            return [f"reading the prompt: {done:,} of {total:,} tokens ({done * 100 // total} %)"]
        return [f"{perf_counter() - self._began:.1f} s"]


class _Drawn:
    """Markdown without white space at the ends of its lines, so that it is copied as it reads."""

    def __init__(self, text: str) -> None:
        self._markdown = Markdown(text, code_theme=_CODE_THEME)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in tight(console, options, self._markdown):
            yield from line
            yield Segment.line()


def tight(console: Console, options: ConsoleOptions, markdown: Markdown) -> list[list[Segment]]:
    """Lines without trailing white space, and without empty ones at either end."""
    lines = []
    for line in console.render_lines(markdown, options, pad=False):
        while line and not line[-1].text.strip():
            line = line[:-1]
        if line:
            last = line[-1]
            line = [*line[:-1], Segment(last.text.rstrip(), last.style)]
        lines.append(line)
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return lines
