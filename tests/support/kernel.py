"""Inside a run of `mlenv run --jupyter`: starts a kernel by Jupyter's own interface, runs a line in it
over its web socket, and prints what came of it.

    kernel.py PLACE CODE
"""

import json
import os
import sys
import urllib.request
import uuid

import websocket

place, code = sys.argv[1:]
headers = {"Authorization": "token " + os.environ["JUPYTER_TOKEN"]}
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
request = urllib.request.Request(f"http://{place}/api/kernels", b"{}", headers)
kernel = json.load(direct.open(request, timeout=60))["id"]
socket = websocket.create_connection(
    f"ws://{place}/api/kernels/{kernel}/channels", header=headers, timeout=60, http_no_proxy=["*"]
)
message = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "session": "", "username": "", "version": "5.3"}
content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
socket.send(
    json.dumps({"header": message, "parent_header": {}, "metadata": {}, "channel": "shell", "content": content})
)
while True:
    answer = json.loads(socket.recv())
    if answer["parent_header"].get("msg_id") != message["msg_id"]:
        continue
    if answer["msg_type"] in ("execute_result", "error"):
        print(answer["content"].get("data", answer["content"])["text/plain"])
        break
