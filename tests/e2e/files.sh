#!/usr/bin/env bash
# A project's own files in its image: what is there and with which modes, what stays out, what a
# change makes anew, and one digest for root and an ordinary user.
# shellcheck disable=SC2016 # backticks stand in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc
need_root

project=$work/project
path=$project/app.yaml
built=$project/app.built
mkdir -p "$project/src/pkg" "$project/conf" "$project/src/.git"
cat >"$path" <<RECIPE
name: app
base: debian:bookworm
python: "3.11"
files: {src: /workspace, conf/train.toml: /etc/, root: /root}
RECIPE
echo 'print("hello")' >"$project/src/main.py"
echo 'x = 1' >"$project/src/pkg/__init__.py"
printf '#!/bin/sh\necho started\n' >"$project/src/start.sh"
chmod 755 "$project/src/start.sh"
ln -s pkg/__init__.py "$project/src/link.py"
echo 'TOKEN=secret' >"$project/src/.env"
echo 'g' >"$project/src/.git/HEAD"
head -c 5000000 /dev/urandom >"$project/src/big.bin"
echo 'lr = 1' >"$project/conf/train.toml"
mkdir "$project/root"
echo 'set x' >"$project/root/.inputrc"
echo '**/*.bin' >"$project/.mlenvignore"
base_tree

builds() { # builds ARGUMENT…: of `mlenv build`; the digest in $image, the story in $work/err
  "$MLENV" build "$@" "$path" >"$work/out" 2>"$work/err" || fail "build says: $(cat "$work/err")"
  image=$(tail -n 1 "$work/out")
}
refused() { # refused STATUS WORDS ARGUMENT…
  local status=0 expected=$1 words=$2
  shift 2
  "$MLENV" build "$@" "$path" >"$work/out" 2>"$work/err" || status=$?
  equal "status" "$expected" "$status"
  grep -qF "$words" "$work/err" || fail "says: $(cat "$work/err")"
}
inside() { "$MLENV" run --no-project app -- "$@"; }

note "what is in the image"
builds
first=$image
equal "secrets in the note" 1 "$(grep -c 'left out of the image.*`src/.env`; in `.mlenvignore`' "$work/err")"
equal "main.py" hello "$(inside python main.py)"
equal "start.sh" started "$(inside ./start.sh)"
equal "train.toml" 'lr = 1' "$(inside cat /etc/train.toml)"
inside find /workspace -printf '%P %y %m %U %G %T@ %l\n' | LC_ALL=C sort >"$work/found"
cat >"$work/expected" <<'FOUND'
 d 755 0 0 0.0000000000 
link.py l 777 0 0 0.0000000000 pkg/__init__.py
main.py f 644 0 0 0.0000000000 
pkg d 755 0 0 0.0000000000 
pkg/__init__.py f 644 0 0 0.0000000000 
start.sh f 755 0 0 0.0000000000 
FOUND
diff "$work/expected" "$work/found" || fail "other files"
equal "the base's own folder" 700 "$(inside stat -c %a /root)"
equal "label" "$(sed -n 's/^files = "\(.*\)"$/sha256:\1/p' "$built")" \
  "$("$MLENV" inspect app --json | python3 -c 'import json, sys
print(*(label["value"] for label in json.load(sys.stdin)["labels"] if label["name"] == "dev.mlenv.files"))')"
verify_store

note "a run mounts the project over what the image has"
equal "the mount" project "$("$MLENV" run "$path" -- sh -c 'test -e app.yaml && test ! -e main.py && echo project' 2>/dev/null)"

note "the same again costs nothing"
builds --explain
equal "image" "$first" "$image"
if grep -q '^made' "$work/out"; then fail "made again: $(cat "$work/out")"; fi

note "a change makes its own layer, and no failure"
cp "$built" "$work/first.built"
echo 'print("other")' >"$project/src/main.py"
builds --locked --explain
[ "$image" != "$first" ] || fail "other files and the same image"
equal "layers made" 1 "$(grep -c '^made' "$work/out")"
grep -q '^made .*project files.*since the last build: project files' "$work/out" || fail "says: $(cat "$work/out")"
equal "run" other "$(inside python main.py)"
if cmp -s "$built" "$work/first.built"; then fail ".built is not of this build"; fi
echo 'print("hello")' >"$project/src/main.py"
builds
equal "image" "$first" "$image"
diff "$work/first.built" "$built" || fail "another .built"

