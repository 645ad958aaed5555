"""Replay of a plan: token-exact continuous batching on an integer clock, request by request."""
