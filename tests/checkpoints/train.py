"""Train a tiny checkpoint from nothing: ``python -m tests.checkpoints.train qwen3-asr``.

Needs flite and espeak-ng. Writes the checkpoint to ``tests/data``, in an hour and a quarter on
one core; ``python -m tests.checkpoints.train speech`` makes the test speech beside it.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from tests.checkpoints import DATA, SPEECH, processors
from tests.checkpoints.mixing import Mixer, Utterance
from tests.checkpoints.speech_bank import save_bank
from tests.checkpoints.synthesis import make_bank
from tests.checkpoints.vocabulary import ALL_WORDS

WARM_UP_STEPS = 100
BATCH_DURATION = 150.0  # s of audio, with padding
POOL = 192  # utterances that are sorted by length before they are cut into batches
CONTEXT_SHARE = 0.12
PROMPTS = ("Write down the words", "Transcribe", "What is said")  # for GLM, beside its own
CTC_LAYER = 1  # where words are read off the language model's audio positions
IGNORED = -100


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A part of the training, with a cosine of its own.

    Attributes:
        num_steps: how many batches it takes: half an hour's, on one core.
        rate: learning rate at its peak.
        long: share of long utterances.
        durations: shortest and longest of these, in seconds, silence around them left out.
        ctc: weight of the auxiliary loss in the first 60 % of the stage; a third of it later.
        row: for GLM, share of batches in rows of the real 30 s; ten times as much near the end.
    """

    num_steps: int
    rate: float
    long: float
    durations: tuple[float, float]
    ctc: float
    row: float


STAGES = (
    Stage(num_steps=2000, rate=2e-3, long=0.3, durations=(3.0, 11.0), ctc=0.5, row=0.02),
    # Windows of full length, which are mostly what recordings are cut into.
    Stage(num_steps=1800, rate=1e-3, long=0.8, durations=(7.0, 12.0), ctc=0.0, row=0.05),
    # As recordings are heard: windows that are full, for GLM in rows of 30 s.
    Stage(num_steps=450, rate=4e-4, long=0.9, durations=(9.0, 12.0), ctc=0.0, row=0.4),
)


@dataclass(frozen=True, slots=True)
class Example:
    """An utterance beside the ids that come before its audio, behind it, and as the answer."""

    utterance: Utterance
    before: list[int]
    behind: list[int]
    answer: list[int]


class Qwen3AsrTask:
    """How Qwen3-ASR is asked and what it answers."""

    languages = ("English", "English", "English", "Spanish")

    def __init__(self) -> None:
        self.processor = processors.qwen3_asr_processor()
        self.model = processors.qwen3_asr_model(self.processor)

    def example(self, utterance: Utterance, chance: random.Random) -> Example:
        context = ""
        if chance.random() < CONTEXT_SHARE:
            context = " ".join(chance.choices(ALL_WORDS, k=chance.randint(1, 6)))
        before = f"<|im_start|>system\n{context}<|im_end|>\n<|im_start|>user\n<|audio_start|>"
        behind = "<|audio_end|><|im_end|>\n<|im_start|>assistant\n"
        answer = f"language {utterance.language}<asr_text>{utterance.text}<|im_end|>"
        return Example(utterance, *(_ids(self.processor, t) for t in (before, behind, answer)))

    def features(
        self,
        samples: list[NDArray[np.float32]],
        chance: random.Random,
        stage: Stage,
        progress: float,
    ) -> tuple[Tensor, Tensor]:
        """Features window by window, padded as features: (batch, mel, frames), (batch, frames)."""
        extract = self.processor.feature_extractor
        made = [
            extract([one], sampling_rate=16000, padding=True, return_attention_mask=True)
            for one in samples
        ]
        length = max(one["input_features"].shape[-1] for one in made)
        pad = [length - one["input_features"].shape[-1] for one in made]
        features = [
            functional.pad(one["input_features"][0], (0, p))
            for one, p in zip(made, pad, strict=True)
        ]
        masks = [
            functional.pad(one["attention_mask"][0], (0, p))
            for one, p in zip(made, pad, strict=True)
        ]
        return torch.stack(features), torch.stack(masks)


