"""Everything that touches mlx: loading, caches, sampling and the token loops. It sees token ids, never text."""
