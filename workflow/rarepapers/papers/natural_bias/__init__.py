"""Meister et al. 2023, A Natural Bias for Language Generation Models."""
