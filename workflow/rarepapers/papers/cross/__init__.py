"""Our comparison of all methods."""
