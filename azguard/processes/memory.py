"""How this process gives memory back to the system."""

# From the header malloc.h of glibc.
_M_MMAP_THRESHOLD = -3
_LARGE_BYTES = 1024 * 1024


def return_large_blocks() -> None:
    """Have each block of a megabyte or more returned as soon as it is freed, where the C library is glibc.

    By default glibc keeps what a thread has freed for that thread: up to 16 MiB each if it was in large blocks.
    """
    import ctypes

    try:
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
    except (AttributeError, OSError, TypeError):
        pass  # Another C library. This only saves memory.
