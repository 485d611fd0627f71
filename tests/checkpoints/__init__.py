"""Tiny Qwen3-ASR and GLM-ASR checkpoints that really transcribe, and the speech they know."""
