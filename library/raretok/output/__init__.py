"""The output layer that all methods share: loss and exact gradients from hidden vectors, output matrix and targets."""
