"""The servers of the benchmark, all on loopback: wheels (nginx), images (distribution) and the
peer's daemon (buildkitd). Each ends with its `close`."""
import os
import pathlib
import shutil
import socket
import subprocess
import time
import urllib.request


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {seconds} s: {what}")
        time.sleep(0.05)


def answers(url):
    try:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False


class Process:
    """A program in the background; its output goes to a log."""

    def __init__(self, argv, log, env=None):
        with open(log, "ab") as output:
            self.process = subprocess.Popen(argv, stdout=output, stderr=output,
                                            stdin=subprocess.DEVNULL, env=env)
        self.log = log

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Wheels(Process):
    """nginx over an index folder."""

    def __init__(self, index, folder):
        folder.mkdir()
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/simple"
        (folder / "nginx.conf").write_text(f"""
daemon off; pid {folder}/pid; error_log {folder}/error.log;
worker_processes 1;
user root;
events {{}}
http {{
  types {{ text/html html; }}
  default_type application/octet-stream;
  access_log off; sendfile on; keepalive_requests 100000;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{ listen 127.0.0.1:{port}; root {index}; }}
}}
""")
        super().__init__(["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")],
                         folder / "log")
        wait_until(lambda: answers(self.url + "/"), "nginx")


class Registry:
    """A registry whose content can be put back to an earlier state."""

    def __init__(self, program, folder):
        folder.mkdir()
        self.program, self.folder, self.port, self.server = program, folder, free_port(), None
        self.host = f"127.0.0.1:{self.port}"
        (folder / "config.yml").write_text(f"""
version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {folder}/data}}}}
http: {{addr: "{self.host}"}}
""")
        self.start()

    def start(self):
        self.server = Process([str(self.program), "serve", str(self.folder / "config.yml")],
                              self.folder / "log",
                              {**os.environ, "OTEL_TRACES_EXPORTER": "none"})
        wait_until(lambda: answers(f"http://{self.host}/v2/"), "the registry")

    def close(self):
        self.server.close()

    def keep(self):
        """Remembers what is in it now."""
        self.close()
        shutil.copytree(self.folder / "data", self.folder / "kept")
        self.start()

    def reset(self):
        self.close()
        shutil.rmtree(self.folder / "data")
        shutil.copytree(self.folder / "kept", self.folder / "data")
        self.start()


class Containerd:
    """containerd without Kubernetes' part: images, snapshots by overlayfs, and tasks."""

    namespace = "buildkit"

    def __init__(self, programs, folder, root):
        self.programs, self.folder, self.server = programs, folder, None
        self.socket = folder / "containerd.sock"
        folder.mkdir()
        (folder / "config.toml").write_text(f"""
version = 3
root = "{root}"
state = "{folder}/run"
disabled_plugins = ["io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime",
                    "io.containerd.grpc.v1.cri", "io.containerd.nri.v1.nri"]
[grpc]
address = "{self.socket}"
""")

    def start(self):
        self.server = Process([str(self.programs / "containerd"), "--config",
                               str(self.folder / "config.toml")], self.folder / "log",
                              {**os.environ, "PATH": f"{self.programs}:{os.environ['PATH']}"})
        wait_until(lambda: self.socket.exists() and subprocess.run(
            self.ctr("version"), capture_output=True, check=False).returncode == 0, "containerd")

    def close(self):
        if self.server:
            self.server.close()
            self.server = None

    def ctr(self, *words):
        return [str(self.programs / "ctr"), "--address", str(self.socket), "--namespace",
                self.namespace, *words]

    def run_argv(self, image):
        """The image's first container."""
        return self.ctr("run", "--rm", "--snapshotter", "overlayfs", image, "bench", "/bin/true")


class Buildkit:
    """buildkitd with host network and the registry above. Its worker is its own (OCI: layers and
    snapshots in its folder, which nothing else can run), or containerd's, where a daemon of that is
    given: it has the image then."""

    def __init__(self, programs, folder, state, registry, containerd=None):
        self.programs, self.folder, self.registry = programs, folder, registry
        self.server, self.containerd = None, containerd
        self.address = f"unix://{folder}/socket"
        folder.mkdir()
        worker = f"""
[worker.oci]
enabled = true
networkMode = "host"
gc = false
binary = "runc"
snapshotter = "overlayfs"
[worker.containerd]
enabled = false
"""
        if containerd:
            worker = f"""
[worker.oci]
enabled = false
[worker.containerd]
enabled = true
address = "{containerd.socket}"
namespace = "{containerd.namespace}"
networkMode = "host"
gc = false
snapshotter = "overlayfs"
"""
        (folder / "config.toml").write_text(f"""
root = "{state}"
insecure-entitlements = ["network.host"]
[grpc]
address = ["{self.address}"]
{worker}
[registry."{registry.host}"]
http = true
""")

    @property
    def process_ids(self):
        daemons = [self, self.containerd] if self.containerd else [self]
        return [daemon.server.process.pid for daemon in daemons]

    def build_argv(self, context, output, options=()):
        return [str(self.programs / "buildctl"), "--addr", self.address, "build",
                "--frontend", "dockerfile.v0", "--local", f"context={context}",
                "--local", f"dockerfile={context}", "--allow", "network.host",
                "--opt", "force-network-mode=host", *options, "--output", output]

    def start(self):
        if self.containerd:
            self.containerd.start()
        self.server = Process([str(self.programs / "buildkitd"), "--config",
                               str(self.folder / "config.toml")], self.folder / "log",
                              {**os.environ, "PATH": f"{self.programs}:{os.environ['PATH']}"})
        wait_until(lambda: pathlib.Path(self.folder, "socket").exists() and subprocess.run(
            [self.programs / "buildctl", "--addr", self.address, "debug", "workers"],
            capture_output=True, check=False).returncode == 0, "buildkitd")

    def close(self):
        if self.server:
            self.server.close()
            self.server = None
        if self.containerd:
            self.containerd.close()

    def reset(self, base):
        """On an empty `state`: only the base image, pulled and unpacked."""
        self.start()
        context = self.folder / "warm"
        context.mkdir(exist_ok=True)
        (context / "Dockerfile").write_text(f"FROM {base}\nRUN true\n")
        unpack = str(self.containerd is not None).lower()
        subprocess.run(self.build_argv(context, f"type=image,name=warm,push=false,unpack={unpack}"),
                       check=True, capture_output=True)
