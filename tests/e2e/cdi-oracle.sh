#!/usr/bin/env bash
# GPUs that mlenv describes by itself, and GPUs as NVIDIA's container toolkit describes them (its own
# generator and hooks, built here): a container sees the same. The hosts are recorded ones, stood up
# in mounts of their own: device nodes, /proc and /sys of the driver, libraries by its names, whose
# code does nothing. All hosts, and each by every way to choose GPUs, with --long.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc jq gcc ld unshare
need_root
[ ! -e /dev/nvidiactl ] || skip "this machine has NVIDIA's driver, which this test stands in for"
tools=$XDG_CACHE_HOME/bin/cdi-$(cat "$root"/tests/support/cdi_oracle/* | sha256sum | cut -c1-12)
if [ ! -x "$tools/nvidia-cdi-hook" ]; then
  PATH=$PATH:/usr/local/go/bin
  command -v go >/dev/null || skip "no Go to build NVIDIA's generator with"
  note "building NVIDIA's generator"
  mkdir -p "$work/tools"
  (cd "$root/tests/support/cdi_oracle" && go build -o "$work/tools/cdi_oracle" . &&
    go build -o "$work/tools/nvidia-cdi-hook" github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-cdi-hook) \
    >"$work/go.log" 2>&1 || { tail -n 5 "$work/go.log" && skip "NVIDIA's generator cannot be built here"; }
  mkdir -p "${tools%/*}"
  rm -rf "$tools"
  mv "$work/tools" "$tools"
fi
base_tree

multiarch=usr/lib/$(gcc -print-multiarch)
echo 'const char name[] = "of the driver";' | gcc -c -fPIC -o "$work/library.o" -x c -
library() { # library TREE FILE SONAME: its bytes are its own
  ld -shared -soname "$3" -o "$1/$multiarch/$2" "$work/library.o"
  echo "$2" >>"$1/$multiarch/$2" # behind what is loaded
}
file() { # file TREE PATH…: each with a text of its own
  local tree=$1 path
  shift
  for path in "$@"; do
    mkdir -p "$(dirname "$tree/$path")"
    echo "$path" >"$tree/$path"
  done
}
node() { # node TREE PATH MAJOR MINOR
  mkdir -p "$(dirname "$1/$2")"
  as_root mknod "$1/$2" c "$3" "$4"
  as_root chmod 666 "$1/$2"
}

# split TREE MINOR UUID GPU-INSTANCE CAPABILITY: a part of a GPU, whose two device files begin with that number
split() {
  local tree=$1 minor=$2 uuid=$3 instance=$4 first=$5 folder
  folder=$tree/proc/driver/nvidia/capabilities/gpu$minor/mig/gi$instance
  mkdir -p "$folder/ci0" "$tree/proc/driver/nvidia-caps"
  printf 'DeviceFileMinor: %d\nDeviceFileMode: 292\n' "$first" >"$folder/access"
  printf 'DeviceFileMinor: %d\nDeviceFileMode: 292\n' $((first + 1)) >"$folder/ci0/access"
  printf 'gpu%d/gi%d/access %d\ngpu%d/gi%d/ci0/access %d\n' "$minor" "$instance" "$first" "$minor" "$instance" $((first + 1)) \
    >>"$tree/proc/driver/nvidia-caps/mig-minors"
  node "$tree" "dev/nvidia-caps/nvidia-cap$first" 236 "$first"
  node "$tree" "dev/nvidia-caps/nvidia-cap$((first + 1))" 236 $((first + 1))
  echo "MIG $uuid $instance 0" >>"$tree.list"
}

# host TREE FACTS: what its driver shows and has installed. Minors run against the addresses, as they
# may.
host() {
  local tree=$1 facts=$2 version count index=0 uuid address minor name
  mkdir -p "$tree/$multiarch"
  version=$(jq -r '.nvidia.kernel_driver.value' "$facts")
  [[ $version =~ ^[0-9.]+$ ]] || fail "$facts has no driver"
  jq -r '.gpus.value[] | "\(.uuid.value) \(.pci_address.value)"' "$facts" >"$tree.gpus"
  count=$(wc -l <"$tree.gpus")
  [ "$count" -ge 1 ] || fail "$facts has no GPUs"
  : >"$tree.list"
  while read -r uuid address; do
    minor=$((count - 1 - index))
    uuid=GPU-$(printf '%08x' "$index")-${uuid#GPU-????????-} # recorded ones may be all the same
    echo "$minor $uuid $address" >>"$tree.list"
    node "$tree" "dev/nvidia$minor" 195 "$minor"
    node "$tree" "dev/dri/card$((index + 1))" 226 "$((index + 1))"
    node "$tree" "dev/dri/renderD$((index + 128))" 226 "$((index + 128))"
    mkdir -p "$tree/sys/bus/pci/devices/$address/drm/card$((index + 1))" \
      "$tree/sys/bus/pci/devices/$address/drm/renderD$((index + 128))" "$tree/proc/driver/nvidia/gpus/$address"
    printf 'Model: \t\t NVIDIA\nGPU UUID: \t %s\nDevice Minor: \t %s\n' "$uuid" "$minor" \
      >"$tree/proc/driver/nvidia/gpus/$address/information"
    if [[ $facts == *-mig-* ]]; then
      split "$tree" "$minor" "MIG-$index-a" 1 $((20 * index + 12))
      split "$tree" "$minor" "MIG-$index-b" 5 $((20 * index + 14))
    fi
    index=$((index + 1))
  done <"$tree.gpus"
  # As the stand-in for NVML reads it.
  sed 's/^[0-9].*/0 0 0 40000 0 0 0 0 0 0/' "$tree.list" >"$tree.nvml"
  node "$tree" dev/nvidiactl 195 255
  node "$tree" dev/nvidia-modeset 195 254
  node "$tree" dev/nvidia-uvm 510 0
  node "$tree" dev/nvidia-uvm-tools 510 1
  for name in libcuda:1 libcudadebugger:1 libnvcuvid:1 libnvidia-encode:1 libnvidia-nvvm:4 \
    libnvidia-opencl:1 libnvidia-ptxjitcompiler:1 libnvidia-opticalflow:1 libnvoptix:1 libnvidia-cfg:1 \
    libEGL_nvidia:0 libGLESv2_nvidia:2 libGLX_nvidia:0 libnvidia-fbc:1 libnvidia-ngx:1; do
    library "$tree" "${name%:*}.so.$version" "${name%:*}.so.${name#*:}"
  done
  for name in libnvidia-eglcore libnvidia-glcore libnvidia-glsi libnvidia-tls libnvidia-gpucomp libnvidia-rtcore; do
    library "$tree" "$name.so.$version" "$name.so.$version"
  done
  gcc -shared -fPIC -Wl,-soname,libnvidia-ml.so.1 -o "$tree/$multiarch/libnvidia-ml.so.$version" "$root/tests/support/standin_nvml.c"
  library "$tree" libnvidia-egl-gbm.so.1.1.2 libnvidia-egl-gbm.so.1
  library "$tree" libnvidia-egl-wayland.so.1.1.19 libnvidia-egl-wayland.so.1
  library "$tree" libnot-nvidias.so.1.2 libnot-nvidias.so.1
  file "$tree" usr/bin/nvidia-smi usr/bin/nvidia-debugdump usr/bin/nvidia-persistenced \
    usr/bin/nvidia-cuda-mps-control usr/bin/nvidia-cuda-mps-server usr/share/glvnd/egl_vendor.d/10_nvidia.json \
    usr/share/egl/egl_external_platform.d/15_nvidia_gbm.json usr/share/nvidia/nvoptix.bin \
    etc/vulkan/icd.d/nvidia_icd.json etc/OpenCL/vendors/nvidia.icd \
    "usr/lib/firmware/nvidia/$version/gsp_ga10x.bin" "usr/lib/firmware/nvidia/$version/gsp_tu10x.bin" \
    run/nvidia-persistenced/socket run/nvidia-fabricmanager/socket
  chmod 755 "$tree"/usr/bin/*
  if [ "$count" = 1 ]; then rm "$tree/run/nvidia-fabricmanager/socket" "$tree/usr/share/nvidia/nvoptix.bin"; fi
}

# on_host TREE COMMAND…: with the host's files over this machine's.
on_host() {
  # shellcheck disable=SC2016  # for that shell
  as_root env MLENV_STORE="$MLENV_STORE" XDG_CACHE_HOME="$work/cache" STANDIN_NVML="$1.nvml" unshare --mount --propagation private sh -euc '
    tree=$1
    shift
    over() { # over FOLDER: the tree first, then what is there, and a layer to write to
      mkdir -p "$tree/$1" "$tree.upper/$1" "$tree.work/$1"
      mount -t overlay overlay -o "lowerdir=$tree/$1:/$1,upperdir=$tree.upper/$1,workdir=$tree.work/$1" "/$1"
    }
    for folder in etc usr; do over "$folder"; done
    mkdir -p "$tree.dev" /run/cdi
    mount --rbind /dev "$tree.dev"
    mount -t overlay overlay -o "lowerdir=$tree/dev:$tree.dev" /dev
    for folder in pts shm mqueue; do [ ! -d "$tree.dev/$folder" ] || mount --rbind "$tree.dev/$folder" "/dev/$folder"; done
    mkdir -p /run/nvidia-persistenced /run/nvidia-fabricmanager
    mount -t tmpfs none /run
    cp -r "$tree/run/." /run
    mkdir -p "$tree/sys/fs/cgroup"
    mount --rbind /sys/fs/cgroup "$tree/sys/fs/cgroup"
    mount --rbind "$tree/sys" /sys
    mount --bind "$tree/proc/driver" /proc/driver
    ldconfig
    exec "$@"' on-host "$@"
}

cat >"$work/seen.py" <<'PYTHON'
# What of the driver is here: device nodes, files by their contents, libraries by the names that
# programs load them by, variables.
import ctypes, glob, hashlib, json, os, sys
def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:12]
seen = {"nodes": {}, "files": {}, "libraries": {}}
for folder, _, names in os.walk("/dev"):
    for name in names:
        path = os.path.join(folder, name)
        if "nvidia" in path or "/dri/" in path:
            if os.path.islink(path):
                continue
            status = os.stat(path)
            seen["nodes"][path] = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)} {status.st_mode & 0o777:o}"
for pattern in ("/usr/bin/nvidia-*", "/usr/share/**/*nvidia*", "/usr/share/nvidia/*", "/etc/vulkan/**/*.json",
                "/etc/OpenCL/**/*.icd", "/lib/firmware/**/*.bin", "/run/nvidia-*/socket", "/tmp/nvidia-mps"):
    for path in glob.glob(pattern, recursive=True):
        if os.path.isfile(path):
            seen["files"][path] = digest(path)
