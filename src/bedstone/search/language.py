"""How far an embedding model can be trusted with a text: by its script, and by its commonest words."""

import re
from collections.abc import Collection

from bedstone.search.terms import STOP_WORDS

BALANCED, DOUBTFUL, USELESS = 0.5, 0.25, 0.0
FOREIGN_SHARE = 0.3
LETTER = re.compile(r"[^\W\d_]")
LATIN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
WORD = re.compile(r"[^\W\d_]+")
ENGLISH = frozenset(STOP_WORDS.split())
# The commonest words of other languages in Latin script that English does not share.
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


def vector_weight(text: str, languages: Collection[str]) -> float:
    """The share of meaning in the fused score, for a model that knows these languages ("*" for all)."""
    if "*" in languages:
        return BALANCED
    letters = LETTER.findall(text)
    if letters and 1 - len(LATIN.findall(text)) / len(letters) >= FOREIGN_SHARE:
        return USELESS
    words = [word.lower() for word in WORD.findall(text)]
    english = sum(word in ENGLISH for word in words)
    other = sum(word in OTHERS and word not in ENGLISH for word in words)
    return DOUBTFUL if other > english else BALANCED