class GlmAsrTask:
    """How GLM-ASR is asked and what it answers."""

    languages = ("English",)

    def __init__(self) -> None:
        self.processor = processors.glm_asr_processor()
        self.model = processors.glm_asr_model(self.processor)

    def example(self, utterance: Utterance, chance: random.Random) -> Example:
        prompt = self.processor.default_transcription_prompt
        if chance.random() < CONTEXT_SHARE:
            prompt = chance.choice(PROMPTS)
        before = "<|user|>\n<|begin_of_audio|>"
        behind = f"<|end_of_audio|><|user|>\n{prompt}<|assistant|>\n"
        answer = f"{utterance.text}<|endoftext|>"
        return Example(utterance, *(_ids(self.processor, t) for t in (before, behind, answer)))

    def features(
        self,
        samples: list[NDArray[np.float32]],
        chance: random.Random,
        stage: Stage,
        progress: float,
    ) -> tuple[Tensor, Tensor]:
        """Rows of one length: short ones at first for speed, the real 30 s now and then."""
        num_frames = -(-max(len(one) for one in samples) // 1280) * 8
        num_frames += chance.choice((0, 0, 0, 0, 0, 80, 320))
        if chance.random() < (stage.row if progress < 0.85 else 10 * stage.row):
            num_frames, samples = 3000, samples[:8]
        made = self.processor.feature_extractor(
            samples, sampling_rate=16000, padding="max_length", max_length=num_frames * 160,
            return_attention_mask=True, return_tensors="pt",
        )  # fmt: skip
        return made["input_features"], made["attention_mask"]


def _ids(processor: Any, text: str) -> list[int]:
    ids: list[int] = processor.tokenizer(text, add_special_tokens=False).input_ids
    return ids


def make_utterance(
    mixer: Mixer, languages: tuple[str, ...], stage: Stage, chance: random.Random
) -> Utterance:
    """One utterance of the mixture that the checkpoints are trained on."""
    kind = chance.random()
    language = chance.choice(languages)
    if kind < 0.04:
        return mixer.nothing()
    if kind < 0.04 + stage.long:
        duration = chance.uniform(*stage.durations)
        make = mixer.stream if chance.random() < 0.4 else mixer.long
        return mixer.in_the_wild(make(language, duration))
    if chance.random() < 0.55:
        return mixer.in_the_wild(mixer.sequence(language, chance.randint(1, 8)))
    return mixer.in_the_wild(mixer.phrase(language))


def make_batches(
    task: Any, mixer: Mixer, stage: Stage, chance: random.Random
) -> Iterator[list[Example]]:
    """Batches of like length, without end."""
    while True:
        pool = [make_utterance(mixer, task.languages, stage, chance) for _ in range(POOL)]
        pool.sort(key=lambda utterance: utterance.duration)
        batches: list[list[Example]] = []
        while pool:
            size = max(1, min(len(pool), 64, int(BATCH_DURATION / pool[-1].duration)))
            batches.append([task.example(one, chance) for one in pool[-size:]])
            del pool[-size:]
        chance.shuffle(batches)
        yield from batches


@dataclass(frozen=True, slots=True)
class Batch:
    """Model inputs, labels, and for the auxiliary loss each row's audio length and word ids."""

    inputs: dict[str, Tensor]
    labels: Tensor
    num_audio_tokens: list[int]
    word_ids: list[list[int]]


def collate(
    task: Any, examples: list[Example], stage: Stage, chance: random.Random, progress: float
) -> Batch:
    """Pad a list of examples on the right."""
    samples = [example.utterance.samples for example in examples]
    features, mask = task.features(samples, chance, stage, progress)
    examples = examples[: len(features)]
    counts = [int(n) for n in task.processor._get_audio_token_length(mask.sum(-1))]
    audio_id = task.model.config.audio_token_id
    prompts = [e.before + [audio_id] * n + e.behind for e, n in zip(examples, counts, strict=True)]
    width = max(len(p) + len(e.answer) for p, e in zip(prompts, examples, strict=True))
    ids = torch.full((len(examples), width), task.processor.tokenizer.pad_token_id)
    attention, labels = torch.zeros_like(ids), torch.full_like(ids, IGNORED)
    for row, (prompt, example) in enumerate(zip(prompts, examples, strict=True)):
        length = len(prompt) + len(example.answer)
        ids[row, :length] = torch.tensor(prompt + example.answer)
        attention[row, :length] = 1
        labels[row, len(prompt) : length] = torch.tensor(example.answer)
    inputs = {
        "input_ids": ids,
        "attention_mask": attention,
        "input_features": features,
        "input_features_mask": mask,
    }
    words = [[ALL_WORDS.index(word) + 1 for word in e.utterance.words] for e in examples]
    return Batch(inputs, labels, counts, words)


def ctc_loss(states: Tensor, head: nn.Module, batch: Batch) -> Tensor:
    """Words read off the audio positions; ``states`` is (audio tokens of all rows, hidden).

    Without it nothing happens for long: the answer alone teaches no alignment. Qwen's encoder
    restarts its positions every second, so order is only known inside the language model.
    """
    rows = torch.split(head(states), batch.num_audio_tokens)
    scores = nn.utils.rnn.pad_sequence(list(rows)).log_softmax(-1)
    loss = functional.ctc_loss(
        scores,
        torch.tensor([word for row in batch.word_ids for word in row], dtype=torch.long),
        torch.tensor(batch.num_audio_tokens),
        torch.tensor([len(row) for row in batch.word_ids]),
        reduction="none",
        zero_infinity=True,
    )
    return (loss / torch.tensor([max(1, len(row)) for row in batch.word_ids])).mean()


class Trainer:
    """AdamW on one cosine over a stage; one long cosine beats warm restarts."""

    def __init__(self, task: Any, stage: Stage) -> None:
        self._task, self._stage = task, stage
        hidden = task.model.config.text_config.hidden_size
        self._heads = nn.ModuleList(nn.Linear(hidden, len(ALL_WORDS) + 1) for _ in range(2))
        parameters = [*task.model.parameters(), *self._heads.parameters()]
        self._parameters = parameters
        groups = [
            {"params": [p for p in parameters if p.ndim > 1], "weight_decay": 0.02},
            {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
        ]
        self._optimizer = torch.optim.AdamW(groups, lr=stage.rate, betas=(0.9, 0.98))
        self._states: dict[str, Tensor] = {}
        layer = task.model.model.language_model.layers[CTC_LAYER]
        layer.register_forward_hook(self._keep)

    def _keep(self, _module: nn.Module, _inputs: Any, output: Any) -> None:
        self._states["language model"] = output[0] if isinstance(output, tuple) else output

    def step(self, batch: Batch, step: int, progress: float) -> tuple[float, float, float]:
        """One update; gives the losses of answer and words, and the share of right answer ids."""
        rate = self._stage.rate * min(1.0, (step + 1) / WARM_UP_STEPS)
        rate *= 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress))
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        output = self._task.model(**batch.inputs, use_cache=False)
        answering = batch.labels[:, 1:] != IGNORED
        scores, right = output.logits[:, :-1][answering], batch.labels[:, 1:][answering]
        answer = functional.cross_entropy(scores, right)
        at_audio = batch.inputs["input_ids"] == self._task.model.config.audio_token_id
        words = ctc_loss(self._states["language model"][at_audio], self._heads[0], batch)
        early = ctc_loss(output.audio_hidden_states, self._heads[1], batch)
        weight = self._stage.ctc * (1.0 if progress < 0.6 else 0.3)
        loss = answer + weight * (words + 0.5 * early)
        self._optimizer.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(self._parameters, 1.0)
        self._optimizer.step()
        share_right = (scores.argmax(-1) == right).float().mean()
        return answer.item(), words.item(), share_right.item()

    def run(self, batches: Iterator[list[Example]], chance: random.Random, folder: Path) -> None:
        """Train, with a line every hundred steps and the state so far saved every five hundred."""
        start = time.monotonic()
        means = np.zeros(3)
        for step, examples in enumerate(islice(batches, self._stage.num_steps)):
            progress = step / self._stage.num_steps
            batch = collate(self._task, examples, self._stage, chance, progress)
            means += self.step(batch, step, progress)
            if step % 100 == 99:
                answer, words, right = means / 100
                minutes = (time.monotonic() - start) / 60
                print(
                    f"{minutes:5.1f} min  step {step + 1}  answer {answer:.3f}"
                    f"  words {words:.3f}  right {right:.3f}",
                    flush=True,
                )
                means[:] = 0
            if step % 500 == 499:
                save(self._task, folder)
        save(self._task, folder)


