"""Conversations: many turns over one cache."""
