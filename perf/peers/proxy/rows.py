"""The rows of the table: what is requested, what must come back, and the targets."""
import dataclasses

KIB, MIB = 1024, 1024 * 1024
ALL = ("ours", "base", "nginx", "varnish", "squid", "trafficserver")
# Servers with a cache on disk that outlives the process.
WITH_DISK = ("ours", "base", "nginx", "squid", "trafficserver")
HIT, MISS = (0, 0.01), (0.999, 1.01)


@dataclasses.dataclass(frozen=True)
class Setting:
    """The servers of one or several rows."""
    memory: int = 1024 * MIB
    is_on_disk: bool = False
    name: str = "hits"
    # Whether every memory, and Traffic Server's store, is filled before the first row: while they grow,
    # a miss measures how fast the system hands out memory.
    is_full: bool = False

    @property
    def filling(self):
        """Requests whose responses exceed the memory."""
        return [f"/32k/full-{number}" for number in range(self.memory * 9 // 8 // (32 * KIB))]


HITS = Setting()
REST = Setting(256 * MIB, name="rest", is_full=True)
STALLED = Setting(name="stalled")


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    question: str
    prefix: str
    order: str = "turn"
    objects: int = 1
    status: int = 200
    body_bytes: int = KIB
    # The least and the greatest share of the requests that may reach the origin.
    origin_share: tuple = HIT
    # A header field; `{etag}` stands for the entity tag of the response.
    field: str = ""
    setting: Setting = HITS
    peers: tuple = ALL
    # Whether the p99 at 80 % of the greatest rate is measured.
    has_tail: bool = False
    # The least ratios to peers.
    targets: tuple = ()
    is_quick: bool = True

    @property
    def is_filled(self):
        return self.origin_share != MISS


BARE = (*ALL, "bare")
SMALL_DISK = Setting(2 * MIB, True, "disk 4 KiB")
DISK = Setting(16 * MIB, True, "disk 32 KiB")

ROWS = [
    Row("hit-1KiB", "one object", "/1k/", peers=BARE, has_tail=True,
        targets=(("nginx", 1.5), ("varnish", 1), ("bare", 0.8))),
    Row("hit-1KiB-zipf", "10,000 objects", "/1k/", "zipf", 10_000, peers=BARE,
        targets=(("nginx", 1.5), ("varnish", 1))),
    Row("hit-32KiB", "one object", "/32k/", body_bytes=32 * KIB, peers=BARE, has_tail=True,
        targets=(("nginx", 1),)),
    Row("hit-32KiB-zipf", "10,000 objects", "/32k/", "zipf", 10_000, body_bytes=32 * KIB, peers=BARE,
        targets=(("nginx", 1),), is_quick=False),
    Row("hit-1MiB", "one object", "/1m/", body_bytes=MIB, targets=(("nginx", 1.5),)),
    Row("304", "one object of 1 KiB, If-None-Match", "/1k/", status=304, body_bytes=0, peers=BARE,
        field="If-None-Match: {etag}", targets=(("nginx", 1.5),)),
    Row("range", "1 KiB of one object of 1 MiB", "/1m/", status=206, field="Range: bytes=500000-501023",
        targets=(("nginx", 1.3),)),
    Row("miss-1KiB", "every URL once, stored", "/1k/", "unique", origin_share=MISS, setting=REST,
        targets=(("trafficserver", 1.1),)),
    Row("miss-32KiB", "every URL once, stored", "/32k/", "unique", body_bytes=32 * KIB, origin_share=MISS,
        setting=REST, targets=(("trafficserver", 1.1),)),
    Row("pass", "no-store, 1,000 URLs in turn, 1 KiB", "/pass/", "turn", 1000, origin_share=MISS,
        setting=REST, targets=(("nginx", 1),)),
    Row("mix", "80 % hits of 10,000 objects, 15 % misses, 5 % no-store, 1 KiB", "/1k/", "mix", 10_000,
        origin_share=(0.18, 0.22), setting=REST, peers=("ours", "base", "nginx"), has_tail=True),
    Row("stalled", "p99 of hits beside 250 clients that read nothing of 8 MiB misses", "/1k/",
        setting=STALLED, peers=("ours", "base")),
    Row("disk-32KiB", "8,000 objects, 16 MiB of memory", "/32k/", "uniform", 8000, body_bytes=32 * KIB,
        setting=DISK, peers=WITH_DISK, targets=(("nginx", 1),)),
    Row("disk-4KiB", "8,000 objects, 2 MiB of memory", "/4k/", "uniform", 8000, body_bytes=4 * KIB,
        setting=SMALL_DISK, peers=WITH_DISK, targets=(("nginx", 1.3),)),
]

STALLED_CLIENTS, STALLED_PATH, STALLED_RATE, STALLED_P99_MAX = 250, "/8m/", 5000, 20_000


def selected(text, is_quick):
    """The rows of a list of names; `miss` selects all rows whose names begin with `miss-`."""
    if not text:
        return [row for row in ROWS if row.is_quick or not is_quick]
    chosen = set()
    for name in text.split(","):
        names = [row.name for row in ROWS]
        found = [name] if name in names else [one for one in names if one.startswith(name + "-")]
        if not found:
            raise KeyError(name)
        chosen.update(found)
    return [row for row in ROWS if row.name in chosen]
