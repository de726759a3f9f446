import Testing

@testable import Benchmarks

@Suite struct ReportTests {
    /// Rows of every kind that a section draws.
    static let rows: [Measurement] = {
        func row(
            _ workload: String,
            _ quantity: String,
            _ parameters: [Measurement.Parameter],
            _ value: Double,
            unit: Unit = .nanoseconds,
            ratio: Measurement.Ratio? = nil,
            percentiles: Percentiles? = nil
        ) -> Measurement {
            Measurement(
                workload: workload,
                quantity: quantity,
                parameters: parameters,
                unit: unit,
                better: .lower,
                rounds: Rounds([value, value]),
                percentiles: percentiles,
                ratio: ratio
            )
        }
        let tail = Percentiles(p50: 40, p90: 60, p99: 90, p999: 200, max: 5_000)
        return [
            row("memory-hit", "time_per_hit", [.init("keys", 1024)], 50, percentiles: tail),
            row("open-loop", "latency", [.init("rate", 1000)], 50, percentiles: tail),
            row("open-loop", "latency", [.init("rate", 2000)], 50, percentiles: tail),
            row(
                "disk-hit-warm",
                "time_per_hit",
                [.init("size", "4 KiB")],
                2_000,
                ratio: .init(to: "floor", 1.25)
            ),
            row(
                "replay",
                "request_hit_ratio",
                [.init("trace", "<web>"), .init("policy", "lru"), .init("memory_fraction", 0.01)],
                0.4,
                unit: .share
            ),
        ]
    }()

    static let page = ReportPage([
        .init(name: "run", result: RunResult(measurements: rows))
    ]).html

    @Test(arguments: [
        "Beside others", "Latency, from the median to the worst", "Throughput against latency",
        "Disk hits against the physical floor", "Hit ratio against cache size", "Every figure",
    ])
    func everySectionWithFiguresIsThere(title: String) {
        #expect(Self.page.contains(">\(title)</h2>"))
    }

    @Test func tilesNameTheirRunAndItsDate() {
        let run = RunResult(date: "2026-01-31T12:00:00Z", measurements: Self.rows)
        let page = ReportPage([.init(name: "first", result: run)]).html
        #expect(page.contains("<span>first, 2026-01-31 12:00 UTC</span>"))
    }

    @Test func twoRunsHaveATableOfWhatChanged() {
        var slower = Self.rows
        slower[0] = Measurement(
            workload: "memory-hit",
            quantity: "time_per_hit",
            parameters: [.init("keys", 1024)],
            unit: .nanoseconds,
            better: .lower,
            rounds: Rounds([100, 100])
        )
        let base = ReportPage.Run(name: "base", result: RunResult(measurements: Self.rows))
        let new = ReportPage.Run(name: "new", result: RunResult(measurements: slower))
        let page = ReportPage([base, new]).html
        #expect(page.contains(">From base to new</h2>"))
        #expect(page.contains("5 rows: 1 regressed"))
        #expect(page.contains("+100.0 %"))
        #expect(!Self.page.contains(" regressed"))
        #expect(ReportPage([base, base]).html.contains("5 rows: no change"))
        let empty = ReportPage.Run(name: "empty", result: RunResult(measurements: []))
        #expect(ReportPage([base, empty]).html.contains("5 rows: 5 gone"))
    }

