#!/usr/bin/env bash
# An index that lists artifacts beside its images, as builders with attestations write it, goes through
# mlenv byte for byte. Oracles: skopeo, docker-registry.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need skopeo jq python3
start_registry
url=http://$registry/v2/team/app

put_blob() { # put_blob TYPE FILE: prints its descriptor
  local digest
  digest=sha256:$(sha256sum <"$2" | cut -d' ' -f1)
  local place
  place=$(curl --noproxy '*' -fsS -o /dev/null -D - -X POST "$url/blobs/uploads/" | tr -d '\r' | sed -n 's/^[Ll]ocation: //p')
  curl --noproxy '*' -fsS -o /dev/null -X PUT -H 'Content-Type: application/octet-stream' --data-binary "@$2" \
    "$place&digest=$digest"
  jq -nc --arg type "$1" --arg digest "$digest" --argjson size "$(stat -c %s "$2")" \
    '{mediaType: $type, digest: $digest, size: $size}'
}
put_manifest() { # put_manifest TYPE FILE [TAG]: prints its descriptor
  local digest
  digest=sha256:$(sha256sum <"$2" | cut -d' ' -f1)
  curl --noproxy '*' -fsS -o /dev/null -X PUT -H "Content-Type: $1" --data-binary "@$2" "$url/manifests/${3:-$digest}"
  jq -nc --arg type "$1" --arg digest "$digest" --argjson size "$(stat -c %s "$2")" \
    '{mediaType: $type, digest: $digest, size: $size}'
}
manifest_type=application/vnd.oci.image.manifest.v1+json
index_type=application/vnd.oci.image.index.v1+json
config_type=application/vnd.oci.image.config.v1+json
artifact_of() { # artifact_of CONFIG_DESCRIPTOR LAYER_DESCRIPTOR [ARTIFACT_TYPE]
  jq -nc --arg type "$manifest_type" --argjson config "$1" --argjson layer "$2" --arg artifact "${3:-}" \
    '{schemaVersion: 2, mediaType: $type} + (if $artifact == "" then {} else {artifactType: $artifact} end)
     + {config: $config, layers: [$layer]}'
}

note "two images, the attestation of one, and a bill of materials"
entries=()
for machine in amd64 arm64; do
  mkdir -p "$work/files/etc"
  echo "$machine" >"$work/files/etc/machine"
  tar -C "$work/files" --owner 0 --group 0 --mtime @0 --sort name -czf "$work/$machine.tar.gz" etc
  skopeo copy -q --override-arch "$machine" --dest-tls-verify=false "tarball:$work/$machine.tar.gz" "docker://$registry/team/app:$machine"
  skopeo inspect --raw --tls-verify=false "docker://$registry/team/app:$machine" >"$work/$machine.json"
  entries+=("$(put_manifest "$(jq -r --arg type "$manifest_type" '.mediaType // $type' "$work/$machine.json")" "$work/$machine.json" |
    jq -c --arg machine "$machine" '. + {platform: {os: "linux", architecture: $machine}}')")
done
printf '{"_type":"https://in-toto.io/Statement/v0.1","predicateType":"https://slsa.dev/provenance/v0.2"}' >"$work/statement"
statement=$(put_blob application/vnd.in-toto+json "$work/statement")
jq -nc --argjson layer "$statement" \
  '{architecture: "unknown", os: "unknown", config: {}, rootfs: {type: "layers", diff_ids: [$layer.digest]}}' >"$work/config"
artifact_of "$(put_blob "$config_type" "$work/config")" "$statement" >"$work/attestation"
entries+=("$(put_manifest "$manifest_type" "$work/attestation" |
  jq -c --argjson image "${entries[0]}" '. + {platform: {os: "unknown", architecture: "unknown"},
    annotations: {"vnd.docker.reference.type": "attestation-manifest", "vnd.docker.reference.digest": $image.digest}}')")
printf '{}' >"$work/empty"
printf '{"spdxVersion":"SPDX-2.3"}' >"$work/sbom"
artifact_of "$(put_blob application/vnd.oci.empty.v1+json "$work/empty")" \
  "$(put_blob application/spdx+json "$work/sbom")" application/spdx+json >"$work/bill"
