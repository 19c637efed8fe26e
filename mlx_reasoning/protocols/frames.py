"""The protocols of message frames, as data for `decode/frames.py`."""

from __future__ import annotations

from .config import FrameProtocol

HARMONY = FrameProtocol(
    "harmony",
    opens=("<|start|>",),
    parts=("<|channel|>", "<|constrain|>"),
    bodies=("<|message|>",),
    closes=("<|end|>", "<|return|>", "<|call|>"),
    routes=((r"to=(?!assistant|user)\S", "call"), (r"analysis", "reasoning")),
    bare=("assistant", "analysis", "commentary", "final", "to="),
    call_ends=("<|call|>", "<|end|>", "<|return|>"),
    to_answer="<|end|><|start|>assistant<|channel|>final<|message|>",
)
ONYX = FrameProtocol(
    "onyx",
    opens=("<|start|>",),
    bodies=("<|message|>",),
    closes=("<|eom|>", "<|eot|>"),
    routes=((r"to=self\b", "reasoning"), (r"to=(?!user\b|commentary\b)\S", "call")),
    bare=("assistant", "to="),
    call_ends=("<|eom|>", "<|eot|>"),
    calls_in_answers=True,
    to_answer="<|eom|><|start|>assistant to=user<|message|>",
)
XTML = FrameProtocol(
    "xtml",
    opens=("<|open|>",),
    bodies=("<|sep|>",),
    closes=("<|close|>",),
    named_closes=True,
    routes=((r"^think\b", "reasoning"), (r"^tools\b", "call")),
    call_ends=("<|close|>tools<|sep|>",),
    to_answer="<|close|>think<|sep|><|open|>response<|sep|>",
)
SOLAR = FrameProtocol(
    "solar",
    opens=("<|begin|>",),
    direct=(("<|think|>", "reasoning"), ("<|content|>", "response"), ("<|tool_calls|>", "call")),
    closes=("<|end|>", "<|calls|>"),
    bare=("assistant",),
    call_ends=("<|calls|>", "<|end|>"),
    to_answer="<|end|><|begin|>assistant<|content|>",
)
INKLING = FrameProtocol(
    "inkling",
    opens=("<|message_model|>",),
    direct=(
        ("<|content_thinking|>", "reasoning"),
        ("<|content_text|>", "response"),
        ("<|content_invoke_tool_json|>", "call"),
    ),
    closes=("<|end_message|>",),
    call_ends=("<|end_message|>",),
    to_answer="<|end_message|><|message_model|><|content_text|>",
)
