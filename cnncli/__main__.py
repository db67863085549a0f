"""The console script ``cnncli``, and ``python -m cnncli``."""

from __future__ import annotations

import os
import signal
import sys

BLAS_THREADS = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "BLIS_NUM_THREADS",
)


def main() -> None:
    """Run the command line and exit with its code."""
    # One BLAS thread for each worker: the workers share out the images, and a BLAS with threads of
    # its own would get in their way and sum in an order that depends on their number. BLAS reads
    # these once, when NumPy is first imported, so nothing before this line may import it.
    os.environ.update(dict.fromkeys(BLAS_THREADS, "1"))
    # from the first moment SIGTERM ends the program as SIGINT does
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        from cnncli.cli.main import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # before `run` could see to it
        code = 130
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # what is left is Python's own end
    if code == 130:
        # after an interrupt within an import Python may end by the signal instead of with the code
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
