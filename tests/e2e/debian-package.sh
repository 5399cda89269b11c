#!/usr/bin/env bash
# The Debian package: made by CPack, holds what it should, and what is installed from it runs.
# packages: apparmor file
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need cpack dpkg-deb dpkg-shlibdeps
[ "$MLENV" = "$root/build/mlenv" ] || skip "MLENV is not the build of this tree"

cpack --config "$root/build/CPackConfig.cmake" -B "$work" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
deb=$(find "$work" -maxdepth 1 -name '*.deb')
note "${deb##*/}"
dpkg-deb --info "$deb" >"$work/info"
for words in 'Package: mlenv' 'Architecture: ' 'libarchive13' 'libcurl4' 'Recommends: runc'; do
  grep -q "$words" "$work/info" || fail "no $words: $(cat "$work/info")"
done
dpkg-deb --contents "$deb" >"$work/contents"
for file in bin/mlenv share/man/man1/mlenv.1.gz share/man/man1/mlenv-build.1.gz \
  share/bash-completion/completions/mlenv share/zsh/site-functions/_mlenv \
  share/fish/vendor_completions.d/mlenv.fish share/mlenv/apparmor/mlenv share/mlenv/apparmor/mlenv-container share/mlenv/catalog/jax-cpu.yaml \
  libexec/mlenv/mlenv-gpu-probe libexec/mlenv/mlenv-node share/doc/mlenv/copyright share/doc/mlenv/changelog.gz; do
  grep -q " \./usr/$file\$" "$work/contents" || fail "no $file: $(cat "$work/contents")"
done
if awk '$2 != "root/root"' "$work/contents" | grep .; then fail "not root's: see above"; fi
if grep -E '^[^d]..(.....w|..w)' "$work/contents"; then fail "writable by others: see above"; fi

note "what it installs runs, and its scripts do"
dpkg-deb --extract "$deb" "$work/root"
"$work/root/usr/bin/mlenv" --version
dpkg-deb --control "$deb" "$work/control"
for script in postinst prerm postrm; do sh -n "$work/control/$script"; done

# Of the profile for mlenv itself only a compiler of AppArmor 4 knows the words (Debian 12 has 3).
note "AppArmor's compiler takes the profile for containers"
compiles() {
  PATH=$PATH:/usr/sbin:/sbin apparmor_parser --skip-kernel-load --skip-cache --quiet "$1"
}
profile=$work/root/usr/share/mlenv/apparmor/mlenv-container
compiles "$profile"
sed 's/deny mount,/deny mountain,/' "$profile" >"$work/wrong"
if cmp -s "$profile" "$work/wrong" || compiles "$work/wrong" 2>/dev/null; then fail "it takes a word that is none"; fi
if command -v lintian >/dev/null; then
  lintian --fail-on error "$deb"
fi
