"""Download, verification and unpacking of data sets."""