entries+=("$(put_manifest "$manifest_type" "$work/bill")")
printf '%s\n' "${entries[@]}" | jq -s --arg type "$index_type" '{schemaVersion: 2, mediaType: $type, manifests: .}' >"$work/index"
index=$(put_manifest "$index_type" "$work/index" v1 | jq -r .digest)

note "pulled with all of it"
equal "digest" "$index" "$("$MLENV" -q pull --platform all "$registry/team/app:v1")"
verify_store
"$MLENV" --json inspect "$registry/team/app:v1" >"$work/found"
equal "images" "linux/amd64 linux/arm64" "$(jq -r '[.platforms[].platform] | join(" ")' "$work/found")"
equal "artifacts" "application/vnd.in-toto+json application/spdx+json" "$(jq -r '[.artifacts[].type] | join(" ")' "$work/found")"
equal "layers" 2 "$("$MLENV" --json images | jq '.images[0].layers')"

note "and passed on"
"$MLENV" -q push "$registry/team/app:v1" "$registry/other/app:v1" >/dev/null
"$MLENV" -q save "$registry/team/app:v1" "oci:$work/saved"
"$MLENV" -q save "$registry/team/app:v1" "oci-archive:$work/saved.tar"
for from in "docker://$registry/other/app:v1" "oci:$work/saved:v1" "oci-archive:$work/saved.tar:v1"; do
  rm -rf "$work/copy"
  skopeo copy -q --all --preserve-digests --src-tls-verify=false "$from" "dir:$work/copy"
  cmp "$work/index" "$work/copy/manifest.json" || fail "another index from $from"
  for blob in statement sbom empty config; do
    cmp "$work/$blob" "$work/copy/$(sha256sum <"$work/$blob" | cut -d' ' -f1)" || fail "no $blob from $from"
  done
done

note "without one platform it is sound, broken it is repaired without losing the name"
arm64=$(jq -r '.platforms[1].digest' "$work/found")
layer=$("$MLENV" --json inspect "$arm64" | jq -r '.layers[0].digest')
rm -f "$MLENV_STORE/blobs/${layer#sha256:}"
status=0
"$MLENV" store verify >"$work/log" 2>&1 || status=$?
equal "status" 3 "$status"
grep -qF "name $registry/team/app:v1: the image for linux/arm64: its layer" "$work/log" || fail "$(cat "$work/log")"
"$MLENV" store verify --repair >"$work/log" 2>&1 || fail "$(cat "$work/log")"
verify_store
equal "this machine's" "linux/amd64" "$("$MLENV" --json inspect --platform linux/amd64 "$registry/team/app:v1" | jq -r .platform)"
equal "listed" "linux/amd64" "$("$MLENV" --json images | jq -r '[.images[].platforms[].platform] | unique | join(" ")')"
equal "absent" "$arm64" "$("$MLENV" --json inspect "$registry/team/app:v1" | jq -r '.absent[0].digest')"
"$MLENV" --json inspect "$registry/team/app:v1" | cat - "$work/found" | python3 "$root/tests/schema/check.py" >/dev/null
failing_with not-found "$MLENV" --json inspect --platform linux/arm64 "$registry/team/app:v1"
failing_with absent "$MLENV" --json push "$registry/team/app:v1" "$registry/third/app:v1"
failing_with absent "$MLENV" --json save "$registry/team/app:v1" "oci:$work/part"
equal "fetched again" "$index" "$("$MLENV" -q pull --platform all "$registry/team/app:v1")"
"$MLENV" -q push "$registry/team/app:v1" "$registry/third/app:v1" >/dev/null
verify_store

note "an index of artifacts alone is no image"
printf '%s\n' "${entries[@]:2}" | jq -s --arg type "$index_type" '{schemaVersion: 2, mediaType: $type, manifests: .}' >"$work/others"
put_manifest "$index_type" "$work/others" none >/dev/null
failing_with not-found "$MLENV" --json pull --platform all "$registry/team/app:none"
