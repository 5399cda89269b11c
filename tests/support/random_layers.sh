# shellcheck shell=bash
# An image of bytes that no compression makes smaller, for e2e tests of what travels: after lib.sh,
#   . "$root/tests/support/random_layers.sh"
: "${work:?lib.sh comes first}"

# random_layers FOLDER MB…: as an OCI layout, its tag v1; a layer of so many megabytes each.
random_layers() {
  local folder=$1 megabytes tars=""
  shift
  for megabytes in "$@"; do
    mkdir "$work/layer"
    head -c "$((megabytes * 1000000 + 12345))" /dev/urandom >"$work/layer/data$megabytes"
    tar -C "$work/layer" -cf "$work/$megabytes.tar" .
    tars=$tars:$work/$megabytes.tar
    rm -r "$work/layer"
  done
  skopeo copy -q "tarball$tars" "oci:$folder:v1"
}
