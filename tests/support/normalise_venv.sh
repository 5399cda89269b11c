# shellcheck shell=bash
# normalise_venv FOLDER: one place for site-packages, nothing that is the environment's own, RECORD without
# what may differ between installers. Modes go to FOLDER.modes.
normalise_venv() (
  cd "$1" || exit
  find . -name __pycache__ -prune -exec rm -rf {} +
  [ -d lib/python3 ] || mv lib/python3.* lib/python3
  find lib -maxdepth 1 -type l -delete
  rm -rf lib64 pyvenv.cfg CACHEDIR.TAG .gitignore .lock
  find include -depth \( -type l -o -type d -empty \) -delete 2>/dev/null || true # uv makes no empty one
  find . -name RECORD -path '*.dist-info/*' -exec sed -i -E \
    -e '/__pycache__/d' -e '/\/bin\/pip3\./d' -e 's,^((\.\./)*bin/[^,]*)\,.*,\1,' -e '/\/(INSTALLER|REQUESTED|uv_(build|cache)\.json),/d' {} \; \
    -exec sort -o {} {} \;
  find . \( -name INSTALLER -o -name REQUESTED -o -name 'uv_*.json' \) -path '*.dist-info/*' -delete
  find bin -maxdepth 1 \( -name 'activate*' -o -name 'deactivate*' -o -name 'python*' -o \
    -name 'pydoc.bat' -o -name 'pip3.*' \) -delete # pip3.11 is uv's own addition to pip (docs/layers.md)
  find lib/python3/site-packages -maxdepth 1 -name '_virtualenv.p*' -delete
  find bin -type f -exec sed -i -e '1s,^#!.*,#!python,' {} +
  find . -name RECORD -path '*.dist-info/*' -exec chmod 644 {} + # uv keeps the mode of the one that it replaces, pip does not
  find . -type f -printf '%m %p\n' | sort >"$1.modes"
)
