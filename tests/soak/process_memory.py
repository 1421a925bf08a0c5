"""How much memory this process takes, and how much of it is in use."""

import ctypes
import gc
import os
import sys
from pathlib import Path

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
MALLOC_FIELDS = (
    *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
    *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
)


class MallocInfo(ctypes.Structure):
    """The answer of ``mallinfo2`` of the GNU C library: see its manual page."""

    _fields_ = [(name, ctypes.c_size_t) for name in MALLOC_FIELDS]


def process_memory():
    """Return the memory of this process in three numbers.

    ``resident`` is the number of bytes that the process takes from the system, with the code of
    libraries and with memory that was freed and not given back. ``allocated`` is the number of
    bytes in use that came from the C library, such as those of arrays; 0 if the library cannot
    tell. ``objects`` is the number of small blocks in use that came from Python's own allocator.
    """
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES
    gc.collect()
    return {
        "resident": resident,
        "allocated": _allocated_bytes(),
        "objects": sys.getallocatedblocks(),
    }


def _allocated_bytes():
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        return 0
    library.mallinfo2.restype = MallocInfo
    found = library.mallinfo2()
    return found.uordblks + found.hblkhd
