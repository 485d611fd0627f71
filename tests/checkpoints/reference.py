"""transformers' own way from samples to ids, for checkpoints of both families."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

Samples = NDArray[np.float32]


class Reference:
    """A checkpoint folder in transformers' processor and model, in float32."""

    def __init__(self, folder: Path) -> None:
        self.processor = transformers.AutoProcessor.from_pretrained(folder)
        config = transformers.AutoConfig.from_pretrained(folder)
        architecture = getattr(transformers, config.architectures[0])
        self.model = architecture.from_pretrained(folder, dtype=torch.float32).eval()

    @torch.inference_mode()
    def generate(self, samples: Samples, *, max_new_tokens: int, **request: Any) -> tuple[int, ...]:
        """New ids of one clip by itself, without the end token.

        Args:
            request: what ``apply_transcription_request`` takes: language, prompt.
        """
        inputs = self.processor.apply_transcription_request([samples], **request)
        ids = self.model.generate(**inputs, max_new_tokens=max_new_tokens, do_sample=False)
        ends = self.model.generation_config.eos_token_id
        new = ids[0, inputs["input_ids"].shape[1] :].tolist()
        return tuple(token_id for token_id in new if token_id not in ends)
