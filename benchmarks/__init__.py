"""Measurements: against PyTorch on the same CPU, of the whole command, and against textbook code."""
