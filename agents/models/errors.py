"""Errors of language models."""

from datetime import timedelta
from inspect import cleandoc

from bus_schema.replies import Code
from mindbus.errors import Ending, MindBusError, OutOfTokens, TemporaryFailure
from mindbus.redaction import without_secrets


class ModelFailure(MindBusError):
    """The language model gave no usable answer."""

    ending = Ending.DEAD_LETTER

    def __init__(self, detail: str = "") -> None:
        # An endpoint may repeat the key that it refuses.
        detail = without_secrets(detail)
        message = " ".join(cleandoc(type(self).__doc__ or "").split())
        super().__init__(f"{message} ({detail})" if detail else message)
        self.detail = detail

    @property
    def retryable(self) -> bool:
        """True where the model may answer later."""
        return self.ending is Ending.RETRY

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.detail,), self.__dict__


class ModelUnavailable(ModelFailure, TemporaryFailure, code=Code.UNAVAILABLE):
    """The model's endpoint did not answer, or asked for patience, and the retries are used up; try again later."""

    ending = Ending.RETRY

    def __init__(self, detail: str = "", delay: timedelta | None = None) -> None:
        super().__init__(detail)
        self.delay = delay


class AnswerStalled(ModelUnavailable):
    """The model's endpoint has stopped in the middle of an answer, or never begun it; try again later."""


class ModelInterrupted(ModelUnavailable):
    """A chat has taken the place of this call at the model's endpoint; try again."""


class AnswerStopped(ModelFailure):
    """Nobody listens to the answer any more; its cost is an estimate."""


class TokensSpent(ModelFailure, OutOfTokens, code=Code.UNAVAILABLE):
    """All tokens of models for today are spent: go on after midnight (UTC), or raise MINDBUS_QUOTA_TOKENS_PER_DAY."""

    ending = Ending.REFUSE


class ModelRefused(ModelFailure):
    """The model's endpoint refused the request for good; check the model's name, the key, the prompt."""


class ModelDeclined(ModelRefused):
    """The model, or a filter of its endpoint, declined to answer; change the request or use another model."""


class PromptTooLong(ModelRefused):
    """The prompt is longer than what the model takes in; give it less, or use a model with a larger context."""


class NeedsLanguageModel(ModelRefused):
    """Only a language model can answer this; set MINDBUS_LLM_BASE_URL, then MINDBUS_LLM_MODEL."""


class AnswerMisfit(ModelFailure):
    """The answer is not what was asked for; `text` is all that the model has said, which no log repeats."""

    def __init__(self, detail: str = "", text: str = "", prompt_tokens: int = 0, completion_tokens: int = 0) -> None:
        super().__init__(detail)
        self.text, self.prompt_tokens, self.completion_tokens = text, prompt_tokens, completion_tokens


class AnswerCutOff(AnswerMisfit):
    """The answer reached the token limit before its end; raise max_tokens or ask for less."""


class EmptyAnswer(ModelFailure):
    """The model's answer was empty; try another model or another prompt."""


class SchemaMismatch(AnswerMisfit):
    """The answer does not fit its schema, even after a correction; use a stronger model or simplify the schema."""


class ModelHalfConfigured(MindBusError, ValueError):
    """A model needs both MINDBUS_LLM_BASE_URL and MINDBUS_LLM_MODEL; set neither for the offline model."""

    def __init__(self, missing: str) -> None:
        super().__init__(f"{cleandoc(type(self).__doc__ or '')} (missing: {missing})")
