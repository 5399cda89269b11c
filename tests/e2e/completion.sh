#!/usr/bin/env bash
# What Tab gives in bash, zsh and fish, each with the script that mlenv prints for it.
# packages: fish zsh
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need bash zsh fish shellcheck

base_tree
tagged=127.0.0.1:5000/team/base:v1
"$MLENV" tag base "$tagged"
mkdir "$work/bin" "$work/folder" "$work/folder/recipes"
ln -s "$MLENV" "$work/bin/mlenv"
export PATH=$work/bin:$PATH
cd "$work/folder"
touch one.yaml two.yml notes.txt image.tar

for shell in bash zsh fish; do mlenv completion "$shell" >"$work/script.$shell"; done
shellcheck "$work/script.bash"
zsh -n "$work/script.zsh"
fish --no-config -n "$work/script.fish"

cat >"$work/rc.bash" <<'RC'
PS1='READY>'
bind 'set enable-bracketed-paste off'
bind -x '"\C-g": printf "LINE<%s>\n" "$READLINE_LINE"; READLINE_LINE=; READLINE_POINT=0'
RC
echo ". '$work/script.bash'" >>"$work/rc.bash"
mkdir "$work/zsh"
cat >"$work/zsh/.zshrc" <<RC
PS1='READY>'
unset zle_bracketed_paste
fpath=('$work/zsh/functions' \$fpath)
autoload -U compinit && compinit -u -D
show() { zle -I; print -r -- "LINE<\$BUFFER>"; BUFFER= }
zle -N show
bindkey '^G' show
RC
mkdir "$work/zsh/functions"
cp "$work/script.zsh" "$work/zsh/functions/_mlenv"

# typed SHELL: the lines of stdin, each after a Tab.
typed() {
  local shell=$1
  case $shell in
    bash) python3 "$root/tests/support/tab.py" bash --noprofile --rcfile "$work/rc.bash" -i ;;
    zsh) ZDOTDIR=$work/zsh TERM=dumb python3 "$root/tests/support/tab.py" zsh -d -i ;;
  esac
}

# What is typed, and what stands there after a Tab.
cat >"$work/expected" <<EXPECTED
mlenv bu|mlenv build 
mlenv build --l|mlenv build --locked 
mlenv build --no-unpack on|mlenv build --no-unpack one.yaml 
mlenv build n|mlenv build n
mlenv --json stor|mlenv --json store 
mlenv store ver|mlenv store verify 
mlenv store verify --r|mlenv store verify --repair 
mlenv --progress pl|mlenv --progress plain 
mlenv build --progress=pl|mlenv build --progress=plain 
mlenv -q build --color al|mlenv -q build --color always 
mlenv run ba|mlenv run base 
mlenv run tw|mlenv run two.yml 
mlenv run 127|mlenv run $tagged 
mlenv build rec|mlenv build recipes/
mlenv inspect base:l|mlenv inspect base:latest 
mlenv inspect 127.0.0.1:5000/t|mlenv inspect $tagged 
mlenv run base --no-p|mlenv run base --no-project 
mlenv run base python no|mlenv run base python notes.txt 
mlenv run base -- python --loc|mlenv run base -- python --loc
mlenv save base docker-archive:ima|mlenv save base docker-archive:image.tar 
mlenv build -o oci-a|mlenv build -o oci-archive:
mlenv completion z|mlenv completion zsh 
mlenv help compl|mlenv help completion 
mlenv add --recipe on|mlenv add --recipe one.yaml 
mlenv gen|mlenv gen
EXPECTED

for shell in bash zsh; do
  note "$shell"
  cut -d'|' -f1 "$work/expected" | typed "$shell" >"$work/found.$shell"
  cut -d'|' -f2 "$work/expected" | diff - "$work/found.$shell" || fail "$shell completes otherwise"
done

note "fish"
# Its own command says what is offered; a description may follow after a tab.
offered() { fish --no-config -c "source '$work/script.fish'; complete -C '$*'" | cut -f1 | LC_ALL=C sort | tr '\n' ' '; }
equal bu "build " "$(offered mlenv bu)"
equal --l "--locked " "$(offered mlenv build --l)"
equal recipes "one.yaml recipes/ two.yml " "$(offered 'mlenv build ')"
equal store "path sync verify " "$(offered 'mlenv --json store ')"
equal --progress "auto json none plain tty " "$(offered 'mlenv build --progress ')"
equal --progress= "--progress=plain " "$(offered 'mlenv build --progress=pl')"
equal images "$tagged base " "$(offered 'mlenv inspect ')"
equal runnable "$tagged base one.yaml recipes/ two.yml " "$(offered 'mlenv run ')"
equal run "--no-project " "$(offered 'mlenv run base --no-p')"
equal job "" "$(offered 'mlenv run base -- python --loc')"
equal outputs "docker-archive:image.tar " "$(offered 'mlenv save base docker-archive:ima')"
equal shells "bash fish zsh " "$(offered 'mlenv completion ')"
equal hidden "" "$(offered 'mlenv gen')"

note "bash: all that is offered"
# shellcheck disable=SC1091
offered() { # offered WORD…: the last one is being typed
  bash --norc -c '. "$0"; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
    _mlenv mlenv "${@: -1}" && printf "%s\n" "${COMPREPLY[@]}"' "$work/script.bash" "$@" | LC_ALL=C sort | tr '\n' ' '
}
equal recipes "one.yaml recipes two.yml " "$(offered mlenv build "")"
equal --progress "auto json none plain tty " "$(offered mlenv --progress "")"
equal runnable "$tagged base one.yaml recipes two.yml " "$(offered mlenv run "")"
for command in $(mlenv --help | sed -n '/^Environment:/,$s/^  \([a-z]\+\) .*/\1/p'); do
  [[ " $(offered mlenv "") " == *" $command "* ]] || fail "bash does not offer $command"
done

note "a store that cannot be read says nothing, and none is made"
for store in /proc/self/none "$work/absent"; do
  MLENV_STORE=$store offered mlenv inspect "" >"$work/out" 2>&1
  [ -z "$(tr -d '[:space:]' <"$work/out")" ] || fail "offers: $(cat "$work/out")"
done
[ ! -e "$work/absent" ] || fail "a Tab made a store"
verify_store
