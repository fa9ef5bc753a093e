"""Metrics of predictions and embedding matrices, as functions of arrays and tensors."""
