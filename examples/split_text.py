"""The splitter without a model: text in any pieces, and what it is made of. It imports neither mlx nor transformers."""

from mlx_reasoning import Generation, split_reasoning

pieces = ["Let me see.\n</th", "ink>\n\nIt is `<thi", "nk>` that opens a thought."]
split = split_reasoning(pieces, "qwen3", prompt_tail="<|im_start|>assistant\n<think>\n", tools=[])
print("thought:", split.reasoning)
print("answer: ", split.content)
for event in split.events:
    kind = "thought" if isinstance(event, Generation.reasoning) else "answer"
    print(f"  {kind}: {event!r}")
