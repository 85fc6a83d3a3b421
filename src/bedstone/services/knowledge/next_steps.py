"""What a person can do about a file that could not be read."""

import re

from bedstone.records import TaskError

# From words of the reason to the way out; the first that fits counts.
STEPS: tuple[tuple[str, str], ...] = (
    (r"(?i)password|encrypted", "Save a copy without the password and add that copy."),
    (r"OCR is switched off", "Ask an administrator to enable OCR, then retry."),
    (r"Tesseract not found|no language data|no data for the language", "Install OCR, then retry."),
    (r"(?i)no text was (?:recognised|found)", "If it is a scan, retry with OCR, or add a sharper copy."),
    (r"(?i)corrupt|not a valid|^not an? ", "Open it in its program, save it again and add that copy."),
    (r"(?i)limit|nested too deeply|too many", "Split it into smaller files and add those."),
    (r"stored copy of the file is missing", "Add the file again."),
)
OTHERWISE = "Retry; if it fails again, the server log has the details."


def next_step(error: TaskError) -> str:
    """Return one sentence: how to get the text of the file after all."""
    return next((step for pattern, step in STEPS if re.search(pattern, error.message)), OTHERWISE)
