"""The rows of the JSON, the machine and the build, as bench-cli reads them."""
import os, statistics

LATENCIES = "ns"


def nanoseconds(microseconds):
    return {key: value * 1000 for key, value in microseconds.items()}


def middle(rounds):
    """The median of each percentile over the rounds."""
    return {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}


def result(row, metric, unit, rounds, percentiles=None, peer=None, ratio=None):
    """A row; its value is the median of the rounds."""
    found = {"workload": f"proxy-{row}", "metric": metric, "unit": unit,
             "value": statistics.median(rounds), "better": "lower" if unit == LATENCIES else "higher",
             "rounds": list(rounds)}
    if percentiles:
        found["percentiles"] = percentiles
    if peer:
        found |= {"ratio_to": peer, "ratio": round(ratio, 3)}
    return found


def latency(row, metric, rounds, peer=None, theirs=None):
    """A row of p99s, from the percentiles of each round in microseconds.

    With a peer, it has the ratio to the peer's p99 instead of the other percentiles."""
    tails = [nanoseconds(one) for one in rounds]
    p99s = [one["p99"] for one in tails]
    if peer is None:
        return result(row, metric, LATENCIES, p99s, middle(tails))
    return result(row, metric, LATENCIES, p99s, None, peer,
                  middle(tails)["p99"] / nanoseconds(middle(theirs))["p99"])


def machine():
    def field(path, name, separator):
        with open(path) as file:
            lines = (line.partition(separator) for line in file)
            return next((value.strip().strip('"') for key, _, value in lines if key.strip() == name), None)

    return {"processor": field("/proc/cpuinfo", "model name", ":") or os.uname().machine,
            "cores": os.cpu_count(), "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
            "system": field("/etc/os-release", "PRETTY_NAME", "=") or os.uname().sysname,
            "kernel": os.uname().release}


def build(binary, revision):
    """The build of the measured program; nothing is known of a program that the caller names."""
    return {"binary": binary} if binary else {"revision": revision(), "configuration": "release"}
