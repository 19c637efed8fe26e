"""What a thought is worth: the same sums with thinking on and off."""

from mlx_reasoning import generate, load

model = load("demo")
for a, b in ((347, 286), (4821, 3975), (58, 67)):
    question = [{"role": "user", "content": f"What is {a} + {b}?"}]
    thoughtful, hasty = generate(model, question), generate(model, question, thinking=False)
    print(f"on: {thoughtful.content:24} off: {hasty.content:24} right: {a + b}")