for name in sys.argv[1:]:
    try:
        ctypes.CDLL(name)
    except OSError:
        seen["libraries"][name] = None
        continue
    with open("/proc/self/maps") as maps:
        found = {line.split()[-1] for line in maps if os.path.basename(line.split()[-1]).startswith(name.split(".so")[0] + ".so")}
    seen["libraries"][name] = sorted(digest(path) for path in found)
    if name == "libcuda.so.1":
        print(*{os.path.dirname(path) for path in found}, file=sys.stderr)
seen["variables"] = {k: v for k, v in os.environ.items() if k.startswith("NVIDIA_") and k != "NVIDIA_CTK_LIBCUDA_DIR"}
print(json.dumps(seen, indent=1, sort_keys=True))
PYTHON

# seen TREE DEVICES: of a container that gets them.
seen() {
  local version names
  version=$(basename "$1/$multiarch"/libcuda.so.*)
  version=${version#libcuda.so.}
  read -ra names <<<"libcuda.so.1 libcuda.so libcudadebugger.so.1 libnvcuvid.so.1 libnvidia-encode.so.1 libnvidia-ml.so.1
    libnvidia-nvvm.so.4 libnvidia-opencl.so.1 libnvidia-ptxjitcompiler.so.1 libnvidia-opticalflow.so.1 libnvoptix.so.1
    libnvidia-cfg.so.1 libEGL_nvidia.so.0 libGLESv2_nvidia.so.2 libGLX_nvidia.so.0 libnvidia-fbc.so.1 libnvidia-ngx.so.1
    libnvidia-eglcore.so.$version libnvidia-glcore.so.$version libnvidia-glsi.so.$version libnvidia-tls.so.$version
    libnvidia-gpucomp.so.$version libnvidia-rtcore.so.$version libnvidia-egl-gbm.so.1 libnvidia-egl-wayland.so.1
    libnot-nvidias.so.1"
  (cd "$work/project" && on_host "$1" "$MLENV" run --no-check --network none --gpus "$2" -v "$work/seen.py:/mnt/seen.py:ro" base -- \
    python3 -I /mnt/seen.py "${names[@]}")
}

mkdir -p "$work/project"
hosts=(report-nd96-a100 rtx4090-610 a100-mig-580)
if [ "$MLENV_TEST_LONG" = 1 ]; then
  mapfile -t hosts < <(cd "$root/tests/verdicts/hosts" && for name in *.json; do
    jq -e '(.gpus.value | length) > 0 and all(.gpus.value[]; .pci_address.value) and
      (.nvidia.kernel_driver.value // "" | test("^[0-9.]+$"))' "$name" >/dev/null && echo "${name%.json}"
  done)
fi
for facts in "${hosts[@]}"; do
  tree=$work/$facts
  mkdir -p "$tree"
  host "$tree" "$root/tests/verdicts/hosts/$facts.json"
  second=$(sed -n '$s/^[0-9]* \(GPU-[^ ]*\).*/\1/p' "$tree.list")
  choices=(all device=0 1 "$second")
  if [[ $facts == *-mig-* ]]; then
    second=$(sed -n '$s/^MIG \(MIG-[^ ]*\).*/\1/p' "$tree.list")
    choices=(all device=0:0 1 2 "$second")
  fi
  # Each way to choose GPUs once.
  case $MLENV_TEST_LONG/$facts in
    0/report-*) choices=(all device=0) ;;
    0/rtx*) choices=("$second") ;;
    0/*-mig-*) choices=(device=0:0 1 "$second") ;;
  esac
  for devices in "${choices[@]}"; do
    note "$facts: $devices"
    rm -rf "$tree/etc/cdi"
    seen "$tree" "$devices" >"$work/own.json" 2>"$work/err" || fail "$(cat "$work/err")"
    equal "its own description was used" /usr/local/nvidia/lib64 "$(tail -n 1 "$work/err")"
    mkdir -p "$tree/etc/cdi"
    [ -s "$tree.yaml" ] || on_host "$tree" "$tools/cdi_oracle" "$tools/nvidia-cdi-hook" <"$tree.list" >"$tree.yaml" 2>"$work/log" ||
      fail "$(tail -n 5 "$work/log")"
    cp "$tree.yaml" "$tree/etc/cdi/nvidia.yaml"
    seen "$tree" "$devices" >"$work/toolkit.json" 2>"$work/err" || fail "$(cat "$work/err")"
    equal "NVIDIA's was used" "/$multiarch" "$(tail -n 1 "$work/err")"
    jq -e '.libraries["libcuda.so.1"] and (.nodes | length) >= 5 and (.files | length) >= 8 and
      (.libraries["libnot-nvidias.so.1"] | not)' "$work/toolkit.json" >/dev/null || fail "too little: $(cat "$work/toolkit.json")"
    diff -u "$work/toolkit.json" "$work/own.json" || fail "another container than NVIDIA's toolkit gives"
  done
done
[ "${#hosts[@]}" -ge 3 ] || fail "too few hosts"
note "${#hosts[@]} hosts"
