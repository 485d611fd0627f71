"""What goes into the forward loop and what comes out of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from torch import Tensor

    from asrcli.engine.audio import EncodedAudio

FinishReason = Literal["stop", "length", "loop", "abort"]


class LogitsRule(Protocol):
    """A constraint of a model on its next id, applied to every row that carries it at once.

    It is given what a row has produced on the host, and logits where the network runs: a rule that
    reads these back has the device wait in every step (see ``asrcli.engine.barring``). A class of
    rules that differ from row to row may have a static method ``apply_each(rules, logits,
    token_ids)``, which applies to each row its own: it is then called once for all of them.
    """

    def __call__(self, logits: Tensor, token_ids: Sequence[Sequence[int]]) -> None:
        """Change ``logits`` in place.

        Args:
            logits: float32 [num_rows, vocabulary].
            token_ids: what each row has produced so far, its prompt left out.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How the ids of one request are chosen.

    Attributes:
        max_new_tokens: ids at most, the end token included.
        eos_token_ids: ids that end the row.
        temperature: 0 takes the likeliest id; above it ids are drawn from softmax(logits / t).
        num_beams: texts that are followed at once at temperature 0, for the likeliest in all; 1
            takes the likeliest id each time.
        seed: where drawing starts; rows of one seed draw alike whatever else is in the batch.
        num_watched_ids: a row whose ids run in circles is ended; ids from here on, such as times,
            do not count. 0 watches nothing.
        logits_rules: applied in order; rows that share a rule object are treated together.
    """

    max_new_tokens: int
    eos_token_ids: frozenset[int]
    temperature: float = 0.0
    num_beams: int = 1
    seed: int = 0
    num_watched_ids: int = 0
    logits_rules: tuple[LogitsRule, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One window, ready for the network.

    Attributes:
        request_id: unique within an engine.
        prompt_token_ids: what the decoder is given before it goes on by itself.
        input_features: float32 [num_mel_bins, num_frames], on the CPU or, complete, on the device
            of the network; fewer frames than that was trained with end in silence, which goes on.
        silence_stride: of how many positions of that silence one is encoded, and stands for all.
        sampling: how ids are chosen.
        audio_span: (begin, end) of the prompt's places that audio embeddings take, where the
            network is of the decoder-only kind; what stands there in ``prompt_token_ids`` is not
            looked at.
        audio: what the encoder made of these very features before, where that is known; it is then
            not asked again.
        is_shortened: whether the features leave out context that the model was trained with.
        num_beams_in_doubt: beams with which it is worth hearing the window again where the text is
            doubtful; 1 where more have not been seen to help.
        no_speech: (position in the prompt, id) whose next-id probability there is that of "no
            speech"; None where the model has no such id.
        on_token: called from the engine's thread after each new id with the hypothesis so far;
            it must return at once.
    """

    request_id: int
    prompt_token_ids: tuple[int, ...]
    input_features: Tensor
    silence_stride: int = 1
    sampling: Sampling
    audio_span: tuple[int, int] | None = None
    audio: EncodedAudio | None = field(default=None, compare=False)
    is_shortened: bool = False
    num_beams_in_doubt: int = 1
    no_speech: tuple[int, int] | None = None
    on_token: Callable[[Hypothesis], None] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """What the network made of a request.

    Attributes:
        request_id: the request's.
        token_ids: new ids, the prompt and the end token left out.
        logprobs: natural log-probability of each of them, after the rules, at temperature 1.
        eos_logprob: that of the end token; None where the row did not end by one.
        no_speech_prob: probability that there is no speech; None where the model has none.
        finish_reason: "stop" by an end token, "length" by the bound on ids, "loop" when it ran in
            circles, of which the first round is left, "abort" when given up; None while it is
            still being produced.
        audio: what the encoder made of the request's features, for another request of the same;
            None where the network keeps audio in the prompt.
    """

    request_id: int
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    eos_logprob: float | None = None
    no_speech_prob: float | None = None
    finish_reason: FinishReason | None
    audio: EncodedAudio | None = field(default=None, compare=False, repr=False)
