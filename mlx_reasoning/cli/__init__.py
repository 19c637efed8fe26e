"""The commands. The only room that prints; a command parses, calls one function, and prints."""
