"""The command line: the only place that knows click and tqdm, prints, or exits."""
