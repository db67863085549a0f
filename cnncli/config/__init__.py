"""YAML text into a checked, typed configuration, with file, line and key path in every error."""

from __future__ import annotations

from cnncli.config.build import build_augmentation, build_network, build_optimizer, build_schedule
from cnncli.config.dump import Difference, differences, dump_config
from cnncli.config.faults import Place
from cnncli.config.load import config_from_dict, load_config, parse_config
from cnncli.config.schema import (
    REQUIRED,
    AugmentConfig,
    Choice,
    Config,
    DataConfig,
    EarlyStopping,
    Field,
    LossConfig,
    TrainingConfig,
    fields_of,
)

__all__ = [
    "REQUIRED",
    "AugmentConfig",
    "Choice",
    "Config",
    "DataConfig",
    "Difference",
    "EarlyStopping",
    "Field",
    "LossConfig",
    "Place",
    "TrainingConfig",
    "build_augmentation",
    "build_network",
    "build_optimizer",
    "build_schedule",
    "config_from_dict",
    "differences",
    "dump_config",
    "fields_of",
    "load_config",
    "parse_config",
]
