"""Measure search: cases, runs, labelled sets, charts."""
