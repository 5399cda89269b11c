"""hostile_registry.py PORT LOG [--tls CERTIFICATE KEY] [--address ADDRESS]: a registry and web server on
loopback with bad manners. It has one image, `/v2/team/x` with the tag v1, made of a layer with one file.
How it behaves is the first part of a path, so that one server serves many questions: `/v2/MODE/x/…`, and
`/MODE/…` for what is no registry's.

    ok               as it should be
    basic            wants a login (401, Basic) and takes any
    hidden, closed   404 or 403 to who shows no login, and does not ask for one
    lacks            wants a login, and has nothing
    moved.PORT       blobs, and all that is no registry's, are redirected to that port of 127.0.0.1
    moved-basic.PORT the same, for who has shown a login
    realm.PORT       wants a token of the server at that port of 127.0.0.1
    elsewhere.PORT   wants a login; uploads go on at that port
    token            wants a token of its own, and gives one to anybody
    big-config       a config of 63 MB of empty lists
    told-config      a config of 200 GB, says the manifest
    many-values      a manifest of 3 MB of empty lists
    other-size       the manifest gives the layer one byte more than it has
    told-manifest    Content-Length of a manifest is 2^40; nothing follows
    heads            a head without an end
    continues        100 Continue without an end
    big-error        400 with 20 MB

Each request is a line of LOG: `PORT METHOD PATH AUTHORIZATION PROXY-AUTHORIZATION`. A CONNECT is such a line, too, and
is refused.
"""
import gzip
import hashlib
import http.server
import io
import json
import ssl
import sys
import tarfile

port, log_path = int(sys.argv[1]), sys.argv[2]
rest = sys.argv[3:]
address = rest[rest.index("--address") + 1] if "--address" in rest else "127.0.0.1"
log = open(log_path, "a", buffering=1)
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def layer():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        one = tarfile.TarInfo("hello")
        one.size = 5
        tar.addfile(one, io.BytesIO(b"hello"))
    return out.getvalue()


TAR = layer()
BLOB = gzip.compress(TAR, mtime=0)


def image(mode):
    config = {"architecture": "amd64", "os": "linux", "config": {"Cmd": ["/hello"]},
              "rootfs": {"type": "layers", "diff_ids": [digest(TAR)]}}
    text = json.dumps(config).encode()
    if mode == "big-config":
        text = text[:-1] + b',"x":[' + b"[]," * (21 << 20) + b"[]]}"
    manifest = {"schemaVersion": 2, "mediaType": MANIFEST,
                "config": {"mediaType": "application/vnd.oci.image.config.v1+json",
                           "digest": digest(text), "size": len(text)},
                "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
                            "digest": digest(BLOB), "size": len(BLOB)}]}
    if mode == "told-config":
        manifest["config"]["size"] = 200 << 30
    if mode == "other-size":
        manifest["layers"][0]["size"] += 1
    whole = json.dumps(manifest).encode()
    if mode == "many-values":
        whole = whole[:-1] + b',"a":[' + b"[]," * 1_000_000 + b"[]]}"
    return whole, {digest(text): text, digest(BLOB): BLOB}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def send(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def forever(self, first, line):
        try:
            self.wfile.write(first)
            while True:
                self.wfile.write(line * 50)
        except OSError:
            self.close_connection = True

    def answer(self):
        log.write("%d %s %s %s %s\n" % (port, self.command, self.path, self.headers.get("Authorization", "-").replace(" ", "_"),
                                        self.headers.get("Proxy-Authorization", "-").replace(" ", "_")))
        if self.command == "CONNECT":
            return self.send(403)
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = self.path.split("?")[0].strip("/").split("/")
        registry = parts[0] == "v2"
        mode = parts[1] if registry and len(parts) > 1 else parts[0]
        mode, _, other = mode.partition(".")
        there = "http://127.0.0.1:%s" % other
        login = self.headers.get("Authorization")
        blob = "blobs" in parts and "uploads" not in parts
        if mode == "token" and "give" in parts:
            return self.send(200, b'{"token": "t0ken"}')
        if mode in ("hidden", "closed") and not login:
            return self.send(404 if mode == "hidden" else 403)
        if mode in ("basic", "elsewhere", "lacks", "moved-basic") and not login:
            return self.send(401, WWW_Authenticate='Basic realm="x"')
        if mode == "realm" and not login:
            return self.send(401, WWW_Authenticate='Bearer realm="%s/token/give",service="s"' % there)
        if mode == "token" and not login:
            return self.send(401, WWW_Authenticate='Bearer realm="http://127.0.0.1:%d/token/give",service="s"' % port)
        if mode in ("moved", "moved-basic") and (blob or not registry):
            return self.send(307, Location=there + "/basic/stolen")
        if mode == "lacks":
            return self.send(404)
        if mode == "heads":
            return self.forever(b"HTTP/1.1 200 OK\r\n", b"X-A: " + b"y" * 1000 + b"\r\n")
        if mode == "continues":
            return self.forever(b"", b"HTTP/1.1 100 Continue\r\nX: y\r\n\r\n")
        if mode == "big-error":
            return self.send(400, b"x" * (20 << 20))
        if mode == "told-manifest" and "manifests" in parts:
            return self.send(200, Content_Length=str(1 << 40))
        if not registry:
            return self.send(404)
        manifest, blobs = image(mode)
        if "manifests" in parts and self.command in ("GET", "HEAD"):
            return self.send(200, manifest, Content_Type=MANIFEST)
        if "uploads" in parts and self.command == "POST":
            there = there if mode == "elsewhere" else "http://127.0.0.1:%d" % port
            return self.send(202, Location=there + "/basic/upload")
        if blob and parts[-1] in blobs and mode != "elsewhere":
            return self.send(200, blobs[parts[-1]])
        return self.send(404 if parts != ["v2"] else 200)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_CONNECT = answer


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client):
        pass


server = Server((address, port), Handler)
if "--tls" in rest:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*rest[rest.index("--tls") + 1:][:2])
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
