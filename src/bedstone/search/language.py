"""Weigh semantic search by the language of a query: by its script, and by its most common words."""

import re
from collections.abc import Set

from bedstone.search.terms import STOP_WORDS

KNOWN_LANGUAGE_WEIGHT = 0.5
OTHER_LANGUAGE_WEIGHT = 0.25
OTHER_SCRIPT_WEIGHT = 0.0
KEYWORDS_ONLY = (
    "Semantic search did not take part: its model does not know the language of this query. "
    "The results come from keyword search."
)
MIN_OTHER_SCRIPT_SHARE = 0.3
LETTER = re.compile(r"[^\W\d_]")
LATIN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
# The scripts of languages that a model may know in addition to English.
SCRIPTS = {
    "ar": re.compile(r"[\u0620-\u06ff]"),
    "ja": re.compile(r"[\u3005-\u30ff]"),
    "ko": re.compile(r"[\uac00-\ud7af]"),
    "ru": re.compile(r"[\u0400-\u04ff]"),
    "th": re.compile(r"[\u0e00-\u0e7f]"),
    "zh": re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]"),
}
LATIN_LANGUAGES = frozenset({"de", "es", "fr", "it", "nl", "pl", "pt", "tr"})
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


def semantic_weight(text: str, languages: Set[str]) -> float:
    """Return the weight of the cosine in the fused score, for a model trained on these languages ("*" for all)."""
    if "*" in languages:
        return KNOWN_LANGUAGE_WEIGHT
    letters = LETTER.findall(text)
    known = len(LATIN.findall(text)) + sum(len(SCRIPTS[name].findall(text)) for name in languages if name in SCRIPTS)
    if letters and 1 - known / len(letters) >= MIN_OTHER_SCRIPT_SHARE:
        return OTHER_SCRIPT_WEIGHT
    if languages & LATIN_LANGUAGES:
        return KNOWN_LANGUAGE_WEIGHT
    words = [word.lower() for word in WORD.findall(text)]
    english = sum(word in ENGLISH for word in words)
    other = sum(word in OTHERS and word not in ENGLISH for word in words)
    return OTHER_LANGUAGE_WEIGHT if other > english else KNOWN_LANGUAGE_WEIGHT
