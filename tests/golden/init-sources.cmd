# exit: 0
# What each says, without the comments that every recipe has.
said() { sed '/^# As on/d; /^base:/d; s/^python: .*/python/; /^# \(pytorch, t\|Debian\|Ubuntu\|Python packages\|Environment v\|What of this\|system:\|env:\|files:\|packages:\|framework:\)/d; /^#   \(- \|PYTHON\|src:\|mlenv\)/d; /^# \(What this env\|image of it\)/d; /^#\?$/d' "$1"; }
for source in lab work/export.yml work/requirements.txt work/frozen.txt space; do
  mlenv -q init --from $source --recipe x.yaml && said x.yaml
  rm x.yaml
done
