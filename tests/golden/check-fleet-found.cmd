# exit: 0
tell() { echo "\$ $*"; "$@" || echo "exit $?"; }
mkdir hosts
for i in 1 2 3 4 5 6 7 8 9; do cp v100.json "hosts/v100-$i.json"; done
# The same rule, for other reasons; and one of which the table knows no release that runs.
sed 's/470\.199\.02/450.51.06/; s/"11\.4"/"11.0"/; s/Tesla V100-SXM2-32GB/Tesla V100-PCIE-16GB/' \
  v100.json >hosts/v100-pcie.json
sed 's/470\.199\.02/390.46/; s/"11\.4"/"9.1"/' v100.json >hosts/v100-ancient.json
tell mlenv check torch.json --fleet hosts
tell mlenv check torch.json --fleet hosts --markdown
