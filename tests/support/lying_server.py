"""lying_server.py PORT UPSTREAM: an HTTP server on loopback that passes on what UPSTREAM (a folder, or
the URL of another server) says, and lies about large files (`.whl`, blobs): GET /.lie/MODE sets how.

  honest   as it is
  cut      half of the body, then the connection closes; with Range, half of the rest
  wrong    one byte differs
  error    503
  …-once   the first time that a file is asked for since the mode was set

It does not do TLS, chunked answers or slow networks.
"""
import http.client
import http.server
import pathlib
import re
import sys
import threading
import urllib.parse

HOLDS = re.compile(r"\.whl$|/blobs/sha256:")


class State:
    mode = "honest"
    lied_about = set()
    lock = threading.Lock()


def from_folder(folder, path):
    file = (folder / path.lstrip("/"))
    if file.is_dir():
        file = file / "index.html"
    if not file.exists():
        return 404, {}, b""
    kind = "text/html" if file.suffix == ".html" else "application/octet-stream"
    return 200, {"Content-Type": kind}, file.read_bytes()


def from_server(upstream, method, path, headers, body):
    connection = http.client.HTTPConnection(upstream, timeout=60)
    connection.request(method, path, body=body, headers=headers)
    answer = connection.getresponse()
    data = answer.read()
    passed = {name: value for name, value in answer.getheaders()
              if name.lower() not in ("connection", "transfer-encoding", "content-length", "date")}
    if method == "HEAD":
        passed["Content-Length"] = answer.getheader("Content-Length", "0")
    return answer.status, passed, data


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def lie(self, path):
        with State.lock:
            mode, _, once = State.mode.partition("-")
            if not HOLDS.search(path) or (once and path in State.lied_about):
                return "honest"
            State.lied_about.add(path)
            return mode

    def truth(self, path):
        if isinstance(self.server.upstream, pathlib.Path):
            return from_folder(self.server.upstream, path)
        length = int(self.headers.get("Content-Length") or 0)
        headers = {name: ", ".join(self.headers.get_all(name)) for name in self.headers
                   if name.lower() not in ("range", "connection")}
        return from_server(self.server.upstream, self.command, self.path, headers,
                           self.rfile.read(length) if length else None)

    def answer(self):
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        if path.startswith("/.lie/"):
            with State.lock:
                State.mode, State.lied_about = path.removeprefix("/.lie/"), set()
            return self.send(200, {}, b"")
        status, headers, body = self.truth(path)
        if self.command != "GET" or status != 200:
            return self.send(status, headers, body)
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        lie = self.lie(path)
        if lie == "error":
            return self.send(503, {"Retry-After": "0"}, b"not now")
        if lie == "wrong" and body:
            middle = len(body) // 2
            body = body[:middle] + bytes([body[middle] ^ 1]) + body[middle + 1:]
        if wanted and int(wanted.group(1)) < len(body):
            begin, size = int(wanted.group(1)), len(body)
            end = min(int(wanted.group(2) or size - 1), size - 1) + 1
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{size}"
            status, body = 206, body[begin:end]
        return self.send(status, headers, body, cut=lie == "cut")

    def send(self, status, headers, body, cut=False):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.send_header("Accept-Ranges", "bytes")
        self.end_headers()
        if self.command == "HEAD":
            return
        if cut:
            body, self.close_connection = body[:len(body) // 2], True
        self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = answer


def main():
    port, upstream = int(sys.argv[1]), sys.argv[2]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.upstream = (upstream.removeprefix("http://") if upstream.startswith("http://")
                       else pathlib.Path(upstream))
    server.serve_forever()


if __name__ == "__main__":
    main()
