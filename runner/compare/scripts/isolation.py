# What a process sees of its host, and which system calls reach the kernel: found out by trying. The calls are
# given arguments that no kernel takes, so that none does anything: whoever filters calls answers before the
# kernel looks at them, with "not permitted" or "no such call"; a kernel that lets it through complains
# about the arguments.
import ctypes
import errno
import os


def say(*words):
    print("mlenv-compare", *words, flush=True)


with open("/proc/sys/kernel/osrelease") as file:
    release = file.read().strip()
with open("/proc/sys/kernel/random/boot_id") as file:
    boot = file.read().strip()
say("text", "isolation.kernel", release, boot)
say("value", "isolation.processes", sum(name.isdigit() for name in os.listdir("/proc")))
say("value", "isolation.devices", sum(len(files) for _, _, files in os.walk("/dev")))
with open("/proc/self/status") as file:
    status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
say("value", "isolation.capabilities", bin(int(status["CapBnd"], 16)).count("1"))

# Numbers of <asm/unistd.h>, x86-64 and arm64.
CALLS = {
    "add_key": (248, 217), "bpf": (321, 280), "clock_settime": (227, 112), "finit_module": (313, 273),
    "init_module": (175, 105), "kcmp": (312, 272), "kexec_load": (246, 104), "keyctl": (250, 219),
    "mount": (165, 40), "move_pages": (279, 239), "open_by_handle_at": (304, 265), "perf_event_open": (298, 241),
    "pivot_root": (155, 41), "process_vm_readv": (310, 270), "ptrace": (101, 117), "quotactl": (179, 60),
    "setns": (308, 268), "swapon": (167, 224), "umount2": (166, 39), "userfaultfd": (323, 282),
}
column = {"x86_64": 0, "aarch64": 1}.get(os.uname().machine)
if column is None:
    say("why", "isolation.calls", "the numbers of system calls are known for x86-64 and arm64 alone")
else:
    libc = ctypes.CDLL(None, use_errno=True)
    bad = ctypes.c_long(-1)
    through = []
    for name, numbers in sorted(CALLS.items()):
        ctypes.set_errno(0)
        libc.syscall(ctypes.c_long(numbers[column]), bad, bad, bad, bad, bad)
        if ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS, errno.EACCES):
            through.append(name)
    say("value", "isolation.calls", len(through))
    say("text", "isolation.calls", ", ".join(through) or "none")
