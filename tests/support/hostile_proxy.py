"""hostile_proxy.py PORT LOG: an HTTP proxy on loopback with bad manners. The user of the login that it is shown says
which; each request is a line of LOG: `METHOD TARGET`.

    login      407
    refuse     403, with a body of 100 GB
    redirect   302 to another place
    garbage    no HTTP
    heads      a head without an end
    continues  100 Continue without an end
    later      503 at first, 403 then
"""
import base64
import re
import socketserver
import sys

log = open(sys.argv[2], "a", buffering=1)
asked = []


def user_in(head):
    found = re.search(rb"Proxy-Authorization: Basic (\S+)", head)
    return base64.b64decode(found.group(1)).decode().split(":")[0] if found else ""


class Handler(socketserver.BaseRequestHandler):
    def forever(self, first, more):
        self.request.sendall(first)
        while True:
            self.request.sendall(more)

    def handle(self):
        head = b""
        while b"\r\n\r\n" not in head:
            more = self.request.recv(4096)
            if not more:
                return
            head += more
        log.write(" ".join(head.decode("latin-1").split(" ")[:2]) + "\n")
        try:
            self.answer(user_in(head))
        except OSError:
            pass

    def answer(self, mode):
        asked.append(mode)
        if mode == "refuse" or (mode == "later" and asked.count(mode) > 1):
            self.forever(b"HTTP/1.1 403 No\r\nContent-Length: 100000000000\r\n\r\n", b"x" * 65536)
        elif mode == "later":
            self.request.sendall(b"HTTP/1.1 503 Later\r\nContent-Length: 0\r\n\r\n")
        elif mode == "redirect":
            self.request.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/x\r\nContent-Length: 0\r\n\r\n")
        elif mode == "garbage":
            self.request.sendall(b"\0\xff no HTTP\r\n" * 9)
        elif mode == "heads":
            self.forever(b"HTTP/1.1 200 OK\r\n", b"X: " + b"y" * 900 + b"\r\n")
        elif mode == "continues":
            self.forever(b"", b"HTTP/1.1 100 Continue\r\nX: y\r\n\r\n")
        else:
            self.request.sendall(b"HTTP/1.1 407 Login\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 6\r\n\r\nlogin?")


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
