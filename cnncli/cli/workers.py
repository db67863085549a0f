"""The workers that a command computes with.

Apart from the options: whoever only declares ``--threads`` need not wait for the engine to be imported.
"""

from __future__ import annotations

from cnncli.cli.options import MAX_THREADS
from cnncli.config import Config
from cnncli.errors import UsageError
from cnncli.training import Workers, available_cores
from cnncli.training.gradients import SHARDS_IN_FLIGHT


def thread_count(threads: int | None, config: Config) -> int:
    """Count the threads to start: as the command line says, or the configuration, or one for each core.

    More than can have a shard at the same time would only take memory, so they are left out.

    Raises
    ------
    ConfigError : the configuration asks for an absurd number
    """
    configured = config.training.threads
    if threads is None and configured is not None and configured > MAX_THREADS:
        raise config.error("training.threads", f"expected at most {MAX_THREADS}, got {configured}")
    return min(threads or configured or available_cores(), SHARDS_IN_FLIGHT)


def start_workers(threads: int | None, config: Config) -> Workers:
    """Start as many threads as `thread_count` says.

    Raises
    ------
    ConfigError : the configuration asks for an absurd number
    UsageError : the operating system does not start so many
    """
    n_workers = thread_count(threads, config)
    try:
        return Workers(n_workers)
    except RuntimeError as error:
        raise UsageError(f"cannot start {n_workers} threads ({error}); use fewer --threads") from None
