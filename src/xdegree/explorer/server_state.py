"""What all callbacks work with, and how they understand what a browser says."""

from functools import lru_cache
from typing import Any

from torch import Tensor

from ..canvas import Canvas
from . import parse
from .answers import Answers
from .catalogue import Catalogue
from .subject import Chosen, Subject


class Desk:
    """What callbacks work with: the catalogue, the answers, and drawings kept by prediction."""

    def __init__(self, catalogue: Catalogue, answers: Answers) -> None:
        self.catalogue, self.answers = catalogue, answers
        self.canvas = lru_cache(64)(self._canvas)
        """Where the nodes of a prediction stand."""

    def subject(self, raw: Any) -> Subject:
        """What a browser is looking at."""
        return self.catalogue.subject(parse.reference(raw))

    def _canvas(self, subject: Subject) -> Canvas:
        scores = self.answers.explanation(subject, subject.one.target).node_scores
        assert scores is not None
        return subject.canvas(scores.abs())

    def drawn(self, raw: Any) -> tuple[Subject, Canvas]:
        """A prediction and its canvas."""
        subject = self.subject(raw)
        return subject, self.canvas(subject)

    def logits(self, subject: Subject) -> Tensor | None:
        """What is explained instead of the prediction, of a model that ends in a softmax."""
        return self.answers.explanation(subject, subject.one.target).logits

    @staticmethod
    def groups(subject: Subject, a: Any, b: Any) -> tuple[Chosen, Chosen]:
        """What a browser selected: two groups of nodes, or two of edges, which it names by texts."""
        if any(isinstance(raw, list) and any(isinstance(item, str) for item in raw) for raw in (a, b)):
            return parse.edges(a, subject.edges), parse.edges(b, subject.edges)
        able = set(subject.nodes)
        return parse.nodes(a, able), parse.nodes(b, able)

    def target(self, subject: Subject, raw: Any) -> int:
        """The class that is explained; what does not fit is the predicted one."""
        fits = type(raw) is int and 0 <= raw < len(subject.classes)
        return raw if fits else subject.one.target


def level(raw: Any) -> int:
    """The place of the slider; what is no number is the first."""
    return int(raw) if str(raw).isdecimal() else 0
