"""The same data as the kinds of input that estimators take, for tests of all of them."""

import dask.array as da
import numpy as np
from scipy import sparse


class Sliced:
    """What an HDF5 or Zarr array shows of itself: a shape, a type, chunks, and slices."""

    def __init__(self, array, chunks=None):
        self._array = array
        self.shape, self.dtype, self.chunks = array.shape, array.dtype, chunks
        self.reads = []

    def __getitem__(self, key):
        part = self._array[key]
        assert isinstance(key, tuple) and all(isinstance(one, slice) for one in key)
        self.reads.append((key[0].start, key[0].stop))
        return part.copy()


def stored(array):
    """A sparse matrix that stores what is observed, zeros as well."""
    rows, columns = np.nonzero(~np.isnan(array))
    return sparse.csr_array((array[rows, columns], (rows, columns)), shape=array.shape)


def chunked(array):
    """A Dask array in chunks of a few samples."""
    return da.from_array(array, chunks=(4, -1))


def stored_chunks(array):
    """The same with sparse chunks."""
    whole = da.from_array(array, chunks=(40, -1))
    return whole.map_blocks(stored, meta=stored(array[:0]))


KINDS = {"array": np.asarray, "sparse": stored, "disk": Sliced, "dask": chunked}
