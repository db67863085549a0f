"""Pictures that a network is asked about: reading them, and making them what it was trained on."""

from __future__ import annotations

from cnncli.data.pictures.files import Pictures, read_pictures
from cnncli.data.pictures.preparation import Preparation

__all__ = ["Pictures", "Preparation", "read_pictures"]