    /// There are eight colours; a ninth curve needs a plot of its own.
    @Test func everyCurveIsDrawn() {
        let tail = Percentiles(p50: 40, p90: 60, p99: 90, p999: 200, max: 5_000)
        let rows = (1...19).map { number in
            Measurement(
                workload: "memory-hit",
                quantity: "time_per_hit",
                parameters: [.init("keys", number)],
                unit: .nanoseconds,
                better: .lower,
                rounds: Rounds([50]),
                percentiles: tail
            )
        }
        let page = ReportPage([.init(name: "run", result: RunResult(measurements: rows))]).html
        for number in 1...19 { #expect(page.contains("<title>keys \(number): p99 ")) }
        #expect(page.contains(">memory-hit, 3 of 3</figcaption>"))
    }

    private static func replay(
        _ policy: String,
        _ others: [Measurement.Parameter],
        _ ratio: Double
    ) -> Measurement {
        Measurement(
            workload: "replay",
            quantity: "request_hit_ratio",
            parameters: [.init("trace", "web"), .init("policy", policy)] + others,
            unit: .share,
            better: .higher,
            rounds: Rounds([ratio])
        )
    }

    private static func figures(_ page: String) -> [String] {
        page.matches(of: /(?s)<figure>(.*?)<\/figure>/).map { String($0.1) }
    }

    /// Bytes and shares of all bytes have different axes.
    @Test func sizesInBytesAndSharesHavePlotsOfTheirOwn() {
        let rows = [
            Self.replay("balanced", [.init("memory_fraction", 0.01)], 0.4),
            Self.replay("balanced", [.init("memory", 64 << 20)], 0.5),
        ]
        let page = ReportPage([.init(name: "run", result: RunResult(measurements: rows))]).html
        let figures = Self.figures(page).filter { $0.contains(">web, requests</figcaption>") }
        #expect(figures.count == 2)
        #expect(figures.first?.contains("balanced: 1 %: 40.00 %</title>") == true)
        #expect(figures.last?.contains("balanced: 64 MiB: 50.00 %</title>") == true)
    }

    @Test func curvesOfOtherSettingsAreApart() {
        let size = Measurement.Parameter("memory_fraction", 0.1)
        let rows = [
            Self.replay("balanced", [size], 0.4),
            Self.replay("balanced", [size, .init("sizes", "unit")], 0.5),
            Self.replay("balanced", [size, .init("disk", 1 << 30)], 0.6),
        ]
        let page = ReportPage([.init(name: "run", result: RunResult(measurements: rows))]).html
        for name in ["balanced", "balanced, sizes unit", "balanced, disk 1 GiB"] {
            #expect(page.contains("<span>\(name)</span>"), "\(name)")
        }
    }

    /// Two runs of `hit-ratio` have twelve curves of one trace.
    @Test func noPlotOfHitRatiosHasAColourTwice() {
        let policies = ["ours", "LRU", "S3FIFO", "GDSF", "LIRS", "Belady"]
        let rows = policies.map { Self.replay($0, [.init("memory_fraction", 0.1)], 0.4) }
        let runs = ["a", "b"].map {
            ReportPage.Run(name: $0, result: RunResult(measurements: rows))
        }
        let page = ReportPage(runs).html
        let figures = Self.figures(page).filter { $0.contains(">web, requests, ") }
        #expect(figures.count == 2)
        for figure in figures {
            let colours = figure.matches(of: /<i class="(c\d)">/).map { String($0.1) }
            #expect(Set(colours).count == colours.count)
        }
        for policy in policies {
            #expect(page.contains(">a: \(policy)</span>") && page.contains(">b: \(policy)</span>"))
        }
    }

    @Test func curvesOfTwoRunsAreApart() {
        let runs = ["a", "b"].map {
            ReportPage.Run(name: $0, result: RunResult(measurements: Self.rows))
        }
        let page = ReportPage(runs).html
        #expect(page.contains(">a: lru</span>") && page.contains(">b: lru</span>"))
    }

    @Test func sectionsWithoutFiguresAreLeftOut() {
        let page = ReportPage([.init(name: "run", result: RunResult())]).html
        #expect(!page.contains("Throughput against latency"))
    }

    @Test func thePageLoadsNothingFromElsewhere() {
        for word in ["http://", "https://", "src=", "url(", "@import", "<link"] {
            #expect(!Self.page.contains(word), "\(word)")
        }
    }

    @Test func textInTheReportIsEscaped() {
        #expect(Self.page.contains("&lt;web&gt;"))
        #expect(!Self.page.contains("<web>"))
    }

    /// A mark that joins the sign before it makes one character of both.
    @Test(arguments: [
        ("\"\u{301}", "&quot;\u{301}"), ("<\u{301}", "&lt;\u{301}"), (">\u{200D}", "&gt;\u{200D}"),
        ("&\u{301}", "&amp;\u{301}"), ("a\u{301}", "a\u{301}"),
    ])
    func signWithAMarkIsEscaped(text: String, escaped: String) {
        #expect(Markup.escaped(text).utf8.elementsEqual(escaped.utf8))
    }

    @Test func everyElementIsClosed() {
        #expect(Self.isBalanced(Self.page, ignoring: ["meta", "!doctype"]))
        #expect(!Self.isBalanced("<p><b></p>", ignoring: []))
    }

    @Test func coordinatesAreNumbers() {
        for word in ["nan", "inf", "=\"-\""] { #expect(!Self.page.contains(word), "\(word)") }
    }

    static func isBalanced(_ text: String, ignoring void: Set<String>) -> Bool {
        var open: [Substring] = []
        for match in text.matches(of: /<(\/?)([a-z!][a-z0-9]*)[^>]*?(\/?)>/) {
            let (name, closes, isEmpty) = (match.2, !match.1.isEmpty, !match.3.isEmpty)
            if isEmpty || void.contains(String(name)) { continue }
            if closes {
                guard open.popLast() == name else { return false }
            } else {
                open.append(name)
            }
        }
        return open.isEmpty
    }
}

@Suite struct FlameGraphTests {
    static let script = """
        bench-cli  4242 100.000001:     250000 cpu-clock:
        \t    55d0 MemoryTier.entry(for:)+0x1c (/build/bench-cli)
        \t    55e0 MemoryHit.round()+0x20 (/build/bench-cli)
        \t    7fff [unknown] (/lib/libc.so.6)

        bench-cli  4242 100.000251:     250000 cpu-clock:
        \t    55d0 memcmp;avx2+0x1 (/lib/libc.so.6)
        \t    55e0 MemoryHit.round()+0x24 (/build/bench-cli)
        \t    7fff [unknown] (/lib/libc.so.6)

        """

    @Test func stacksAreReadFromTheOutermostCallInwards() {
        let samples = StackSamples(parsing: Self.script)
        #expect(samples.total == 2)
        #expect(
            samples.counts[["[libc.so.6]", "MemoryHit.round()", "MemoryTier.entry(for:)"]] == 1
        )
        #expect(samples.counts[["[libc.so.6]", "MemoryHit.round()", "memcmp:avx2"]] == 1)
    }

    @Test func swiftNamesAreReadable() {
        let samples = StackSamples(
            parsing: """
                x 1 1.0: 1 cpu-clock:
                \t 55d0 $s11CacheEngine9HTTPCacheC8shutDownyyYaF+0x1c (/x)
                \t 55d4 $sNotASymbol (/x)

                """
        )
        #expect(
            samples.counts.keys.first
                == ["$sNotASymbol", "CacheEngine.HTTPCache.shutDown() async -> ()"]
        )
    }

