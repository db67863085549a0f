"""Programs that treat the program badly for minutes, and a small sample of them for every day."""
