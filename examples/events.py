"""A turn as events: the thought, the answer and how it ended, as they come."""

from mlx_reasoning import Generation, load, stream_generate

model = load("demo")
for event in stream_generate(model, [{"role": "user", "content": "What is 347 + 286?"}], max_tokens=400):
    match event:
        case Generation.reasoning(text):
            print(text, end="", flush=True)
        case Generation.chunk(text):
            print(text, end="", flush=True)
        case Generation.info(info):
            print(f"\n[{info.finish_reason}, {info.usage.reasoning_tokens} of {info.usage.completion_tokens} thought]")
