#!/usr/bin/env bash
# `mlenv export devcontainer`, opened by the devcontainer CLI with a Docker of the test's own, as an
# ordinary user: the image's Python runs in it, and files made there are the user's.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/engines.sh
. "$(dirname "$0")/../support/engines.sh"
need dockerd docker node npm jq umoci unshare
need_root
[ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ] || skip "node is older than 20"

base_store
mkdir -p "$work/project/sub" "$work/own" "$work/tools"
path=$work/project/recipe.yaml
small_recipe "$path" six
build_digest "$path" >/dev/null
# The same with a user of its own.
"$MLENV" save small "oci:$work/layout" >/dev/null
umoci config --image "$work/layout:$(jq -r '.manifests[0].annotations["org.opencontainers.image.ref.name"]' "$work/layout/index.json")" \
  --config.user www-data
printf 'name: own\nbase: oci:layout\n' >"$work/own.yaml"
"$MLENV" -q build "$work/own.yaml" >/dev/null
make_user
cp "$root"/tests/support/node/*.json "$work/tools/"
(cd "$work/tools" && npm ci --silent --ignore-scripts --cache "$XDG_CACHE_HOME/npm")

note "what is written"
"$MLENV" export devcontainer "$path" >"$work/out"
folder=$work/project/.devcontainer
equal "answer" "$folder/devcontainer.json $folder/image.sh" "$(xargs <"$work/out")"
equal "JSON" "small /workspace dev none" \
  "$(jq -r '"\(.name) \(.workspaceFolder) \(.remoteUser) \(.hostRequirements.gpu // "none")"' "$folder/devcontainer.json")"
equal "Python" /opt/venv/bin/python \
  "$(jq -r '.customizations.vscode.settings["python.defaultInterpreterPath"]' "$folder/devcontainer.json")"
sh -n "$folder/image.sh"
failing_with file-exists "$MLENV" --json export devcontainer "$path"
"$MLENV" export devcontainer --force "$path" >/dev/null
"$MLENV" export devcontainer own --output "$work/own" >/dev/null
equal "its user" "www-data false" "$(jq -r '"\(.remoteUser) \(.updateRemoteUserUID)"' "$work/own/.devcontainer/devcontainer.json")"
# From here on all is the user's.
as_root chown -R "$user_id:$user_id" "$MLENV_STORE" "$work/project" "$work/own"

note "a Docker that the user may talk to"
# shellcheck disable=SC2119  # no options
start_docker
dock() { as_root docker --host "$DOCKER_HOST" "$@"; }
as_root chmod 666 "$work/docker/socket"
end_containers() { dock ps -aq | xargs -r "${sudo[@]}" docker --host "$DOCKER_HOST" rm -f >/dev/null 2>&1 || true; }
trap 'status=$?; end_containers; (exit "$status"); finish_test' EXIT

# The CLI asks for the user's name.
{
  cat /etc/passwd
  echo "somebody:x:$user_id:$user_id::$user_home:/bin/sh"
} >"$work/passwd"
cli() { # cli ARGUMENT…: the devcontainer CLI as the user, who has a name, mlenv and docker
  # shellcheck disable=SC2016  # for that shell
  as_root unshare --mount sh -c 'mount --bind "$0" /etc/passwd && exec "$@"' "$work/passwd" \
    setpriv --reuid "$user_id" --regid "$user_id" --clear-groups --no-new-privs \
    env -i HOME="$user_home" PATH="$work/bin:$PATH" "${machine_env[@]}" DOCKER_HOST="$DOCKER_HOST" \
    MLENV_STORE="$MLENV_STORE" node "$work/tools/node_modules/@devcontainers/cli/devcontainer.js" "$@"
}
opened() { # opened: brings it up, and looks around in it
  cli up --workspace-folder "$work/project" >"$work/up.out" 2>"$work/up.err" || fail "$(tail -n 20 "$work/up.err" "$work/up.out")"
  equal "outcome" "success dev /workspace" "$(tail -n 1 "$work/up.out" | jq -r '"\(.outcome) \(.remoteUser) \(.remoteWorkspaceFolder)"')"
}
inside() { cli exec --workspace-folder "$work/project" "$@"; }

note "devcontainer up"
opened
equal "Python" "/opt/venv/bin/python six" \
  "$(inside python -c 'import six, sys; print(sys.executable, six.__name__)' | tail -n 1 | tr -d '\r')"
equal "a shell's Python" /opt/venv/bin/python "$(inside bash -c 'command -v python' | tail -n 1 | tr -d '\r')"
inside sh -c 'echo made >sub/made && touch ~/own'
equal "whose" "$user_id:$user_id" "$(stat -c %u:%g "$work/project/sub/made")"
# shellcheck disable=SC2016  # for the shell inside
equal "who" "dev /home/dev $user_id" "$(inside sh -c 'echo "$(id -un) $HOME $(id -u)"' | tail -n 1 | tr -d '\r')"

note "the recipe changes: the next one has the other image"
end_containers
as_root sed -i 's/^packages: .*/packages: [idna]/' "$path"
opened
inside python -c 'import idna' || fail "the image is the one before"

note "an image with a user of its own, by its name in the store"
cli up --workspace-folder "$work/own" >"$work/up.out" 2>"$work/up.err" || fail "$(tail -n 20 "$work/up.err" "$work/up.out")"
cli exec --workspace-folder "$work/own" sh -c 'echo made >made'
equal "whose" "$user_id" "$(stat -c %u "$work/own/made")"