    @Test func deepStacksAreClipped() {
        var samples = StackSamples()
        samples.add((1...100).map { "call\($0)" }, times: 1)
        let svg = FlameGraph(samples, title: "t").svg
        #expect(svg.contains("call60: 1 samples") && !svg.contains("call61"))
    }

    @Test func foldedStacksMeanTheSame() {
        let samples = StackSamples(parsing: "a;b;c 40\na;d 2\n")
        #expect(samples.counts == [["a", "b", "c"]: 40, ["a", "d"]: 2])
    }

    @Test func aBoxIsAsWideAsItsShare() throws {
        var samples = StackSamples()
        samples.add(["main", "hot"], times: 75)
        samples.add(["main", "cold<T>"], times: 25)
        let svg = FlameGraph(samples, title: "t").svg
        #expect(svg.contains("hot: 75 samples, 75.00 %"))
        #expect(svg.contains("cold&lt;T&gt;: 25 samples, 25.00 %"))
        #expect(svg.contains("width=\"882.00\""))
        #expect(
            ReportTests.isBalanced(
                svg.replacing(/<script>.*<\/script>/.dotMatchesNewlines(), with: "").replacing(
                    "<?xml version=\"1.0\" encoding=\"utf-8\"?>",
                    with: ""
                ),
                ignoring: []
            )
        )
    }

    @Test func stacksTooRareToBeSeenMakeThePictureNoTaller() {
        var samples = StackSamples()
        samples.add(["main", "hot"], times: 100_000)
        let low = FlameGraph(samples, title: "t").svg
        samples.add(["main"] + (0..<150).map { "deep\($0)" }, times: 1)
        let height = /viewBox="0 0 1200 (\d+)"/
        let first = low.firstMatch(of: height)?.1
        #expect(
            first != nil && FlameGraph(samples, title: "t").svg.firstMatch(of: height)?.1 == first
        )
    }

    @Test func theHottestFunctionsAreThoseWithTheMostSamplesOfTheirOwn() {
        let samples = StackSamples(parsing: "a;b 3\na;c 1\n")
        let lines = samples.hottest(1).text.split(separator: "\n")
        #expect(lines.last?.contains("75.0 %") == true)
        #expect(lines.last?.hasSuffix("b") == true)
    }
}
