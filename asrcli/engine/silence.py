"""The silence behind a short window, thinned out.

A network that was trained on windows of one length runs away on shorter ones, and spends most of
its time on silence where short ones are filled up. But that silence is the same everywhere: its
positions differ in nothing but their place. So only every n-th of them is encoded, and counts n
times wherever something is attended to: the logarithm of its weight is added to its score, as in
"proportional attention" (Bolya et al. 2022, *Token Merging: Your ViT But Faster*).
"""

from __future__ import annotations

import torch
from torch import Tensor

LOOK_AHEAD = 3  # positions of silence to convolve behind the audio; the last one sees the edge


def add_silence(
    states: Tensor, num_positions: int, stride: int, places: Tensor
) -> tuple[Tensor, Tensor]:
    """Complete what was convolved of windows by the silence that follows.

    Args:
        states: [num_windows, num_positions + LOOK_AHEAD, width]: of the audio, which ends in
            silence, and of a little more of that.
        num_positions: of the audio.
        stride: positions of silence that one stands for.
        places: [num_places, width]: the embedding of every place that the network knows.

    Returns:
        States [num_windows, n, width] with their places, and the logarithms [n] of how many places
        each of them stands for.
    """
    spans = torch.arange(num_positions, len(places), stride)
    weights = (len(places) - spans).clamp(max=stride)
    middle = torch.cat([torch.arange(num_positions), spans + weights // 2]).to(places.device)
    silence = states[:, num_positions + 1, None].expand(-1, len(spans), -1)
    log_weights = torch.cat([torch.zeros(num_positions), weights.float().log()]).to(places)
    return torch.cat([states[:, :num_positions], silence], dim=1) + places[middle], log_weights
