"""Memory as a machine of one's own would give it.

A virtual machine's host backs a page when it is first touched, which costs several times what writing it does, and takes
free pages back at once (free page reporting): whoever is measured would pay, the more the longer the machine had been
idle. So what is free is filled with clean pages of a sparse file. They are there for whoever wants to write (proc(5),
`MemAvailable`), as on a machine that has run for a day, and the host does not take them back.

The file is read as files are, from its beginning to its end: pages then lie together in large folios, as those of files
that programs read or wrote. Asked for by POSIX_FADV_WILLNEED each page is a folio of its own, and to find memory among
them for 6 GB written took 4.2 s of processor time instead of 2.4 (Linux 6.18, ext4).
"""
import os
import sys

SPARE_BYTES = 300 << 20  # what the kernel keeps free anyway, about
PIECE_BYTES = 128 << 20
READ_BYTES = 1 << 20


class BackedMemory:
    def __init__(self, folder):
        self.file = os.open(folder, os.O_RDWR | os.O_TMPFILE, 0o600)

    def close(self):
        os.close(self.file)

    def fill(self):
        """Until nothing is free. What of the file is still in memory from the last time stays."""
        size, enough = 0, 2 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        data = bytearray(READ_BYTES)
        while size < enough and os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > SPARE_BYTES:
            os.ftruncate(self.file, max(size + PIECE_BYTES, os.fstat(self.file).st_size))
            for at in range(size, size + PIECE_BYTES, READ_BYTES):
                os.preadv(self.file, [data], at)
            size += PIECE_BYTES
        if size >= enough:
            print("bench: free memory could not be filled; a host that takes it back will cost all sides",
                  file=sys.stderr)
