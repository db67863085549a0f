"""The epoch loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cnncli.config import Config, build_augmentation, build_network, build_optimizer, build_schedule
from cnncli.data import Dataset, Normalization, Split, batch_slices, epoch_order, split_validation
from cnncli.data.randomness import WEIGHTS, stream
from cnncli.errors import CheckpointError, DivergenceError
from cnncli.nn import Network, clip_gradient_norm
from cnncli.nn.optimizers import parameter_pieces
from cnncli.training.checkpoint import Checkpoint
from cnncli.training.divergence import all_finite, first_not_finite
from cnncli.training.evaluation import Evaluation, Evaluator
from cnncli.training.gradients import BatchGradients
from cnncli.training.metrics import EpochReport, StepReport, best_epoch, is_finished, is_finite
from cnncli.training.workers import Workers, shared_array, shared_copy

OnStep: TypeAlias = "Callable[[StepReport], None]"


@dataclass(frozen=True)
class TrainingData:
    """The images to train on and to choose by, and what the training part says of their scale."""

    train: Split
    validation: Split | None
    normalization: Normalization
    image_shape: tuple[int, int, int]
    class_count: int

    @classmethod
    def from_dataset(cls, dataset: Dataset, validation_size: int, seed: int) -> TrainingData:
        """Split off the validation set and take the normalisation from what is left."""
        train, validation = split_validation(dataset.train, validation_size, seed)
        normalization = Normalization.from_images(train.images)
        return cls(train, validation, normalization, dataset.image_shape, dataset.class_count)


class Trainer:
    """A network in training: owns the epoch, the network and the optimizer.

    Parameters
    ----------
    config : resolved configuration
    data : training and validation images
    workers : threads to compute with; their number changes no result
    network : what to train, with its initial weights; None builds it from the configuration

    Raises
    ------
    ConfigError : the network that is built does not fit the images or the number of classes
    """

    def __init__(
        self, config: Config, data: TrainingData, workers: Workers, network: Network | None = None
    ) -> None:
        self.config = config
        self.data = data
        self.epoch = 0
        self.step = 0
        self.metrics: list[dict[str, Any]] = []
        self.network = network or build_network(
            config, data.image_shape, data.class_count, stream(config.seed, WEIGHTS)
        )
        self._optimizer = build_optimizer(config, self.network.parameters)
        self._batches = batch_slices(len(data.train), config.training.batch_size)
        self._schedule = build_schedule(
            config, len(self._batches) * config.training.epochs, len(self._batches)
        )
        self._gradients = BatchGradients(
            self.network,
            workers,
            data.train,
            data.normalization,
            shard_size=config.training.shard_size,
            label_smoothing=config.loss.label_smoothing,
            seed=config.seed,
            augmentation=build_augmentation(config),
        )
        self._optimizer.share_state(shared_copy)
        self._pieces = parameter_pieces(self.network.parameters)
        self._are_finite = shared_array((self._optimizer.n_pieces,), np.bool_)
        self._update_pieces = workers.operation(self._update_piece)
        self._validation = (
            Evaluator(self.network, data.validation, data.normalization, workers) if data.validation else None
        )

    @property
    def best_epoch(self) -> int:
        return best_epoch(self.metrics)

    @property
    def is_finished(self) -> bool:
        """Whether there is no epoch left to train."""
        return is_finished(self.metrics, self.config.training)

    def epochs(self, on_step: OnStep | None = None) -> Iterator[EpochReport]:
        """Train what is left of the run, one report after each epoch.

        `on_step` is called after every optimizer step; what it raises ends the epoch.

        Raises
        ------
        DivergenceError : a loss, a gradient or a weight is not finite; it names the layer
        LabelError : a label is not one of the network's classes
        """
        while not self.is_finished:
            report = self._run_epoch(on_step)
            self.epoch += 1
            self.metrics.append(report.to_dict())
            yield report

    def checkpoint(self) -> Checkpoint:
        """Take the state of the run; its arrays are the live ones, so save it before the next step."""
        return Checkpoint(
            config=self.config,
            image_shape=self.data.image_shape,
            class_count=self.data.class_count,
            normalization=self.data.normalization,
            epoch=self.epoch,
            step=self.step,
            metrics=tuple(self.metrics),
            parameters={name: p.value for name, p in self.network.parameters.items()},
            buffers=self.network.buffers,
            optimizer_state=self._optimizer.state,
        )

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint of the same configuration.

        Raises
        ------
        CheckpointError : its arrays do not fit, or the images are not those that it was trained on
        """
        self._check_data(checkpoint)
        checkpoint.restore(self.network)
        self._optimizer.load_state(checkpoint.optimizer_state, checkpoint.step)
        self.epoch, self.step = checkpoint.epoch, checkpoint.step
        self.metrics = list(checkpoint.metrics)

    def _check_data(self, checkpoint: Checkpoint) -> None:
        before = (checkpoint.image_shape, checkpoint.class_count, checkpoint.normalization)
        now = (self.data.image_shape, self.data.class_count, self.data.normalization)
        if before != now or checkpoint.step != checkpoint.epoch * len(self._batches):
            raise CheckpointError(
                f"the images of {self.config.data.dataset} are not those that the run was trained on so far: "
                "their shape, number, classes or mean differ"
            )

    def _run_epoch(self, on_step: OnStep | None) -> EpochReport:
        started = time.perf_counter()
        order = epoch_order(len(self.data.train), self.config.seed, self.epoch)
        loss_sum, n_correct, n_images = 0.0, 0, 0
        training_seconds = 0.0
        for index, batch in enumerate(self._batches):
            step_started = time.perf_counter()
            indices = order[batch]
            loss, correct = self._take_step(indices, index)
            training_seconds += time.perf_counter() - step_started
            loss_sum += loss * len(indices)
            n_correct += correct
            n_images += len(indices)
            if on_step is not None:
                on_step(
                    StepReport(
                        epoch=self.epoch + 1,
                        step=index + 1,
                        steps_per_epoch=len(self._batches),
                        n_images=n_images,
                        mean_loss=loss_sum / n_images,
                        accuracy=n_correct / n_images,
                        images_per_second=n_images / training_seconds,
                    )
                )
        validation = self._validate()
        return EpochReport(
            epoch=self.epoch + 1,
            train_loss=loss_sum / n_images,
            train_accuracy=n_correct / n_images,
            validation_loss=validation.loss if validation else None,
            validation_accuracy=validation.accuracy if validation else None,
            learning_rate=self._optimizer.learning_rate,
            seconds=time.perf_counter() - started,
            images_per_second=n_images / training_seconds,
        )

    def _take_step(self, indices: NDArray[np.int64], index: int) -> tuple[float, int]:
        result = self._gradients.compute(indices, self.step)
        if not (is_finite(result.loss) and result.has_finite_gradients):
            what = "the gradient is not finite"
            if not is_finite(result.loss):
                what = f"the loss is {result.loss}"
            raise self._divergence(index, what, self._gradients.origin_of_failure(indices, self.step))
        self._gradients.update_averages()
        self._require_finite(index, self.network.buffers)
        if self.config.training.clip_norm is not None:
            clip_gradient_norm(self.network.parameters, self.config.training.clip_norm)
        self._optimizer.learning_rate = self._schedule.learning_rate(self.step)
        self.step += 1
        self._update_pieces(self._optimizer.n_pieces, self._optimizer.learning_rate, self.step)
        if not self._are_finite.all():
            values = {name: parameter.value for name, parameter in self.network.parameters.items()}
            raise self._overflow(index, values)
        return result.loss, result.n_correct

    def _update_piece(self, worker: int, index: int, learning_rate: float, step_count: int) -> None:
        # a worker process has an optimizer of its own; only its arrays are shared
        self._optimizer.learning_rate, self._optimizer.step_count = learning_rate, step_count
        self._optimizer.update_piece(index)
        name, part = self._pieces[index]
        self._are_finite[index] = all_finite(self.network.parameters[name].value.reshape(-1)[part])

    def _validate(self) -> Evaluation | None:
        """Evaluate the end of an epoch, and make sure that its state is worth saving."""
        last = len(self._batches) - 1
        # a moment that is infinite holds its weights still from then on, without a sign
        self._require_finite(last, self._optimizer.state)
        if self._validation is None:
            return None
        evaluation = self._validation.evaluate()
        if not is_finite(evaluation.loss):
            what = f"the validation loss is {evaluation.loss}"
            raise self._divergence(last, what, self._validation.origin_of_failure())
        return evaluation

    def _require_finite(self, index: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise self._overflow(index, arrays)

    def _overflow(self, index: int, arrays: Mapping[str, NDArray[Any]]) -> DivergenceError:
        """Word that a step has made weights, moments or running averages infinite."""
        name, value = first_not_finite(self.network, arrays)
        return self._divergence(index, f"the {name} has become {value}", None)

    def _divergence(self, index: int, what: str, origin: str | None) -> DivergenceError:
        """Word what was found at the step with this index in its epoch, where it began, and what to do."""
        place = f"epoch {self.epoch + 1}, step {index + 1} of {len(self._batches)}: {what}"
        return DivergenceError("\n  ".join(filter(None, [place, origin, self._advice()])))

    def _advice(self) -> str:
        if self.step == 0:
            return (
                f"no step has been taken yet, so look at the images of {self.config.data.dataset} "
                "and at the layers' initializers"
            )
        rate, clip_norm = self._schedule.learning_rate(self.step - 1), self.config.training.clip_norm
        clipping = "set training.clip_norm"
        if clip_norm is not None:
            clipping = f"lower training.clip_norm (it is {clip_norm:g})"
        return f"lower optimizer.{self.config.optimizer.name}.learning_rate (it was {rate:g}), or {clipping}"
