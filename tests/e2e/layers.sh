#!/usr/bin/env bash
# The layer and lint checks do complain: a wrong include, a banned call, a name of this machine.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

tree=$work/tree
mkdir "$tree"
for folder in base images recipes builder runner cli tests; do mkdir "$tree/$folder"; done
cp -r "$root/.ci" "$tree/"
touch "$tree/base/error.hpp" "$tree/builder/plan.hpp" "$tree/runner/job.hpp"

refused() { # refused CHECK FILE LINE: with that line in that file the check fails and names it
  printf '%s\n' "$3" >"$tree/$2"
  if "$tree/.ci/$1" >"$work/out" 2>&1; then fail "\`$3\` in $2 passes .ci/$1"; fi
  grep -qF "$2:1" "$work/out" || fail ".ci/$1 does not name $2: $(cat "$work/out")"
  rm "$tree/$2"
}
allowed() {
  printf '%s\n' "$3" >"$tree/$2"
  "$tree/.ci/$1" || fail "\`$3\` in $2 does not pass .ci/$1"
  rm "$tree/$2"
}

allowed layers builder/a.cpp '#include "base/error.hpp"'
allowed layers cli/a.cpp '#include "runner/job.hpp"'
refused layers builder/a.cpp '#include "runner/job.hpp"'
refused layers runner/a.cpp '#include "builder/plan.hpp"'
refused layers base/a.cpp '#include "runner/job.hpp"'
refused layers builder/a.cpp '#include "plan.hpp"'
refused layers base/a.cpp '#include "base/absent.hpp"'
refused layers images/a.cpp '#include <yaml-cpp/yaml.h>'

allowed lint base/a.cpp 'int a;  // not system(3)'
refused lint base/a.cpp 'void a() { std::system("ls"); }'
refused lint images/a.cpp 'auto* a = new int;'
refused lint runner/a.cpp 'void a() { std::cout << 1; }'
refused lint base/b.txt "see $tree/base"
