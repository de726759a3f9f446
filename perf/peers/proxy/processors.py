"""The two processors of a run: one for the servers, and one for the load and the origin."""
import itertools, os

SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
# Their numbers as texts, once `choose` has found them.
of_servers = of_load = None


def numbers(text):
    """The numbers of a list as the kernel writes it: `0-1,4`."""
    found = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def siblings(number, path=SIBLINGS):
    """The processors of the same core; the processor alone if the system does not say."""
    try:
        with open(path.format(number)) as file:
            return numbers(file.read())
    except (OSError, ValueError):
        return {number}


def pair(allowed, siblings=siblings):
    """Two of these processors, of different cores if possible; `None` if there are fewer than two."""
    pairs = list(itertools.combinations(sorted(allowed), 2))
    apart = (one for one in pairs if one[1] not in siblings(one[0]))
    return next(apart, pairs[0] if pairs else None)


def choose():
    """Chooses among the processors that this process may use; returns whether there are two."""
    global of_servers, of_load
    found = pair(os.sched_getaffinity(0))
    if found:
        of_servers, of_load = map(str, found)
    return found is not None
