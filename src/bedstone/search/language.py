"""Weigh semantic search by the language of a query: by its script, and by its most common words."""

import re
from collections.abc import Collection

from bedstone.search.terms import STOP_WORDS

KNOWN_LANGUAGE_WEIGHT = 0.5
OTHER_LANGUAGE_WEIGHT = 0.25
OTHER_SCRIPT_WEIGHT = 0.0
MIN_OTHER_SCRIPT_SHARE = 0.3
LETTER = re.compile(r"[^\W\d_]")
LATIN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
WORD = re.compile(r"[^\W\d_]+")
ENGLISH = frozenset(STOP_WORDS.split())
# The most common words of other languages in Latin script that are not English words.
OTHERS = frozenset(
    word
    for line in (
        "der die das und ist nicht ein eine mit auf den dem von wie wird sind welche wer wann",
        "el la los las una que es en por para con del cómo cuál qué quién cuándo fue",
        "le les une est dans pour avec des du qui quel quelle comment sur pas",
        "il lo gli che di per sono della nel come quale",
        "os uma não com são qual quem foi",
        "het een van niet zijn voor wat welke",
        "ve bir bu için ile ne hangi kim olarak",
        "và của là có không những được trong gì ai nào",
        "och att det som på är inte vad",
        "jest nie się na jak kto co jaki",
    )
    for word in line.split()
)


def semantic_weight(text: str, languages: Collection[str]) -> float:
    """Return the weight of the cosine in the fused score, for a model trained on these languages ("*" for all)."""
    if "*" in languages:
        return KNOWN_LANGUAGE_WEIGHT
    letters = LETTER.findall(text)
    if letters and 1 - len(LATIN.findall(text)) / len(letters) >= MIN_OTHER_SCRIPT_SHARE:
        return OTHER_SCRIPT_WEIGHT
    words = [word.lower() for word in WORD.findall(text)]
    english = sum(word in ENGLISH for word in words)
    other = sum(word in OTHERS and word not in ENGLISH for word in words)
    return OTHER_LANGUAGE_WEIGHT if other > english else KNOWN_LANGUAGE_WEIGHT
