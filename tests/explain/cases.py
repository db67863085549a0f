"""Cases to explain: of a geometry that hypothesis drew, or as few words as possible."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import assume
from numpy.typing import NDArray

from cnncli.explain import Case, Panel, Sample, SizeRequest, Walkthrough, count_from, resolve_sizes
from cnncli.nn import windows_over
from tests.nn.geometries import Geometry

OUT_CHANNELS = 3


def given(name: str, values: NDArray[Any]) -> Sample:
    """Wrap an array whose line of code hands it over as it is."""
    return Sample(values, (f"{name} = given_{name}",))


def case_of_geometry(geometry: Geometry, *, pooling: bool = False, whole: bool = False) -> Case:
    """Make a case with random numbers; whole numbers tie now and then."""
    rng = geometry.rng
    windows = windows_over(geometry.image_size, geometry.kernel_size, geometry.stride, geometry.padding)
    (KH, KW), (top, bottom, left, right) = windows.kernel_size, windows.sides
    assume(not pooling or (max(top, bottom) <= KH // 2 and max(left, right) <= KW // 2))
    F = geometry.C if pooling else OUT_CHANNELS
    shape = (geometry.N, geometry.C, *geometry.image_size)
    draw = (lambda size: rng.integers(-3, 4, size).astype(float)) if whole else rng.standard_normal
    return Case(
        given("x", draw(shape)),
        windows,
        upstream=given("dout", draw((geometry.N, F, *windows.output_size))),
        weight=given("weight", draw((F, geometry.C, KH, KW))),
        bias=given("bias", draw((F,))),
        order="HWCN",
        upstream_shape=(geometry.N, F, *windows.output_size),
        seed=geometry.seed,
    )


def case_of(x: NDArray[Any], **request: Any) -> Case:
    """Make a case of images (N, C, H, W), counting from 1 in all else."""
    sizes = resolve_sizes(SizeRequest(request.pop("topic", "im2col"), shape=x.shape, **request))
    F = sizes.upstream_shape[1]
    return Case(
        given("x", x),
        sizes.windows,
        upstream=count_from(1, "dout", sizes.upstream_shape),
        weight=count_from(1, "weight", (F, x.shape[1], *sizes.windows.kernel_size)),
        bias=count_from(1, "bias", (F,)),
    )


def panels(walkthrough: Walkthrough) -> dict[str, Panel]:
    """Give every panel by its name; of several the last."""
    return {panel.name: panel for step in walkthrough.steps for panel in step.panels}


def run_code(walkthrough: Walkthrough, case: Case) -> dict[str, Any]:
    """Run all lines of a walk-through as they stand, and return what they define."""
    handed = {"x": case.x, "dout": case.upstream, "weight": case.weight, "bias": case.bias}
    names: dict[str, Any] = {f"given_{name}": g.values.copy() for name, g in handed.items() if g is not None}
    exec("\n".join(line for step in walkthrough.steps for line in step.code), names)
    return names


def check_code(walkthrough: Walkthrough, case: Case) -> None:
    """Check that the lines of code give what stands in the panels; NaN stands for what is not shown."""
    names = run_code(walkthrough, case)
    for step in walkthrough.steps:
        for panel in step.panels:
            from_code = np.asarray(eval(panel.name, names), dtype=float)
            assert from_code.shape == panel.values.shape, panel.name
            shown = ~np.isnan(panel.values.astype(float))
            assert np.all(from_code[~shown] == 0), panel.name
            np.testing.assert_allclose(
                from_code[shown], panel.values[shown], rtol=0, atol=1e-11, err_msg=panel.name
            )