def save(task: Any, folder: Path) -> None:
    """Write the checkpoint in float16, ready for ``from_pretrained``."""
    config = task.model.generation_config
    config.eos_token_id = task.model.config.text_config.eos_token_id
    config.pad_token_id = task.processor.tokenizer.pad_token_id
    config.max_new_tokens = 64
    weights = {name: value.half() for name, value in task.model.state_dict().items()}
    task.model.save_pretrained(folder, state_dict=weights)
    task.processor.save_pretrained(folder)
    # transformers states the format of the model in memory.
    path = folder / "config.json"
    stated = json.loads(path.read_text())
    for part in (stated, stated["text_config"], stated["audio_config"]):
        if "dtype" in part:
            part["dtype"] = "float16"
    path.write_text(json.dumps(stated, indent=2, sort_keys=True) + "\n")


TASKS = {"qwen3-asr": Qwen3AsrTask, "glm-asr": GlmAsrTask}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=[*TASKS, "speech"])
    parser.add_argument("--speed", type=float, default=1.0, help="shortens all stages")
    parser.add_argument("--resume", type=Path, help="go on from a checkpoint, at the last stage")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--into", type=Path, default=DATA)
    arguments = parser.parse_args()
    if arguments.what == "speech":
        save_bank(make_bank(1000, takes=2, phrases=8, held_out=True), arguments.into / SPEECH.name)
        return
    torch.manual_seed(arguments.seed)
    torch.set_num_threads(1)
    chance = random.Random(arguments.seed)
    task: Any = TASKS[arguments.what]()
    bank = make_bank(arguments.seed, takes=12, phrases=350, held_out=False)
    print(len(bank.recordings), "recordings", flush=True)
    mixer = Mixer(bank, arguments.seed, held_out=False)
    stages: Sequence[Stage] = STAGES
    if arguments.resume is not None:
        task.model = type(task.model).from_pretrained(arguments.resume, dtype=torch.float32)
        stages = STAGES[-1:]
    for stage in stages:
        stage = replace(stage, num_steps=round(stage.num_steps / arguments.speed))
        batches = make_batches(task, mixer, stage, chance)
        Trainer(task, stage).run(batches, chance, arguments.into / f"{arguments.what}-tiny")


if __name__ == "__main__":
    main()
