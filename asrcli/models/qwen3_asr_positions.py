"""How many positions Qwen3-ASR's encoder makes of a window; the prompt has as many places."""

from __future__ import annotations

FRAMES_PER_SECOND = 100
CHUNK_LENGTH = 100  # frames that the encoder's convolutions take by themselves
DOWNSAMPLING = 8  # frames to a position, within a chunk: three convolutions halve it


def count_positions(num_frames: int, chunk_length: int = CHUNK_LENGTH) -> int:
    """Positions of so many frames; a part that is left over counts as a whole one."""
    num_chunks, rest = divmod(num_frames, chunk_length)
    return num_chunks * -(-chunk_length // DOWNSAMPLING) + -(-rest // DOWNSAMPLING)
