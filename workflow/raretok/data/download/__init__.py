"""Files of data sets: fetched, checked, unpacked."""
