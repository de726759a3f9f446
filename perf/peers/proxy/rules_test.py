"""The checks of a round, and the choice of rows, processors and packages. Run by TidyTests."""
import sys
sys.dont_write_bytecode = True
import tempfile, unittest
import processors, results, servers
from rows import ROWS, selected
from traffic import Figures, Wrong, checked, is_complete, mixed_paths


def row(name):
    return next(row for row in ROWS if row.name == name)


def figures(requests=1000, size=1300, status_errors=0, socket_errors=0):
    return Figures(requests, requests * size, 2.0, status_errors, socket_errors)


class RoundTests(unittest.TestCase):
    def test_right_responses_give_a_rate(self):
        self.assertEqual(checked(row("hit-1KiB"), figures(), 0), 500)
        self.assertEqual(checked(row("miss-1KiB"), figures(), 1064), 500)
        self.assertEqual(checked(row("304"), figures(size=300), 0), 500)

    def test_wrong_responses_give_none(self):
        wrong = {
            "error statuses": ("hit-1KiB", figures(status_errors=1), 0),
            "broken connections": ("hit-1KiB", figures(socket_errors=1), 0),
            "no response": ("hit-1KiB", figures(requests=0), 0),
            "a 200 instead of a 304": ("304", figures(), 0),
            "a 304 instead of a 200": ("hit-1KiB", figures(size=300), 0),
            "a whole object instead of a range": ("range", figures(size=1 << 20), 0),
            "a hit that reaches the origin": ("hit-1KiB", figures(), 500),
            "a miss that is a hit": ("miss-1KiB", figures(), 900),
            "a stored no-store": ("pass", figures(), 900),
            "a mix without misses": ("mix", figures(), 50),
        }
        for what, (name, found, origin_requests) in wrong.items():
            with self.subTest(what), self.assertRaises(Wrong):
                checked(row(name), found, origin_requests)


class RowTests(unittest.TestCase):
    def test_names_select_rows(self):
        names = [row.name for row in selected("miss,hit-1KiB,pass", False)]
        self.assertEqual(names, ["hit-1KiB", "miss-1KiB", "miss-32KiB", "pass"])
        with self.assertRaises(KeyError):
            selected("no-such", False)

    def test_quick_leaves_out_what_is_not_named(self):
        self.assertEqual(selected("", False), ROWS)
        self.assertNotIn(row("hit-32KiB-zipf"), selected("", True))
        self.assertIn(row("hit-32KiB-zipf"), selected("hit", True))

    def test_mix_has_its_proportions(self):
        paths = mixed_paths(row("mix"), 10_000, "x-")
        unique = [path for path in paths if "x-" in path]
        self.assertEqual(len(set(unique)), len(unique))
        self.assertAlmostEqual(len(unique) / 10_000, 0.15, delta=0.01)
        self.assertAlmostEqual(sum(path.startswith("/pass/") for path in paths) / 10_000, 0.05, delta=0.01)

    def test_a_response_ends_with_its_length(self):
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"
        self.assertFalse(is_complete(head + b"ab"))
        self.assertTrue(is_complete(head + b"abc"))



class ProcessorTests(unittest.TestCase):
    def test_two_cores_are_better_than_one(self):
        def siblings(number):
            return {number, number ^ 1}

        for allowed, found in [({0, 1, 2, 3}, (0, 2)), ({1, 2}, (1, 2)), ({4, 5, 9}, (4, 9)), ({2, 3}, (2, 3)),
                               ({7}, None), (set(), None)]:
            with self.subTest(allowed):
                self.assertEqual(processors.pair(allowed, siblings), found)

    def test_any_two_will_do_if_the_system_does_not_say(self):
        self.assertEqual(processors.pair({3, 5}, lambda number: {number}), (3, 5))
        self.assertEqual(processors.siblings(6, "/nonexistent/{}"), {6})
        with tempfile.NamedTemporaryFile("w") as file:
            self.assertEqual(processors.siblings(6, file.name), {6})

    def test_lists_of_the_kernel_are_read(self):
        for text, found in [("0\n", {0}), ("0,4\n", {0, 4}), ("2-3\n", {2, 3}), ("0-1,8-9\n", {0, 1, 8, 9})]:
            with self.subTest(text):
                self.assertEqual(processors.numbers(text), found)
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("0,6\n")
            file.flush()
            self.assertEqual(processors.siblings(6, file.name), {0, 6})


class PackageTests(unittest.TestCase):
    def test_only_the_chosen_servers_are_installed(self):
        self.assertEqual(servers.packages(["ours", "bare"]), servers.TOOLS)
        self.assertIn("nginx", servers.packages(["ours"]))
        self.assertEqual(set(servers.packages(["varnish"])) - set(servers.TOOLS), {"varnishd"})
        every = set(servers.packages(servers.PEERS))
        self.assertEqual(every - set(servers.TOOLS), {"varnishd", "squid", "traffic_server"})


class ResultTests(unittest.TestCase):
    """Rows as bench-cli reads them: percentiles are nanoseconds, and rounds tell the noise."""
    def test_a_row_has_its_rounds(self):
        found = results.result("hit-1KiB", "throughput", "requests/s", [3, 1, 2], None, "nginx", 1.25)
        self.assertEqual(found["rounds"], [3, 1, 2])
        self.assertEqual((found["value"], found["better"]), (2, "higher"))
        self.assertEqual((found["ratio_to"], found["ratio"]), ("nginx", 1.25))

    def test_latencies_are_nanoseconds(self):
        rounds = [{"p50": 100, "p99": 350}, {"p50": 200, "p99": 400}, {"p50": 300, "p99": 390}]
        found = results.latency("mix", "latency-at-80-percent", rounds)
        self.assertEqual((found["unit"], found["value"], found["better"]), ("ns", 390_000, "lower"))
        self.assertEqual(found["rounds"], [350_000, 400_000, 390_000])
        self.assertEqual(found["percentiles"], {"p50": 200_000, "p99": 390_000})
        beside = results.latency("mix", "p99-at-equal-load", rounds, "nginx", [{"p50": 1, "p99": 780}])
        self.assertEqual((beside["value"], beside["ratio"]), (390_000, 0.5))

    def test_the_machine_has_the_members_that_bench_cli_reads(self):
        found = results.machine()
        self.assertEqual(set(found), {"processor", "cores", "memory_bytes", "system", "kernel"})
        self.assertGreater(found["memory_bytes"], 1 << 20)
        self.assertTrue(all(found.values()))

    def test_a_named_program_has_no_revision(self):
        self.assertEqual(results.build(None, lambda: "abc")["revision"], "abc")
        self.assertEqual(results.build("/x/cache-proxy", lambda: "abc"), {"binary": "/x/cache-proxy"})


unittest.main()
