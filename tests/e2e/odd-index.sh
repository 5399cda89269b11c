#!/usr/bin/env bash
# Python indexes that lack what a lock needs, or have not what the recipe wants: refused by name.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

cat >"$work/index.py" <<'PYTHON'
import hashlib, http.server, io, sys, zipfile

def wheel(name):
    files = {
        f"{name}.py": "value = 42\n",
        f"{name}-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{name}-1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
    }
    files[f"{name}-1.0.dist-info/RECORD"] = "".join(f"{file},,\n" for file in files) + f"{name}-1.0.dist-info/RECORD,,\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for file, text in files.items():
            archive.writestr(zipfile.ZipInfo(file, (2020, 1, 1, 0, 0, 0)), text)
    return out.getvalue()

wheels = {name: wheel(name) for name in ("unhashed", "unsized")}

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        parts = self.path.strip("/").split("/")
        name = parts[-1].split("-")[0]
        if name not in wheels:
            self.send_error(404)
            return
        body = wheels[name]
        if parts[0] == "simple":
            kind = "md5" if name == "unhashed" else "sha256"
            digest = f"#{kind}={hashlib.new(kind, body).hexdigest()}"
            file = f"{name}-1.0-py3-none-any.whl"
            body = f'<!DOCTYPE html><a href="/wheels/{file}{digest}">{file}</a>'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if parts[0] == "simple" else "application/octet-stream")
        if name != "unsized" or parts[0] == "simple":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)
    do_HEAD = do_GET

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
PYTHON

port=$(free_port)
start "$work/index.log" python3 "$work/index.py" "$port"
wait_until 10 curl -s -o "$work/page" "http://127.0.0.1:$port/simple/unhashed/"

for package in unhashed unsized unknown; do
  small_recipe "$work/$package.yaml" "$package"
  echo "sources: {pypi: \"http://127.0.0.1:$port/simple\"}" >>"$work/$package.yaml"
done
note "no digest, no size, no such package"
failing_with no-digest "$MLENV" --json lock "$work/unhashed.yaml"
failing_with no-size "$MLENV" --json lock "$work/unsized.yaml"
failing_with unsatisfiable "$MLENV" --json lock "$work/unknown.yaml"
grep -q unknown "$work/err" || fail "says: $(cat "$work/err")"
[ -z "$(find "$work" -name '*.lock')" ] || fail "a lock was written"
