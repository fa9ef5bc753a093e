"""The stages of benchmarks/gpu.py, one module each."""
