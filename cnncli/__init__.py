"""Convolutional networks on MNIST with NumPy alone: train, evaluate, look inside."""

__version__ = "0.1.0"
