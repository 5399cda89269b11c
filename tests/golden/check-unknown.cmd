# exit: 0
tell() { echo "\$ $*"; "$@" || echo "exit $?"; }
# unknown NAME…: these facts of the host
unknown() {
  local script=
  for name; do script+="/\"$name\": {/,/}/ s/\"value\":.*/\"value\": null/;"; done
  sed "$script" h100.json
}
mkdir hosts
cp h100.json hosts/a.json
unknown kernel_driver user_driver cuda_version mismatch >hosts/b.json
cp hosts/b.json hosts/c.json
unknown cuda_status >hosts/d.json
tell mlenv check torch.json --host hosts/a.json --strict
tell mlenv check torch.json --host hosts/b.json
tell mlenv check torch.json --host hosts/b.json --strict
tell mlenv check torch.json --host hosts/d.json --strict
tell mlenv check torch.json --fleet hosts
tell mlenv check torch.json --fleet hosts --strict --markdown
tell mlenv --json check torch.json --host hosts/d.json
