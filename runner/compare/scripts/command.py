# Runs a command and, where it ended well, says what it took, on the last line of standard error.
import json
import resource
import subprocess
import sys

try:
    status = subprocess.run(sys.argv[1:]).returncode
except OSError as problem:
    sys.exit(f"mlenv-compare-failed cannot start {sys.argv[1]}: {problem.strerror}")
used = resource.getrusage(resource.RUSAGE_CHILDREN)
if status == 0:  # else the last line is the command's own, which says why
    print("\nmlenv-compare-used", json.dumps({"cpu": used.ru_utime + used.ru_stime, "memory": used.ru_maxrss * 1024}),
          file=sys.stderr, flush=True)
sys.exit(status if status >= 0 else 128 - status)
