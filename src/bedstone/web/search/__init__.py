"""Search over everything: the list, the preview beside it, the comparison of modes."""
