#!/usr/bin/env bash
# A wheel from a folder on this machine, with sources that no interpreter compiles: they are installed
# without bytecode, as pip leaves them, and all else works.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
mkdir "$work/wheels"
python3 - "$work/wheels/mlenv_odd-1.0-py3-none-any.whl" <<'PYTHON'
import sys, zipfile
files = {
    "odd/__init__.py": "value = 42\n",
    "odd/deep.py": "-" * 7000 + "1\n",  # MemoryError in CPython 3.11's parser
    "odd/python2.py": "print 'x'\n",
    "odd/nul.py": "x = 1\0\n",
    "mlenv_odd-1.0.data/data/lib64/odd.txt": "data\n",
    "mlenv_odd-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "mlenv_odd-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: mlenv-odd\nVersion: 1.0\n",
}
files["mlenv_odd-1.0.dist-info/RECORD"] = "".join(f"{name},,\n" for name in files) + "mlenv_odd-1.0.dist-info/RECORD,,\n"
with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as wheel:
    for name, text in files.items():
        wheel.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), text)
PYTHON
export UV_FIND_LINKS=$work/wheels
base_store
small_recipe "$work/odd.yaml" mlenv-odd idna
image=$(build_digest "$work/odd.yaml")
note "$image"
"$MLENV" run --no-project small -- sh -c '
  set -e
  cd /opt/venv/lib/python3.11/site-packages
  python -c "import odd, idna; assert odd.value == 42"
  ls odd/__pycache__ >/tmp/compiled
  printf "__init__.cpython-311.pyc\n" | diff - /tmp/compiled
  cat /opt/venv/lib/odd.txt' || fail "see above"
verify_store
