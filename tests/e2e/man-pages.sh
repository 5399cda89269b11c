#!/usr/bin/env bash
# Manual pages: well formed, and each holds all that the help does; installed where they are looked for.
# packages: mandoc
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need mandoc

"$MLENV" generate "$work/share"
pages=$work/share/man/man1

note "no warning of a reader but that no date is given, which would not be the same in each build"
mandoc -T lint -W warning "$pages"/*.1 >"$work/lint" || true
if grep -v 'missing date, using ""' "$work/lint"; then fail "see above"; fi

has() { # has PAGE WORD…: each stands in the page as a word of its own
  local page=$1 word
  shift
  mandoc -T ascii "$pages/$page.1" | sed 's/.\x08//g' >"$work/text"
  for word in "$@"; do
    grep -qE -- "(^|[[ ,])${word//./\\.}([] ,.:]|\$)" "$work/text" || fail "$page(1) lacks \`$word\`"
  done
}
# Options, arguments and commands of a help text, a line each.
words() { sed -n 's/^  \(-[^ ]*\).*/\1/p; s/^  \([A-Z]\+\) .*/\1/p; s/^  \([a-z]\+\) .*/\1/p' | tr ',' '\n'; }

count=0
walk() { # walk PAGE COMMAND…
  local page=$1 help
  shift
  help=$("$MLENV" help "$@")
  mapfile -t listed < <(words <<<"$help")
  [ ${#listed[@]} -gt 0 ] || fail "no options in the help of $*"
  has "$page" "${listed[@]}"
  count=$((count + ${#listed[@]}))
}
walk mlenv
mapfile -t commands < <("$MLENV" help | sed -n '/^Environment:/,$s/^  \([a-z]\+\) .*/\1/p')
for command in "${commands[@]}"; do
  walk "mlenv-$command" "$command"
  mapfile -t inner < <("$MLENV" help "$command" | sed -n '/^Subcommands:/,$s/^  \([a-z]\+\) .*/\1/p')
  for one in "${inner[@]}"; do walk "mlenv-$command" "$command" "$one"; done
done
equal "pages" "$((${#commands[@]} + 1))" "$(find "$pages" -name '*.1' | wc -l)"
note "$count options, arguments and commands stand in ${#commands[@]} pages and mlenv(1)"

[ "$MLENV" = "$root/build/mlenv" ] || exit 0
note "cmake --install"
cmake --install "$root/build" --prefix "$work/prefix" >"$work/install.log"
while IFS= read -r file; do
  cmp "$work/share/$file" "$work/prefix/share/$file"
done < <(find "$work/share" -type f -printf '%P\n')
for file in man/man1/mlenv-build.1 bash-completion/completions/mlenv zsh/site-functions/_mlenv \
  fish/vendor_completions.d/mlenv.fish; do
  [ -s "$work/prefix/share/$file" ] || fail "no $file"
done
