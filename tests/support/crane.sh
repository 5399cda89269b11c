# shellcheck shell=bash disable=SC2154  # tests/lib.sh sets $work
# `crane`, built once and kept among the tests' inputs. To be sourced after tests/lib.sh.

# crane_program: sets $crane; ends the test as skipped where it cannot be had.
crane_program() {
  crane=$XDG_CACHE_HOME/bin/crane
  if [ -x "$crane" ]; then return; fi
  local PATH=$PATH:/usr/local/go/bin
  command -v go >/dev/null || skip "no Go to build crane with"
  note "building crane"
  GOBIN=$work/gobin GOFLAGS=-mod=mod go install github.com/google/go-containerregistry/cmd/crane@v0.19.2 ||
    skip "crane cannot be built here"
  mkdir -p "${crane%/*}"
  mv "$work/gobin/crane" "$crane"
}
