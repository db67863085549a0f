"""Convolution: forward, and its three gradients as three matrix products."""

from __future__ import annotations

from typing import cast

import numpy as np

from cnncli.explain import textbook
from cnncli.explain.case import Case
from cnncli.explain.im2col import IMAGE_AXES, MATRIX_AXES, image_step
from cnncli.explain.lines import crop_line, padded_shape, reach, window_lines
from cnncli.explain.orders import orders_step
from cnncli.explain.walkthrough import Array, Check, Panel, Step, Walkthrough, compared, counted, nowrap
from cnncli.nn import Conv2D, batch_first, batch_last
from cnncli.nn.layout import cut_into_blocks
from cnncli.nn.options import PaddingLike

OUTPUT_AXES = ("N", "F", "OH", "OW")
WEIGHT_AXES = ("F", "C", "KH", "KW")
PLAIN_AXES = ("F", "OH*OW*N")
FLOAT32_BYTES = 4


class Convolved:
    """Everything that a convolution computes for a case, by the layer that trains.

    Attributes
    ----------
    weight : (F, C, KH, KW)
    bias : (F,)
    y, dout : (N, F, OH, OW)
    dW, db, dx : the gradients of weight, bias and images, each like what it belongs to
    """

    def __init__(self, case: Case) -> None:
        assert case.weight is not None and case.bias is not None and case.upstream is not None
        self.case = case
        self.weight, self.bias, self.dout = case.weight.values, case.bias.values, case.upstream.values
        self.layer = _layer(case, self.weight, self.bias)
        self.y = batch_first(self.layer.forward(batch_last(case.x.values))).copy()
        self.dx = batch_first(self.layer.backward(batch_last(self.dout)))
        self.dW, self.db = (self.layer.parameters[name].grad for name in ("weight", "bias"))

    @property
    def weight_matrix(self) -> Array:
        """The weight as (F, C*KH*KW)."""
        return self.weight.reshape((len(self.weight), -1))

    @property
    def dout_matrix(self) -> Array:
        """The upstream gradient as (F, OH*OW*N)."""
        matrix: Array = self.dout.transpose(1, 2, 3, 0).reshape((len(self.weight), -1))
        return matrix


def explain_conv(case: Case) -> Walkthrough:
    """Walk through a convolution, forward and backward."""
    convolved = Convolved(case)
    steps = [
        image_step(case),
        _parameters_step(convolved),
        _columns_step(case),
        _forward_step(convolved),
        _upstream_step(convolved),
        _weight_gradient_step(convolved),
        _bias_gradient_step(convolved),
        _input_gradient_step(convolved),
        _shapes_step(convolved),
        _running_step(convolved),
    ]
    if case.order is not None:
        steps.append(orders_step("x", case.x.values, case.order))
    return Walkthrough(
        title="Convolution: one matrix product forward, three gradients backward",
        answer="Forward multiplies the weight, one row for each filter, with the im2col matrix, one column "
        "for each window. Backward is three products with the upstream gradient: with the columns it is "
        "the gradient of the weight, with ones that of the bias, and the transposed weight times it, "
        "added up by col2im, is that of the input.",
        setting=(*case.setting, ("filters", f"F = {len(convolved.weight)}")),
        steps=tuple(steps),
        checks=tuple(_checks(convolved)),
    )


def _product(left: tuple[int, ...], right: tuple[int, ...]) -> str:
    """Write the shapes of a matrix product: ``(2, 4) @ (4, 6) = (2, 6)``."""
    return nowrap(f"{left} @ {right} = {(*left[:-1], *right[1:])}")


def _layer(case: Case, weight: Array, bias: Array) -> Conv2D:
    kernel_size, stride, sides = case.windows.geometry
    layer = Conv2D(
        case.shape[1:],
        out_channels=len(weight),
        kernel_size=kernel_size,
        stride=stride,
        padding=cast(PaddingLike, sides),  # a layer takes the four sides too
        dtype=np.float64,
    )
    layer.parameters["weight"].value[...] = weight
    layer.parameters["bias"].value[...] = bias
    return layer


def _parameters_step(convolved: Convolved) -> Step:
    case, F = convolved.case, len(convolved.weight)
    assert case.weight is not None and case.bias is not None
    return Step(
        part="Forward",
        title="The weight and the bias",
        why=f"{counted(F, 'filter')}, each with a kernel for every channel and one bias. "
        f"{case.weight.remark}".strip(),
        code=(*case.weight.code, *case.bias.code),
        panels=(
            Panel("weight", convolved.weight, WEIGHT_AXES),
            Panel("bias", convolved.bias, ("F",)),
        ),
    )


def _columns_step(case: Case) -> Step:
    K, L = case.cols_shape
    return Step(
        title="im2col lays every window out as a column",
        why="So that the sums of products of all windows are one matrix product. "
        "(cnncli explain im2col shows where each cell comes from.)",
        code=(*window_lines(case.windows), f"cols = windows.transpose(1, 4, 5, 2, 3, 0).reshape({K}, {L})"),
        panels=(Panel("cols", case.cols, MATRIX_AXES),),
    )


def _forward_step(convolved: Convolved) -> Step:
    (N, F, OH, OW), (K, L) = convolved.dout.shape, convolved.case.cols_shape
    return Step(
        title="Forward: y = W @ cols + b",
        why=f"{_product((F, K), (K, L))}: row f, column k is filter f times window k. With the batch as the "
        "last axis the product is already y, only laid flat.",
        code=(
            f"W = weight.reshape({F}, {K})",
            "product = W @ cols + bias[:, None]",
            f"y = product.reshape({F}, {OH}, {OW}, {N}).transpose(3, 0, 1, 2)",
        ),
        panels=(
            Panel("W", convolved.weight_matrix, ("F", "C*KH*KW")),
            Panel("y", convolved.y, OUTPUT_AXES),
        ),
    )


