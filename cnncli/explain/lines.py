"""Lines of NumPy that several walk-throughs share, with the reader's sizes in them."""

from __future__ import annotations

from cnncli.nn import Windows


def pad_lines(windows: Windows, value: str = "") -> tuple[tuple[str, ...], str]:
    """Give the lines that pad x, and the name of what to go on with."""
    if not windows.is_padded:
        return (), "x"
    top, bottom, left, right = windows.sides
    filling = f", constant_values={value}" if value else ""
    return (
        f"sides = ((0, 0), (0, 0), ({top}, {bottom}), ({left}, {right}))",
        f"padded = np.pad(x, sides{filling})",
    ), "padded"


def window_lines(windows: Windows, value: str = "") -> tuple[str, ...]:
    """Give the lines that view x as (N, C, OH, OW, KH, KW) without copying it."""
    (KH, KW), (SH, SW), _ = windows.geometry
    padding, name = pad_lines(windows, value)
    lines = (
        "from numpy.lib.stride_tricks import sliding_window_view",
        *padding,
        f"windows = sliding_window_view({name}, ({KH}, {KW}), axis=(2, 3))",
    )
    if (SH, SW) == (1, 1):
        return lines
    return (*lines, f"windows = windows[:, :, ::{SH}, ::{SW}]")


def reach(windows: Windows) -> str:
    """Give the rows and columns that cell (i, j) of all windows reads: ``i:i+3:2, j:j+3:2``."""
    (SH, SW), (OH, OW) = windows.stride, windows.output_size
    return f"{_reach('i', SH, OH)}, {_reach('j', SW, OW)}"


def crop_line(windows: Windows, name: str) -> tuple[str, ...]:
    """Give the line that takes the padding off an array (N, C, H, W)."""
    if not windows.is_padded:
        return ()
    (H, W), (top, _, left, _) = windows.image_size, windows.sides
    return (f"{name} = {name}[:, :, {top}:{top + H}, {left}:{left + W}]",)


def padded_shape(windows: Windows, n_images: int, n_channels: int) -> tuple[int, ...]:
    """Give the shape of the images with their padding."""
    (H, W), (top, bottom, left, right) = windows.image_size, windows.sides
    return n_images, n_channels, H + top + bottom, W + left + right


def place(window: str, stride: int, cell: str, before: int) -> str:
    """Give the row or column of the image that a cell of a window is: ``oh*2 + i - 1``."""
    start = window if stride == 1 else f"{window}*{stride}"
    return f"{start} + {cell}" + (f" - {before}" if before else "")


def _reach(name: str, stride: int, count: int) -> str:
    end = f"{name}:{name}+{(count - 1) * stride + 1}"
    return end if stride == 1 else f"{end}:{stride}"
