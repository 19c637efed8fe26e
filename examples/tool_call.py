"""A tool: the model asks for it, we run it, and the model answers with its result."""

import json

from mlx_reasoning import generate, load

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The current weather in a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]

model = load("demo")
messages = [{"role": "user", "content": "What is the weather in Paris?"}]
asked = generate(model, messages, tools=TOOLS)
call = asked.tool_calls[0]
print("the model calls", call.name, call.arguments)

result = {"city": call.arguments["city"], "temperature": 18, "condition": "sunny"}
messages.append(
    {
        "role": "assistant",
        "content": asked.content,
        "reasoning_content": asked.reasoning,  # wanted back inside a tool loop
        "tool_calls": [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        ],
    }
)
messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})
print(generate(model, messages, tools=TOOLS).content)
