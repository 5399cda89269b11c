# shellcheck shell=bash
# Debian archives of a test's own, signed with keys of its own. After tests/lib.sh.
# shellcheck disable=SC2154  # work, root: set there

# make_key NAME: a throw-away key; $work/NAME.asc and $work/NAME.gpg are its public half.
make_key() {
  need gpg gpgconf
  mkdir -p "$work/keys"
  mkdir -m 700 "$work/keys/$1"
  gpg --homedir "$work/keys/$1" --batch --quiet --pinentry-mode loopback --passphrase '' \
    --quick-generate-key "$1 <$1@example.org>" ed25519 sign never 2>"$work/gpg.log" || fail "gpg: $(cat "$work/gpg.log")"
  gpg --homedir "$work/keys/$1" --batch --quiet --export >"$work/$1.gpg"
  gpg --homedir "$work/keys/$1" --batch --quiet --armor --export >"$work/$1.asc"
  end_agent "$1"
}

# end_agent NAME: which gpg started.
end_agent() { gpgconf --homedir "$work/keys/$1" --kill all; }

# make_deb FOLDER NAME VERSION [FIELD…]: a package that holds nothing but its changelog.
make_deb() {
  need dpkg-deb
  local folder=$1 name=$2 version=$3 tree=$work/deb
  shift 3
  rm -rf "$tree"
  mkdir -p "$folder" "$tree/DEBIAN" "$tree/usr/share/doc/$name"
  echo "$version" >"$tree/usr/share/doc/$name/changelog"
  {
    printf 'Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: Test <test@example.org>\n' "$name" "$version"
    if [ $# -gt 0 ]; then printf '%s\n' "$@"; fi
    printf 'Description: for a test\n'
  } >"$tree/DEBIAN/control"
  dpkg-deb --root-owner-group -Zgzip --build "$tree" "$folder/${name}_${version}_all.deb" >/dev/null
}

# write_archive KEY ROOT SUITE WORD…: archive.py with the key of that name; `-` for no signature.
write_archive() {
  local key=$1
  shift
  if [ "$key" = - ]; then
    python3 "$root/tests/support/archive.py" "$@"
  else
    python3 "$root/tests/support/archive.py" "$@" --key "$work/keys/$key"
    end_agent "$key"
  fi
}

# serve FOLDER: over HTTP on loopback; sets $served (http://127.0.0.1:PORT).
serve() {
  local port
  port=$(free_port)
  start "$work/server.log" python3 -m http.server --bind 127.0.0.1 --directory "$1" "$port"
  # shellcheck disable=SC2034  # for the caller
  served=http://127.0.0.1:$port
  wait_until 20 curl --noproxy '*' -fsI "$served/"
}

# fetch_deb PATH SHA256 FILE: a package of a lock, from mlenv's cache or this machine's archives.
fetch_deb() {
  local uri
  if [ -e "$XDG_CACHE_HOME/mlenv/debs/$2" ]; then
    cp "$XDG_CACHE_HOME/mlenv/debs/$2" "$3"
    return
  fi
  if [ ! -s "$work/machine.uris" ]; then
    # shellcheck disable=SC2016  # for apt-get
    apt-get indextargets --format '$(REPO_URI)' | LC_ALL=C sort -u >"$work/machine.uris"
  fi
  while read -r uri; do
    if curl -fsSL -o "$3" "$uri$1" 2>/dev/null && echo "$2  $3" | sha256sum -c --quiet; then return; fi
  done <"$work/machine.uris"
  skip "no archive of this machine has $1"
}

# debs_of LOCK: lines `NAME PATH SHA256`.
debs_of() {
  sed -nE 's/.*name = "([^"]*)",.* path = "([^"]*)", .*sha256 = "([^"]*)".*/\1 \2 \3/p' "$1"
}
