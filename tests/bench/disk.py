"""An empty file system for each measured state. On the machine's own disk the state before would tell: ext4
looks long for inodes after many were removed, and every side would pay for the side before it."""
import subprocess
import time


class Disk:
    """ext4 in a sparse file, mounted at `folder`. Needs root."""

    def __init__(self, folder, image):
        self.folder, self.image, self.mounted = folder, image, False
        folder.mkdir()

    def reset(self):
        self.close()
        with open(self.image, "wb") as file:
            file.truncate(60 << 30)
        self.call("mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1",
                  self.image)
        loop = subprocess.run(["losetup", "--find", "--show", "--direct-io=on", str(self.image)],
                              check=True, capture_output=True, text=True).stdout.strip()
        try:
            self.call("mount", "-o", "noinit_itable", loop, self.folder)
            self.mounted = True
        finally:
            self.call("losetup", "--detach", loop)  # when it is unmounted

    def close(self):
        # A store's background sync may still be at work.
        deadline = time.monotonic() + 120
        while self.mounted:
            done = subprocess.run(["umount", str(self.folder)], capture_output=True, text=True,
                                  check=False)
            self.mounted = done.returncode != 0
            if self.mounted and time.monotonic() > deadline:
                raise RuntimeError(done.stderr)
            time.sleep(0.2 if self.mounted else 0)
        self.image.unlink(missing_ok=True)

    @staticmethod
    def call(*argv):
        subprocess.run([str(word) for word in argv], check=True)
