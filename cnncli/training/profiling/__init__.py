"""Where the time of a training step goes: each layer's time beside its work and the machine's rates."""

from __future__ import annotations

from cnncli.training.profiling.plan_work import Work
from cnncli.training.profiling.reference_rates import Bound, ReferenceRates
from cnncli.training.profiling.report import LayerProfile, PassProfile, Profile
from cnncli.training.profiling.step import profile_step

__all__ = ["Bound", "LayerProfile", "PassProfile", "Profile", "ReferenceRates", "Work", "profile_step"]
