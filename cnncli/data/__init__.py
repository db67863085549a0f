"""Data sets: reading and verifying them, splitting, normalising, and the order of an epoch."""

from __future__ import annotations

from cnncli.data.augment import Augmentation
from cnncli.data.batches import batch_slices, epoch_order, shard_slices
from cnncli.data.catalog import CATALOG, KnownDataset, KnownFile, Part, unknown_dataset
from cnncli.data.dataset import (
    Dataset,
    DatasetDescription,
    Split,
    describe_dataset,
    is_at_hand,
    load_dataset,
    load_split,
    split_validation,
)
from cnncli.data.idx import IdxFile, parse_idx, read_idx, read_idx_header
from cnncli.data.normalization import Normalization
from cnncli.data.randomness import stream
from cnncli.data.sources import DownloadListener, Transfer, cache_directory

__all__ = [
    "CATALOG",
    "Augmentation",
    "Dataset",
    "DatasetDescription",
    "DownloadListener",
    "IdxFile",
    "KnownDataset",
    "KnownFile",
    "Normalization",
    "Part",
    "Split",
    "Transfer",
    "batch_slices",
    "cache_directory",
    "describe_dataset",
    "epoch_order",
    "is_at_hand",
    "load_dataset",
    "load_split",
    "parse_idx",
    "read_idx",
    "read_idx_header",
    "shard_slices",
    "split_validation",
    "stream",
    "unknown_dataset",
]
