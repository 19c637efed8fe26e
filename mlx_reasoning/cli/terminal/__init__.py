"""The chat that is drawn: what stands on the screen, what keys do, and what a line that begins with a slash does."""