note "what is recorded must be what is built"
sed -i '/title = "project files"/s/sha256 = "......../sha256 = "00000000/' "$built"
refused 3 'layer `project files`: recorded sha256:00000000' --locked
cp "$work/first.built" "$built"
sed -i '/title = "debian:bookworm"/s/sha256 = "......../sha256 = "00000000/; s/^files = "......../files = "00000000/' "$built"
refused 3 'layer `debian:bookworm`: recorded sha256:00000000'
cp "$work/first.built" "$built"

note "large files have a layer of their own"
cp "$path" "$work/app.yaml"
sed -i 's,^files: {,&data: /data\, ,' "$path"
mkdir "$project/data"
head -c 6000000 /dev/urandom >"$project/data/weights"
builds
grep -q 'title = "project files at /data"' "$built" || fail "one layer: $(cat "$built")"
grep -q 'title = "project files"' "$built" || fail "one layer: $(cat "$built")"
echo >>"$project/src/main.py"
builds --explain
equal "layers made" 1 "$(grep -c '^made' "$work/out")"
equal "sum" "$(sha256sum <"$project/data/weights")" "$(inside cat /data/weights | sha256sum)"
cp "$work/app.yaml" "$path"
rm -r "$project/data"
echo 'print("hello")' >"$project/src/main.py"
builds
equal "image" "$first" "$image"

note "what a build writes does not go into the next image"
sed -i 's,^files: {,&.: /project\, ,' "$path"
refused 2 'lies where `files` copies it' --output "oci:$project/out"
refused 2 'name `conf/image.tar` in `.mlenvignore`' --output "oci-archive:$project/conf/image.tar"
MLENV_STORE=$project/store refused 2 'the store'
if [ -e "$project/out" ] || [ -e "$project/conf/image.tar" ]; then fail "written all the same"; fi
cp "$project/.mlenvignore" "$work/ignore"
echo out >>"$project/.mlenvignore"
builds --output "oci:$project/out"
before=$image
builds --output "oci:$project/out"
equal "with an output that is left out" "$before" "$image"
rm -r "$project/out"
cp "$work/ignore" "$project/.mlenvignore"
cp "$work/app.yaml" "$path"
builds
equal "image" "$first" "$image"

note "mistakes are told at their place, before any work"
mv "$project/root" "$project/elsewhere"
refused 2 "$path:4:50: \`root\` does not exist"
mv "$project/elsewhere" "$project/root"
ln -s /etc "$project/src/out"
refused 1 'the link `src/out` leads to `/etc`'
rm "$project/src/out"
ln -s "$work" "$project/conf/above"
sed -i 's,conf/train.toml:,conf/above:,' "$path"
refused 2 "is a link that leads out of the recipe's folder"
sed -i 's,conf/above: /etc/,conf/train.toml: /bin/,' "$path"
refused 2 '`/bin` is a link to `usr/bin`'
cp "$work/app.yaml" "$path"

note "an ordinary user, another umask, order and time"
make_user
as_root cp -r --no-preserve=all "$project" "$user_home/project"
as_root rm "$user_home/project/app.built"
as_root chmod 700 "$user_home/project/src/start.sh"
as_root chown -R "$user_id:$user_id" "$user_home/project"
as_root cp -a "$MLENV_STORE" "$user_home/store"
as_root rm -rf "$user_home/store/keys"
as_root chown -R "$user_id:$user_id" "$user_home/store"
as_user MLENV_STORE="$user_home/store" bash -c 'umask 077; cd ~/project
  cp src/main.py src/.x && mv src/.x src/main.py && touch -d 2001-01-01 src/start.sh
  chmod -R go= . && mlenv build --locked app.yaml' >"$work/out" 2>"$work/err" || fail "says: $(cat "$work/err")"
equal "image" "$first" "$(tail -n 1 "$work/out")"
as_root diff "$built" "$user_home/project/app.built" || fail "another .built"
equal "as a user" "hello" "$(as_user MLENV_STORE="$user_home/store" mlenv run --no-project app -- python main.py)"
verify_store
