"""A family that the table does not have: its markers, as data, on any text."""

from mlx_reasoning import ReasoningConfig, split_reasoning

config = ReasoningConfig("<ponder>", "</ponder>")
split = split_reasoning("<ponder>\nHmm.\n</ponder>\n\nYes.", config)
print(repr(split.reasoning), repr(split.content))

cut = split_reasoning("<ponder>\nHmm, and the", config, finish_reason="length")
print(repr(cut.reasoning), repr(cut.content), "cut off inside its thought:", cut.ended_inside_reasoning)