def _upstream_step(convolved: Convolved) -> Step:
    upstream = convolved.case.upstream
    assert upstream is not None
    F, L = convolved.dout_matrix.shape
    return Step(
        part="Backward",
        title="It starts from the upstream gradient",
        why="dout says how the loss changes with each number of y. Laid flat like the product it is G, with "
        "one row for each filter.",
        code=(*upstream.code, f"G = dout.transpose(1, 2, 3, 0).reshape({F}, {L})"),
        panels=(Panel("dout", convolved.dout, OUTPUT_AXES), Panel("G", convolved.dout_matrix, PLAIN_AXES)),
    )


def _weight_gradient_step(convolved: Convolved) -> Step:
    F, (K, L) = len(convolved.weight), convolved.case.cols_shape
    return Step(
        title="The gradient of the weight: G @ cols.T",
        why=f"{_product((F, L), (L, K))}: a weight met one cell of every window, so its gradient is the sum "
        "over all windows of that cell times the gradient of that output.",
        code=(f"dW = (G @ cols.T).reshape{convolved.weight.shape}",),
        panels=(Panel("dW", convolved.dW, WEIGHT_AXES),),
    )


def _bias_gradient_step(convolved: Convolved) -> Step:
    F, L = convolved.dout_matrix.shape
    return Step(
        title="The gradient of the bias: G @ ones",
        why=f"{_product((F, L), (L,))}: the bias was added to every output of its filter, so it collects "
        "all their gradients. A product with ones is a sum over the row; it is no mean.",
        code=(f"db = G @ np.ones({L})",),
        panels=(Panel("db", convolved.db, ("F",)),),
    )


def _input_gradient_step(convolved: Convolved) -> Step:
    case, F = convolved.case, len(convolved.weight)
    windows, (N, C, _, _), (K, L) = case.windows, case.shape, case.cols_shape
    (KH, KW), (OH, OW) = windows.kernel_size, windows.output_size
    dcols = convolved.weight_matrix.T @ convolved.dout_matrix
    return Step(
        title="The gradient of the input: col2im(W.T @ G)",
        why=f"{_product((K, F), (F, L))}: the gradient of every cell of cols. Pixels were copied to these "
        "cells, so col2im adds the gradients of the copies up. (cnncli explain col2im shows why.)",
        code=(
            "dcols = W.T @ G",
            f"cells = dcols.reshape({C}, {KH}, {KW}, {OH}, {OW}, {N})",
            f"dx = np.zeros({padded_shape(windows, N, C)})",
            f"for i, j in np.ndindex({KH}, {KW}):",
            f"    dx[:, :, {reach(windows)}] += cells[:, i, j].transpose(3, 0, 1, 2)",
            *crop_line(windows, "dx"),
        ),
        panels=(Panel("dcols", dcols, MATRIX_AXES), Panel("dx", convolved.dx, IMAGE_AXES)),
    )


def _shapes_step(convolved: Convolved) -> Step:
    F, (K, L) = len(convolved.weight), convolved.case.cols_shape
    return Step(
        part="Side by side",
        title="The same products in the book",
        why='"Deep Learning from Scratch" keeps the batch first and lays windows out as rows. Everything is '
        "turned over, and each result must be transposed back.",
        table=(
            ("", "this tool", "the book"),
            ("y", f"W @ cols: ({F}, {K}) @ ({K}, {L})", f"rows @ W.T: ({L}, {K}) @ ({K}, {F})"),
            ("dW", f"G @ cols.T: ({F}, {L}) @ ({L}, {K})", f"rows.T @ G: ({K}, {L}) @ ({L}, {F})"),
            ("db", f"G @ ones: ({F}, {L}) @ ({L},)", f"ones @ G: ({L},) @ ({L}, {F})"),
            ("dcols", f"W.T @ G: ({K}, {F}) @ ({F}, {L})", f"G @ W: ({L}, {F}) @ ({F}, {K})"),
        ),
    )


def _running_step(convolved: Convolved) -> Step:
    case = convolved.case
    n_blocks = len(cut_into_blocks(case.windows, case.cols_shape[0] * case.shape[0] * FLOAT32_BYTES))
    return Step(
        title="How training runs it",
        why="The products are these, but a matrix that is too large for the processor's cache is never laid "
        "out whole: windows are taken in blocks of rows, with one product each for y, dW and dcols.",
        table=(
            ("in float32, for this input", "number"),
            ("blocks of windows", f"{n_blocks}"),
        ),
    )


def _checks(convolved: Convolved) -> list[Check]:
    case, weight, dout = convolved.case, convolved.weight, convolved.dout
    book_y = textbook.conv(case.x.values, weight, convolved.bias, case.slide)
    book = textbook.conv_backward(case.x.values, weight, dout, case.slide)
    # the sums of absolute values are those of the same products with everything positive
    x, absolute_weight = np.abs(case.x.values), np.abs(weight)
    most_y = textbook.conv(x, absolute_weight, np.abs(convolved.bias), case.slide)
    most = textbook.conv_backward(x, absolute_weight, np.abs(dout), case.slide)
    return [
        compared("y", convolved.y, book_y, _terms(most_y, book_y)),
        compared("dW", convolved.dW, book.weight, _terms(most.weight, book.weight)),
        compared("db", convolved.db, book.bias, _terms(most.bias, book.bias)),
        compared("dx", convolved.dx, book.x, _terms(most.x, book.x)),
    ]


def _terms(most: Array, result: Array) -> float:
    return float(most.max(initial=0.0)) / max(float(np.abs(result).max(initial=0.0)), 1.0)
