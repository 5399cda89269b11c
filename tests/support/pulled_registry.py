"""What stands before a registry in life, in front of a real one on loopback, for tests in which others
than mlenv fetch from it. What it does is read from MODE, a file of JSON, at each request:

    auth        none, token (of ann:s3cret; for pulling alone, unless pushes are asked for), basic
    forget      when so many blobs were asked for the tokens until then are good no more
    elsewhere   blobs are redirected to this URL; who comes to the second server is in the log, too
    rate        bytes of blobs a second to each connection
    wrong       blobs have other bytes
    cut         so many bytes of a blob leave on a connection, then it breaks off
    whole       Range is not heeded
    die_after   it exits when so many bytes of blobs have left since MODE says so

Each request is a line of LOG: `SERVER METHOD PATH STATUS BYTES AUTHORIZATION`.

    pulled_registry.py UPSTREAM ADDRESS PORT OTHER-PORT LOG MODE [--tls CERTIFICATE KEY]
"""
import base64, http.client, http.server, json, os, socket, ssl, sys, threading, time, urllib.parse

upstream, address, port, other_port, log_path, mode_path = sys.argv[1:7]
tls = sys.argv[8:10] if len(sys.argv) > 7 else None
log = open(log_path, "a", buffering=1)
LOGIN = "Basic " + base64.b64encode(b"ann:s3cret").decode()
lock = threading.Lock()
tokens = set()
given = 0
asked = 0  # for blobs, with a token
left = 0  # bytes of blobs


def mode():
    with open(mode_path) as file:
        return json.load(file)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def note(self, status, count):
        with lock:
            log.write(f"{self.name} {self.command} {self.path.split('?')[0]} {status} {count} {self.headers.get('Authorization', '-')}\n")

    def answer(self, status, headers=(), body=b""):
        self.note(status, len(body))
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def pass_on(self, path, now):
        """As the real one answers it; a blob's bytes as they come."""
        global left
        length = int(self.headers.get("Content-Length") or 0)
        blob = "/blobs/sha256:" in path and self.command == "GET"
        headers = {k: ", ".join(self.headers.get_all(k)) for k in self.headers.keys() if k.lower() not in ("authorization", "content-length", "connection", "host")}
        if now.get("whole"):
            headers = {k: v for k, v in headers.items() if k.lower() != "range"}
        connection = http.client.HTTPConnection(upstream)
        headers["Host"] = self.headers["Host"]
        headers["X-Forwarded-Proto"] = "https" if tls else "http"
        connection.request(self.command, path, self.rfile.read(length) or None, headers)
        response = connection.getresponse()
        kept = [(k, v) for k, v in response.getheaders() if k.lower() not in ("connection", "date", "transfer-encoding", "content-length")]
        if not blob:
            return self.answer(response.status, kept, response.read())
        self.send_response(response.status)
        for name, value in kept:
            self.send_header(name, value)
        self.send_header("Content-Length", response.getheader("Content-Length", "0"))
        self.end_headers()
        sent, began = 0, time.monotonic()
        try:
            while part := response.read(65536):
                if now.get("wrong"):
                    part = bytes(byte ^ 1 for byte in part[:64]) + part[64:]
                self.wfile.write(part)
                sent += len(part)
                with lock:
                    left = left + len(part) if "die_after" in now else 0
                if "die_after" in now and left > now["die_after"]:
                    os._exit(1)
                if sent >= now.get("cut", sent + 1):
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    break
                if "rate" in now:
                    time.sleep(max(0.0, sent / now["rate"] - (time.monotonic() - began)))
        except OSError:
            self.close_connection = True
        self.note(response.status, sent)


class Other(Handler):
    """Where blobs lie: it knows no logins."""
    name = "other"

    def do_GET(self):
        self.pass_on(self.path, mode())


class Front(Handler):
    name = "front"

    def do_GET(self):
        now = mode()
        if self.path.startswith("/token"):
            return self.give_token(now)
        blob = self.command == "GET" and "/blobs/sha256:" in self.path
        refusal = self.refusal(now, blob)
        if refusal:
            return self.answer(401, [("WWW-Authenticate", refusal)])
        if blob and "elsewhere" in now:
            return self.answer(307, [("Location", now["elsewhere"] + self.path + "?signature=x")])
        self.pass_on(self.path, now)

    def give_token(self, now):
        global given
        if self.headers.get("Authorization") != LOGIN:
            return self.answer(401, (), b"{}")
        scope = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("scope", [""])[0]
        with lock:
            given += 1
            token = f"t0ken{given}-{scope.rsplit(':', 1)[-1].replace(',', '+')}"
            tokens.add(token)
        self.answer(200, (), json.dumps({"token": token}).encode())

    def refusal(self, now, blob):
        global asked
        said = self.headers.get("Authorization", "")
        if now["auth"] == "basic":
            return None if said == LOGIN else 'Basic realm="test"'
        if now["auth"] != "token":
            return None
        scheme = "https" if tls else "http"
        wanted = f'Bearer realm="{scheme}://{self.headers["Host"]}/token",service="test",scope="repository:team/x:pull,push"'
        with lock:
            token = said.removeprefix("Bearer ")
            if blob and asked == now.get("forget"):
                tokens.clear()
            if token not in tokens:
                asked += asked == now.get("forget")
                return wanted
            asked += blob
        return None

    do_HEAD = do_POST = do_PUT = do_PATCH = do_GET


servers = [http.server.ThreadingHTTPServer((address, int(port)), Front), http.server.ThreadingHTTPServer((address, int(other_port)), Other)]
if tls:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*tls)
    for server in servers:
        server.socket = context.wrap_socket(server.socket, server_side=True)
log.write("listening\n")
threading.Thread(target=servers[1].serve_forever, daemon=True).start()
servers[0].serve_forever()
