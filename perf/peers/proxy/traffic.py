"""Requests to a server: single ones, closed loops, open loops, and clients that do not read."""
import collections, os, random, re, socket, subprocess, time
import processors

HERE = os.path.dirname(os.path.abspath(__file__))
HEAD_BYTES_MAX = 1000

Answer = collections.namedtuple("Answer", "status fields body_bytes")
Figures = collections.namedtuple("Figures", "requests bytes seconds status_errors socket_errors")


class Wrong(Exception):
    """A server did not do the work of the row, so that its figures would be false."""


class Late(Exception):
    """A server could not sustain a rate."""


def ask(port, path, field=None, seconds=5):
    """Sends one request and reads the whole response."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as client:
        line = f"{field}\r\n" if field else ""
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{line}Connection: close\r\n\r\n".encode())
        data = bytearray()
        while chunk := client.recv(1 << 18):
            data += chunk
            if is_complete(data):
                break
    head, _, body = bytes(data).partition(b"\r\n\r\n")
    lines = head.decode("latin1").split("\r\n")
    if not lines[0].startswith("HTTP/1.1 "):
        raise Wrong(f"{path} is answered with {lines[0][:40]!r}")
    pairs = (line.partition(":") for line in lines[1:])
    fields = {name.lower(): value.strip() for name, _, value in pairs}
    return Answer(int(lines[0].split()[1]), fields, len(body))


def is_complete(data):
    """Whether all bytes have arrived that the Content-Length of the response promises."""
    head, end, body = bytes(data[:4096]).partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    return bool(end and length) and len(data) - len(head) - len(end) >= int(length[1])


def answers(port, path, status=200, seconds=20):
    """Waits until the server answers with the status; returns whether it did."""
    end = time.time() + seconds
    while time.time() < end:
        try:
            if ask(port, path, seconds=2).status == status:
                return True
        except (OSError, Wrong):
            pass
        time.sleep(0.1)
    return False


class Origin:
    """The origin and the number of requests that it has received."""

    def __init__(self, port):
        self.port = port
        self.own = 0

    def count(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as client:
            client.sendall(b"GET /requests HTTP/1.1\r\nHost: origin\r\nConnection: close\r\n\r\n")
            text = b""
            while chunk := client.recv(4096):
                text += chunk
        # The third number of the third line, without the requests that read the number.
        self.own += 1
        return int(text.partition(b"\r\n\r\n")[2].split(b"\n")[2].split()[2]) - self.own


def closed_loop(port, row, seconds, salt, field):
    """64 connections with one request each at a time; returns the figures of wrk."""
    environment = dict(os.environ, PREFIX=row.prefix, PASS="/pass/", ORDER=row.order,
                       OBJECTS=str(row.objects), SALT=salt)
    if field:
        environment["FIELD"] = field
    output = subprocess.run(["taskset", "-c", processors.of_load, "wrk", "-t1", "-c64", f"-d{seconds}s", "-s",
                             f"{HERE}/requests.lua", f"http://127.0.0.1:{port}/"],
                            env=environment, capture_output=True, text=True)
    for line in output.stdout.splitlines():
        if line.startswith("figures "):
            requests, size, microseconds, *errors = map(int, line.split()[1:])
            return Figures(requests, size, microseconds / 1e6, *errors)
    raise Wrong(f"wrk: {(output.stdout + output.stderr).strip()[-200:]}")


def checked(row, figures, origin_requests):
    """Returns the responses a second; throws unless the responses and the origin's part are right."""
    if figures.requests == 0:
        raise Wrong("no response")
    if figures.status_errors or figures.socket_errors:
        raise Wrong(f"{figures.status_errors} error statuses and {figures.socket_errors} socket errors "
                    f"in {figures.requests} responses")
    # Responses under way at the end count with their bytes only.
    size = figures.bytes / figures.requests
    most = row.body_bytes * (1 + 64 / figures.requests) + HEAD_BYTES_MAX
    if not row.body_bytes <= size <= most:
        raise Wrong(f"{size:.0f} bytes a response, and not those of status {row.status}")
    low, high = row.origin_share
    if not low * figures.requests <= origin_requests <= high * figures.requests + 128:
        raise Wrong(f"{origin_requests} requests to the origin for {figures.requests} responses")
    return figures.requests / figures.seconds


class Load:
    """The open-loop load generator, and the files with its paths."""

    def __init__(self, tools):
        self.tools = tools

    def run(self, port, paths, rate, seconds, connections=64):
        """Sends the paths at `rate` a second for `seconds`, or all of them as fast as possible
        with a rate of 0. Returns the percentiles in microseconds; throws unless all statuses are 200.
        The generator has precedence over the origin, which runs on the same processor."""
        with open(f"{self.tools}/paths", "w") as file:
            file.write("\n".join(paths) + "\n")
        done = subprocess.run(["nice", "-n", "-10", "taskset", "-c", processors.of_load, f"{self.tools}/load",
                               str(port), file.name, f"{rate:.0f}", str(seconds), str(connections)],
                              capture_output=True, text=True)
        if done.returncode == 3:
            raise Late(done.stderr.strip()[-200:])
        if done.returncode:
            raise Wrong(done.stderr.strip()[-200:] or "load failed")
        return dict(zip(["p50", "p90", "p99", "p99.9", "max"], map(float, done.stdout.split()[1:])))


def popular(objects, source):
    """A number from 1 to `objects`, distributed as in requests.lua."""
    return min(objects, int(objects ** source.random()))


def mixed_paths(row, count, salt):
    """Paths in the proportions of the mix in requests.lua."""
    source = random.Random(7)
    paths = []
    for number in range(count):
        dice = source.random()
        if dice < 0.8:
            paths.append(f"{row.prefix}{popular(row.objects, source)}")
        elif dice < 0.95:
            paths.append(f"{row.prefix}{salt}{number}")
        else:
            paths.append(f"/pass/{source.randrange(1000) + 1}")
    return paths


class StalledClients:
    """Clients that request one large response each and read nothing."""

    def __init__(self, port, count, prefix):
        self.sockets = []
        for number in range(count):
            client = socket.socket()
            self.sockets.append(client)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", port))
            client.sendall(f"GET {prefix}{number} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())

    def unserved(self, seconds=10):
        """Waits until a response with status 200 has begun for all clients; returns the others'
        first bytes."""
        end = time.time() + seconds
        while True:
            heads = [self.first_bytes(client) for client in self.sockets]
            others = [head for head in heads if head != b"HTTP/1.1 200"]
            if not others or time.time() > end:
                return others
            time.sleep(0.1)

    @staticmethod
    def first_bytes(client):
        try:
            return client.recv(12, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None

    def close(self):
        for client in self.sockets:
            client.close()
