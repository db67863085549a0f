"""What a profile says, in a sentence or two."""

from __future__ import annotations

from cnncli.cli import formats
from cnncli.training.profiling import LayerProfile, PassProfile, Profile

# where the optimizer takes more of a step than this, it is the first thing to change
OPTIMIZER_SHARE = 0.3
# of what the threads could give: below, they mostly wait for one another
LOW_EFFICIENCY = 0.5


def advice(profile: Profile) -> str:
    """Say where the time goes and what to try first."""
    layer, name, one = _longest_pass(profile)
    place = f"network[{layer.indices[0]}]"
    share = round(100 * one.seconds / profile.shard_seconds)
    where = f"{share} % of a shard is spent in {layer.name} ({place}), {name}, bound by {one.bound}."
    return f"{where} {_remedy(profile, layer, one)}"


def _longest_pass(profile: Profile) -> tuple[LayerProfile, str, PassProfile]:
    passes = [(layer, name, one) for layer in profile.layers for name, one in layer.passes.items()]
    return max(passes, key=lambda entry: entry[2].seconds)


def _remedy(profile: Profile, layer: LayerProfile, one: PassProfile) -> str:
    """Choose one thing to try: what holds back the whole step comes before what holds back a layer."""
    if profile.n_shards < profile.n_threads:
        return (
            f"The batch makes {formats.counted(profile.n_shards, 'shard')} for {profile.n_threads} threads: "
            "a lower training.shard_size or a larger training.batch_size gives work to all."
        )
    optimizer_share = profile.optimizer_seconds / profile.one_thread_seconds
    if optimizer_share > OPTIMIZER_SHARE:
        return (
            f"The optimizer takes {round(100 * optimizer_share)} % of a step: with a larger "
            "training.batch_size it is called less often in an epoch."
        )
    if profile.speed_up < LOW_EFFICIENCY * profile.n_threads:
        return (
            f"{profile.n_threads} threads do the work of {profile.speed_up:.1f}: try a larger "
            "training.shard_size, or fewer --threads if other programs need the processor."
        )
    return _remedy_of_layer(layer, one)


def _remedy_of_layer(layer: LayerProfile, one: PassProfile) -> str:
    if one.bound == "calls":
        return "A larger training.shard_size does more in each call."
    if layer.name.startswith("dense"):
        lighter = "mean fewer multiply-adds" if one.bound == "compute" else "make its weight smaller"
        return f"A pool or stride before it, or fewer out_features, {lighter}."
    if one.bound == "compute":
        return "Fewer channels, a smaller kernel or a larger stride mean fewer multiply-adds."
    if layer.name == "conv2d":
        return (
            "A max_pool2d without padding right behind it would be computed together with it, on smaller "
            "arrays; a larger stride makes them smaller too."
        )
    if layer.name.startswith("batch_norm"):
        return "A pool before it instead of behind it makes its arrays smaller."
    return "Fewer channels, a larger stride or a lower training.shard_size make its arrays smaller."
