"""What stands before a registry in life, in front of a real one on loopback: a token server, blobs
that lie on another server, uploads that go there (of `team/elsewhere`), and refusals of who comes too
often. Each request is a line of LOG: `SERVER METHOD PATH STATUS AUTHORIZATION`.

    registry_front.py UPSTREAM PORT STORE-PORT LOG [--tls CERTIFICATE KEY]
"""
import base64, email.utils, http.client, http.server, ssl, sys, threading, time

upstream, port, store_port, log = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), open(sys.argv[4], "a", buffering=1)
tls = sys.argv[6:8] if len(sys.argv) > 5 else None
scheme = "https" if tls else "http"
LOGIN = "Basic " + base64.b64encode(b"ann:s3cret").decode()
refusals = {}
lock = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, headers=(), body=b""):
        with lock:
            log.write(f"{self.name} {self.command} {self.path.split('?')[0]} {status} {self.headers.get('Authorization', '-')}\n")
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def ask(self, path, headers, body=None):
        connection = http.client.HTTPConnection(upstream)
        connection.request(self.command, path, body, headers)
        response = connection.getresponse()
        data = response.read()
        kept = [(k, v) for k, v in response.getheaders() if k.lower() not in ("content-length", "connection", "date", "transfer-encoding")]
        return response.status, kept, data

    def log_message(self, *arguments):
        pass


class Store(Handler):
    """Where blobs lie: it knows no logins."""
    name = "store"

    def do_GET(self):
        self.answer(*self.ask(self.path.removeprefix("/bucket"), {}))


class Front(Handler):
    name = "front"

    def do_GET(self):
        if self.path.startswith("/token"):
            good = self.headers.get("Authorization") == LOGIN
            return self.answer(200 if good else 401, (), b'{"token": "t0ken"}' if good else b"{}")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or None
        if self.headers.get("Authorization") != "Bearer t0ken":
            realm = f'Bearer realm="{scheme}://{self.headers["Host"]}/token",service="test",scope="repository:team/x:pull,push"'
            return self.answer(401, [("WWW-Authenticate", realm)])
        if self.command == "POST" and "/elsewhere/" in self.path:
            return self.answer(202, [("Location", f"http://127.0.0.1:{store_port}/upload")])
        kind = "manifests" if "/manifests/" in self.path else "blobs" if self.command == "GET" else None
        with lock:
            first = kind is not None and kind not in refusals
            refusals[kind] = True
        if first:  # once with seconds, once with a date
            wait = "1" if kind == "manifests" else email.utils.formatdate(time.time() + 2, usegmt=True)
            return self.answer(429, [("Retry-After", wait)])
        if self.command == "GET" and kind == "blobs":
            return self.answer(307, [("Location", f"http://127.0.0.1:{store_port}/bucket{self.path}?signature=x")])
        headers = {k: ", ".join(self.headers.get_all(k)) for k in self.headers.keys()
                   if k.lower() not in ("authorization", "content-length", "connection")}
        self.answer(*self.ask(self.path, headers, body))

    do_HEAD = do_POST = do_PUT = do_PATCH = do_GET


servers = [http.server.ThreadingHTTPServer(("127.0.0.1", port), Front), http.server.ThreadingHTTPServer(("127.0.0.1", store_port), Store)]
if tls:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*tls)
    servers[0].socket = context.wrap_socket(servers[0].socket, server_side=True)
threading.Thread(target=servers[1].serve_forever, daemon=True).start()
servers[0].serve_forever()
