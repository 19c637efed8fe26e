"""What is drawn: Markdown in blocks whatever the pieces are, nothing twice, nothing lost."""

from __future__ import annotations

from io import StringIO
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from mlx_reasoning import Generation
from mlx_reasoning.cli.terminal.drawing import TurnDrawing
from mlx_reasoning.cli.terminal.markdown import LONGEST, Block, Blocks

from ..cuts import every_cut

ANSWER = """# Title

A paragraph of
two lines.

- one
- two

  with more

1. first
2. second

```python
def f():

    return 1
```

| a | b |
| - | - |
| 1 | 2 |

Last words"""


def blocks(pieces: list[str]) -> list[Block]:
    cutter = Blocks()
    return [block for piece in pieces for block in cutter.push(piece)] + cutter.finish()


def test_each_block_is_one_thing() -> None:
    first = [block.text.splitlines()[0] for block in blocks([ANSWER])]
    assert first == ["# Title", "A paragraph of", "- one", "1. first", "```python", "| a | b |", "Last words"]


def test_blocks_are_the_same_under_every_cut() -> None:
    for text in (ANSWER[:60], ANSWER[60:120], ANSWER[120:]):
        whole = blocks([text])
        for pieces in every_cut(text):
            assert blocks(list(pieces)) == whole


MARKDOWN = st.lists(
    st.sampled_from(
        ["word", " ", "\n", "\n\n", "- item\n", "```\n", "```py\n", "~~~\n", "# h\n", "  more\n", "1. x\n", "`"]
    )
).map("".join)


@given(text=MARKDOWN, cuts=st.lists(st.integers(0, 60)))
def test_no_text_is_lost_or_drawn_twice(text: str, cuts: list[int]) -> None:
    at = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[a:b] for a, b in pairwise(at)]
    found = blocks(pieces)
    assert found == blocks([text])
    words = [word for block in found for word in block.text.split() if word.strip("`~")]
    fences = sum(block.joined for block in found)  # a code block that was cut says its language again
    assert abs(len(words) - len([word for word in text.split() if word.strip("`~")])) <= fences


@pytest.mark.parametrize("line", ["code", "- item"])
def test_what_is_open_stays_small_and_goes_on_joined(line: str) -> None:
    text = "```\n" * (line == "code") + f"{line}\n" * 100
    cutter = Blocks()
    done = []
    for char in text:
        done += cutter.push(char)
        assert cutter.open.text.count("\n") <= LONGEST + 1
    done += cutter.finish()
    assert len(done) > 5 and all(block.joined for block in done[1:])
    assert sum(block.text.count(line) for block in done) == 100


def drawn(events: list[object], show: str = "folded", width: int = 40) -> str:
    out = StringIO()
    console = Console(file=out, force_terminal=False, width=width, highlight=False)
    with TurnDrawing(console, show, lambda: 7) as drawing:  # type: ignore[arg-type]
        for event in events:
            drawing.push(event)  # type: ignore[arg-type]
    return out.getvalue()


def test_a_turn_without_a_terminal_is_its_lines_without_trailing_space() -> None:
    text = drawn([Generation.reasoning("Hm.\nSo."), *(Generation.chunk(char) for char in ANSWER)], width=60)
    assert text.startswith("thought for 0.0 s, 7 tokens") and "Hm." not in text
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    for word in ("Title", "paragraph", "one", "with more", "second", "return 1", "Last words"):
        assert text.count(word) == 1, text


@given(text=st.text(st.sampled_from("ab \n")), show=st.sampled_from(["full", "hidden", "folded"]))
def test_a_thought_stands_whole_or_not_at_all(text: str, show: str) -> None:
    shown = drawn([*(Generation.reasoning(char) for char in text), Generation.chunk("Yes.")], show, 10_000)
    assert shown.endswith("Yes.\n")
    expected = text.split() if show == "full" else []
    told = [] if show == "hidden" or not text else ["thought"]
    lines = shown.partition("thought for")[0] if told else shown.removesuffix("Yes.\n")
    assert lines.split() == expected


def test_a_long_line_of_a_thought_is_not_kept_open() -> None:
    words = [f"w{number} " for number in range(5000)]
    shown = drawn([*(Generation.reasoning(word) for word in words), Generation.chunk("Yes.")], "full", 10_000)
    assert shown.split()[:5000] == "".join(words).split()
