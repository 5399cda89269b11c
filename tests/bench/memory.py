"""Memory as a machine of one's own would give it.

A virtual machine's host backs a page when it is first touched, which costs several times what writing it does, and takes
free pages back at once (free page reporting): whoever is measured would pay, the more the longer the machine had been
idle. So a sparse file as large as the memory is read before. Its clean pages are there for whoever wants to write
(proc(5), `MemAvailable`), as on a machine that has run for a day, and the host does not take them back.

It is read as files are, from its beginning to its end: pages then lie together in large folios, as those of files that
programs have read or written. Asked for by POSIX_FADV_WILLNEED each page is a folio of its own, and to find memory among
them for 6 GB written took 4.2 s of processor time instead of 2.4 (Linux 6.18, ext4).
"""
import os

READ_BYTES = 1 << 20


class BackedMemory:
    def __init__(self, folder):
        self.file = os.open(folder, os.O_RDWR | os.O_TMPFILE, 0o600)
        self.size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        os.ftruncate(self.file, self.size)

    def close(self):
        os.close(self.file)

    def fill(self):
        data = bytearray(READ_BYTES)
        for at in range(0, self.size, READ_BYTES):
            os.preadv(self.file, [data], at)
