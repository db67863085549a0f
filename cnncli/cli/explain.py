"""``cnncli explain``: a walk-through with the reader's own numbers."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

import click

from cnncli.cli.arguments import count_option, index_option, pair_option, path_option, shape_option
from cnncli.cli.progress import DownloadProgress
from cnncli.cli.terminal import Stream, notices, results
from cnncli.errors import OptionError, UsageError
from cnncli.explain import (
    BACKWARD_TOPICS,
    ORDERS,
    TOPICS,
    Case,
    Sample,
    SizeRequest,
    Sizes,
    Walkthrough,
    count_from,
    draw,
    explain,
    laid_out,
    read_array,
    resolve_sizes,
    take_digits,
    zeros,
)

DIGIT_SHAPE = (1, 1, 28, 28)
MNIST_HERE = Path("data", "mnist")


@dataclass(frozen=True)
class _Numbers:
    """Where the numbers come from: files, or made as the options say."""

    topic: str
    input_path: Path | None
    weight_path: Path | None
    values: str | None
    seed: int
    data_directory: Path | None


def _topic(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if value not in TOPICS:
        near = difflib.get_close_matches(value.lower().replace("_", "-"), TOPICS, n=1)
        advice = f"did you mean {near[0]}?" if near else f"there are {', '.join(TOPICS)}"
        raise click.UsageError(f"no such topic {value}; {advice}", ctx)
    return value


@click.command("explain")
@click.argument("topic", metavar=f"[{'|'.join(TOPICS)}]", callback=_topic)
@shape_option("--shape", metavar="N,C,H,W", summary="Images, channels, height, width; small by default.")
@pair_option("--kernel-size", metavar="K[,K]", at_least=1, summary="Height and width of a window; 2.")
@pair_option(
    "--stride", metavar="S[,S]", at_least=1, summary="Steps down and across; 1, for max-pool the kernel size."
)
@pair_option(
    "--padding", metavar="P[,P]", at_least=0, word="same", summary="Cells around the image, or same; 0."
)
@path_option("--input", "input_path", metavar="FILE.npy", summary="Your own images, an array (N, C, H, W).")
@click.option(
    "--values",
    type=click.Choice(["arange", "random", "digit"]),
    metavar="NAME",
    help="Images to make: arange counts from 0; random draws 0 to 9, which is the default for max-pool; "
    "digit is one of MNIST's test images.",
)
@path_option("--weight", "weight_path", metavar="FILE.npy", summary="Your own filters, (F, C, KH, KW); conv.")
@count_option("--out-channels", summary="Number of filters; conv. 2 by default.")
@shape_option(
    "--upstream-shape",
    metavar="N,C,OH,OW",
    summary="Start backward from a gradient of this shape that counts from 0; conv and max-pool.",
)
@click.option(
    "--axes",
    "order",
    type=click.Choice(list(ORDERS)),
    metavar="ORDER",
    help="Show the arrays in the order NCHW (PyTorch), HWCN (R), CHWN (this tool) or NHWC too, and where an "
    "element lands in each.",
)
@index_option("--seed", default="0", summary="Draw other random numbers, or other digits.")
@path_option("--data-dir", "data_directory", metavar="DIR", summary="Where MNIST's files are; digit.")
@path_option("--html", "html_path", metavar="FILE", summary="Write a page to play with instead.")
@click.option("--overwrite", is_flag=True, help="Replace the page that is there already.")
@click.pass_context
def explain_topic(
    ctx: click.Context,
    topic: str,
    shape: tuple[int, ...] | None,
    kernel_size: tuple[int, int] | None,
    stride: tuple[int, int] | None,
    padding: tuple[int, int] | str | None,
    input_path: Path | None,
    values: str | None,
    weight_path: Path | None,
    out_channels: int | None,
    upstream_shape: tuple[int, ...] | None,
    order: str | None,
    seed: int,
    data_directory: Path | None,
    html_path: Path | None,
    overwrite: bool,
) -> None:
    """Show every number of im2col, col2im, conv or max-pool.

    Every step with its shapes, its values, why, and the line of NumPy that does it; at the end
    whether this tool and the textbook agree.

    \b
    im2col     where each cell of the matrix comes from
    col2im     what it does, and why it is not the inverse
    conv       forward, and the three gradients
    max-pool   forward, and backward through the winners
    """
    numbers = _Numbers(topic, input_path, weight_path, values, seed, data_directory)
    request = SizeRequest(
        topic, shape, kernel_size, stride, padding or (0, 0), upstream_shape, None, out_channels
    )
    _refuse_contradictions(numbers, request)
    case = _case(numbers, request, order)
    if html_path is not None:
        if html_path.exists() and not overwrite:
            raise UsageError(f"{html_path}: exists already; name another file, or give --overwrite")
        _write_page(topic, case, html_path)
        return
    walkthrough = _explained(topic, case)
    write_walkthrough(walkthrough, results())
    if not walkthrough.agrees:
        notices().write("this tool and the textbook disagree; please report this command as a bug")
        ctx.exit(1)


def write_walkthrough(walkthrough: Walkthrough, stream: Stream) -> None:
    """Write a walk-through as wide as the stream."""
    for line in laid_out(walkthrough, stream.width):
        stream.write(stream.bold(line.text) if line.is_heading else line.text)


def _refuse_contradictions(numbers: _Numbers, request: SizeRequest) -> None:
    """Refuse options that mean nothing together."""
    topic = numbers.topic
    if numbers.input_path is not None:
        _refuse(
            "--input", "the file has its own shape and numbers", shape=request.shape, values=numbers.values
        )
    if numbers.weight_path is not None:
        _refuse(
            "--weight",
            "the file has its own shape",
            kernel_size=request.kernel_size,
            out_channels=request.out_channels,
        )
    if topic != "conv":
        _refuse(topic, "it has no filters", weight=numbers.weight_path, out_channels=request.out_channels)
    if topic not in BACKWARD_TOPICS:
        _refuse(topic, "backward is for conv and max-pool", upstream_shape=request.upstream_shape)
    if numbers.values != "digit" and numbers.data_directory is not None:
        raise UsageError("--data-dir: goes with --values digit")


def _refuse(beside: str, reason: str, **given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"{_flag(name)}: does not go with {beside}, {reason}")


def _case(numbers: _Numbers, request: SizeRequest, order: str | None) -> Case:
    """Make the arrays that the reader request for."""
    weight = _read(numbers.weight_path, "weight", "(F, C, KH, KW)")
    if weight is not None:
        F, C, KH, KW = weight.values.shape
        request = request._replace(kernel_size=(KH, KW), in_channels=C, out_channels=F)
    x = _read(numbers.input_path, "x", "(N, C, H, W)")
    if x is not None:
        request = request._replace(shape=x.values.shape)
    elif numbers.values == "digit":
        request = request._replace(shape=_digit_shape(request))
    try:
        sizes = resolve_sizes(request)
    except OptionError as error:
        raise _usage(error) from None
    return _assembled(numbers, request, sizes, x or _made(numbers, sizes), weight, order)


def _assembled(
    numbers: _Numbers, request: SizeRequest, sizes: Sizes, x: Sample, weight: Sample | None, order: str | None
) -> Case:
    F = sizes.upstream_shape[1]
    bias = count_from(1, "bias", (F,))
    if weight is None:
        weight = count_from(1, "weight", (F, sizes.shape[1], *sizes.windows.kernel_size))
    else:
        bias = zeros("bias", (F,))
    return Case(
        x,
        sizes.windows,
        upstream=count_from(1 if request.upstream_shape is None else 0, "dout", sizes.upstream_shape),
        weight=weight,
        bias=bias,
        order=order,
        upstream_shape=request.upstream_shape,
        seed=numbers.seed,
    )


def _read(path: Path | None, name: str, axes: str) -> Sample | None:
    return None if path is None else read_array(name, path, axes)


def _digit_shape(request: SizeRequest) -> tuple[int, ...]:
    if request.shape is None:
        return DIGIT_SHAPE
    if request.shape[1:] != DIGIT_SHAPE[1:]:
        raise UsageError(
            f"--shape: expected N,1,28,28 with --values digit, got {','.join(map(str, request.shape))}"
        )
    return request.shape


def _made(numbers: _Numbers, sizes: Sizes) -> Sample:
    values = numbers.values or ("random" if numbers.topic == "max-pool" else "arange")
    if values == "arange":
        return count_from(0, "x", sizes.shape)
    if values == "random":
        return draw("x", sizes.shape, numbers.seed)
    directory = numbers.data_directory
    if directory is None and MNIST_HERE.is_dir():
        directory = MNIST_HERE
    with DownloadProgress(notices()) as progress:
        return take_digits("x", sizes.shape[0], numbers.seed, directory, progress)


def _explained(topic: str, case: Case) -> Walkthrough:
    try:
        return explain(topic, case)
    except OptionError as error:
        raise _usage(error) from None


def _write_page(topic: str, case: Case, path: Path) -> None:
    # the walk-through in the terminal needs nothing of it
    from cnncli.report.explain_page import write_explain_page

    is_conv = topic == "conv" and case.weight is not None
    upstream = case.upstream if topic in BACKWARD_TOPICS else None
    try:
        write_explain_page(
            path,
            topic,
            case.x.values,
            *case.windows.geometry,
            weight=case.weight.values if is_conv and case.weight is not None else None,
            upstream=None if upstream is None else upstream.values,
        )
    except OptionError as error:
        raise _usage(error) from None
    notices().write(f"wrote {path}; open it in a browser")


def _usage(error: OptionError) -> UsageError:
    return UsageError(f"{_flag(error.option)}: expected {error.expected}, got {error.got}")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
