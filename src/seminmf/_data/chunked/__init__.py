"""Data on a cluster: Dask arrays whose chunks are samples."""
