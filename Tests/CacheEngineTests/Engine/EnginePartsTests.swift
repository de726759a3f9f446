import CacheTestSupport
import HTTPCaching
import Synchronization
import Testing

@testable import CacheEngine

/// Small parts of the engine, each tested alone.
@Suite struct EnginePartsTests {
    // MARK: CacheResponse

    @Test("an answer is small enough to be moved without a call")
    func responseIsAtMost128BytesLarge() {
        #expect(MemoryLayout<CacheResponse>.size <= 128)
    }

    @Test("what an answer says of its storing is said of each thing by itself")
    func infoKeepsItsMarksApart() {
        for tier in [nil, CacheInfo.Tier.memory, .disk] {
            for isStored in [false, true] {
                var info = CacheInfo(source: .fresh, tier: .disk)
                info.isStored = isStored
                info.tier = tier
                #expect(info.tier == tier && info.isStored == isStored)
                info.isStored.toggle()
                #expect(info.tier == tier && info.isStored != isStored)
            }
        }
        var info = CacheInfo(source: .origin)
        #expect(info.originStatus == nil && info.storedAtSeconds == nil && info.tier == nil)
        info.originStatus = 599
        info.storedAtSeconds = 4_000_000_000
        #expect(info.originStatus == 599 && info.storedAtSeconds == 4_000_000_000)
        info.originStatus = nil
        #expect(info.originStatus == nil && info.storedAtSeconds == 4_000_000_000)
    }

    // MARK: RemovalLedger

    static func isPermitted(
        _ ledger: RemovalLedger,
        _ placement: UInt64,
        tags: [String] = [],
        since ticket: RemovalLedger.Ticket
    ) -> Bool {
        let key = KeyHash(placement: placement, identity: 0)
        return ledger.permits(key, TagList(tags) ?? TagList(), since: ticket)
    }

    @Test("a removal forbids what began before it, and nothing that began after")
    func ledgerForbidsWhatBeganBefore() {
        let ledger = RemovalLedger()
        let before = ledger.ticket()
        #expect(Self.isPermitted(ledger, 1, since: before))
        ledger.note(KeyHash(placement: 1, identity: 99))
        #expect(!Self.isPermitted(ledger, 1, since: before))
        #expect(Self.isPermitted(ledger, 2, since: before))
        #expect(Self.isPermitted(ledger, 1, since: ledger.ticket()))
    }

    @Test("the removal that a response makes itself does not forbid it, and each other one does")
    func ledgerKnowsTheOwnRemovalOfAResponse() {
        let ledger = RemovalLedger()
        let key = KeyHash(placement: 1, identity: 0)
        func own(after remove: () -> Void) -> RemovalLedger.Ticket {
            let ticket = ledger.ticket()
            remove()
            return ledger.note(key, by: ticket)
        }
        func purge() {
            ledger.begin(.tag("red"))
            ledger.end(.tag("red"))
        }
        let before = ledger.ticket()
        let undisturbed = own {}
        #expect(Self.isPermitted(ledger, 1, tags: ["red"], since: undisturbed))
        #expect(!Self.isPermitted(ledger, 1, since: before))
        #expect(!Self.isPermitted(ledger, 1, since: own { ledger.note(key) }))
        #expect(!Self.isPermitted(ledger, 1, since: own { ledger.note(key, isSoft: true) }))
        let besideTag = own { purge() }
        #expect(!Self.isPermitted(ledger, 1, tags: ["red"], since: besideTag))
        #expect(Self.isPermitted(ledger, 1, tags: ["blue"], since: besideTag))
        let later = own {}
        purge()
        #expect(!Self.isPermitted(ledger, 1, tags: ["red"], since: later))
        #expect(Self.isPermitted(ledger, 1, since: later))
        ledger.note(key)
        #expect(!Self.isPermitted(ledger, 1, since: later))
    }

    @Test("tags and everything are covered too")
    func ledgerCoversTagsAndEverything() {
        let ledger = RemovalLedger()
        let before = ledger.ticket()
        ledger.begin(.tag("red"))
        ledger.end(.tag("red"))
        #expect(!Self.isPermitted(ledger, 1, tags: ["blue", "red"], since: before))
        #expect(Self.isPermitted(ledger, 1, tags: ["blue"], since: before))
        let between = ledger.ticket()
        #expect(Self.isPermitted(ledger, 1, tags: ["red"], since: between))
        ledger.begin(.everything)
        ledger.end(.everything)
        #expect(!Self.isPermitted(ledger, 5, since: between))
        #expect(Self.isPermitted(ledger, 5, since: ledger.ticket()))
    }

    @Test("what is covered is forbidden until the last removal that covers it has ended")
    func ledgerForbidsWhileARemovalIsUnderWay() {
        let ledger = RemovalLedger()
        ledger.begin(.tag("red"))
        ledger.begin(.tag("red"))
        let between = ledger.ticket()
        #expect(!Self.isPermitted(ledger, 1, tags: ["red"], since: between))
        #expect(Self.isPermitted(ledger, 1, tags: ["blue"], since: between))
        // A request that arrives meanwhile may share a fetch that began meanwhile.
        #expect(ledger.isCurrent(KeyHash(placement: 1, identity: 0), since: between))
        ledger.end(.tag("red"))
        #expect(!Self.isPermitted(ledger, 1, tags: ["red"], since: ledger.ticket()))
        ledger.end(.tag("red"))
        #expect(!Self.isPermitted(ledger, 1, tags: ["red"], since: between))
        #expect(!ledger.isCurrent(KeyHash(placement: 1, identity: 0), since: between))
        #expect(Self.isPermitted(ledger, 1, tags: ["red"], since: ledger.ticket()))
    }

    @Test("each of many removals under way is counted")
    func ledgerCountsManyRemovalsUnderWay() {
        let ledger = RemovalLedger()
        for _ in 0..<70_000 { ledger.begin(.tag("red")) }
        for _ in 1..<70_000 { ledger.end(.tag("red")) }
        #expect(!Self.isPermitted(ledger, 1, tags: ["red"], since: ledger.ticket()))
        ledger.end(.tag("red"))
        #expect(Self.isPermitted(ledger, 1, tags: ["red"], since: ledger.ticket()))
    }

    @Test("a removal is never missed, whatever else is removed", arguments: 0..<64)
    func ledgerNeverMissesARemoval(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let ledger = RemovalLedger()
        var tickets: [(ticket: RemovalLedger.Ticket, step: Int)] = []
        var removed: [UInt64: Int] = [:]
        for step in 0..<300 {
            let placement = UInt64.random(in: 0..<20, using: &random) << 50
            switch UInt8.random(in: 0..<3, using: &random) {
            case 0: tickets.append((ledger.ticket(), step))
            case 1:
                ledger.note(KeyHash(placement: placement, identity: 0))
                removed[placement] = step
            default:
                guard let (ticket, taken) = tickets.randomElement(using: &random) else { break }
                let mustForbid = removed[placement].map { $0 > taken } ?? false
                if mustForbid { #expect(!Self.isPermitted(ledger, placement, since: ticket)) }
            }
        }
    }

    // MARK: StaleMarks

    @Test("a mark covers what was stored before it, and nothing later")
    func staleMarksCoverWhatWasBefore() {
        let marks = Self.marks(atSeconds: 100)
        let before = marks.entrySequence(for: Self.hash)
        func isMarked(_ tags: [String], _ sequence: UInt64) -> Bool {
            marks.isMarkedStale(MemoryFixtures.entry("a", sequence: sequence, tags: tags))
        }
        #expect(!isMarked(["red"], before))
        marks.markStale("red")
        let after = marks.entrySequence(for: Self.hash)
        #expect(isMarked(["blue", "red"], 0))
        #expect(isMarked(["blue", "red"], before))
        #expect(!isMarked(["blue", "red"], after))
        #expect(!isMarked(["blue"], before))
        #expect(Self.marks(atSeconds: 101).entrySequence(for: Self.hash) > after)
    }

    @Test("a number that no clock here has reached proves nothing")
    func marksCoverNumbersFromTheFuture() {
        let marks = Self.marks(atSeconds: 100)
        let numbers = [99, 100, 7_300].map { Self.marks(atSeconds: $0) }
            .map { $0.entrySequence(for: Self.hash) }
        func isMarked(_ sequence: UInt64, tags: [String] = ["red"]) -> Bool {
            let entry = MemoryFixtures.entry("a", sequence: sequence, tags: tags)
            #expect(marks.mayBeMarkedStale(entry) || !marks.isMarkedStale(entry))
            return marks.isMarkedStale(entry)
        }
        #expect(numbers.allSatisfy { !isMarked($0) })
        marks.markStale("red")
        #expect(numbers.allSatisfy { isMarked($0) && !isMarked($0, tags: ["blue"]) })
        #expect(!isMarked(marks.entrySequence(for: Self.hash)))
        marks.markEverythingStale {}
        let future = MemoryFixtures.entry("a", sequence: numbers[2], tags: [])
        #expect(isMarked(numbers[2], tags: []) && marks.isDoubted(future))
    }

    @Test("more tags than can be remembered make everything so far stale, never less")
    func tooManyMarksCoverEverything() {
        let marks = Self.marks(atSeconds: 100)
        let before = marks.entrySequence(for: Self.hash)
        for number in 0...PurgeTable.tagsMax { marks.markStale("tag \(number)") }
        let after = marks.entrySequence(for: Self.hash)
        let older = MemoryFixtures.entry("a", sequence: before, tags: ["other"])
        let newer = MemoryFixtures.entry("a", sequence: after, tags: ["other"])
        #expect(marks.isMarkedStale(older) && !marks.isMarkedStale(newer))
    }

    private static let hash = KeyHash(placement: 1, identity: 2)

    private static func marks(atSeconds seconds: Int64) -> StaleMarks {
        StaleMarks(
            behind: NoBackingTier(),
            hasher: MemoryFixtures.hasher,
            clock: FixedClock(nowSeconds: seconds)
        )
    }

    // MARK: Race

    @Test("the first result wins, before or after somebody waits")
    func firstResultWins() async throws {
        let early = Race<Int>()
        early.finish(.success(1))
        early.finish(.success(2))
        #expect(try await early.result() == 1)

        let late = Race<Int>()
        async let result = late.result()
        for _ in 0..<100 { await Task.yield() }
        late.finish(.success(3))
        late.finish(.failure(CancellationError()))
        #expect(try await result == 3)
    }

    @Test("a cancelled wait ends")
    func cancelledWaitEnds() async {
        let race = Race<Int>()
        let task = Task { try await race.result() }
        for _ in 0..<100 { await Task.yield() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        race.finish(.success(1))
    }

    // MARK: Counters

    @Test("counters lose nothing, whatever the thread, and with more of them than have a place")
    func countersLoseNothing() async {
        let counters = Counters()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<1_000 {
                        counters.add(.freshHits)
                        counters.add(.originBytes, 3)
                    }
                }
            }
        }
        #expect(counters[.freshHits] == 8_000)
        #expect(counters[.originBytes] == 24_000)
        #expect(counters[.staleHits] == 0)

        let counts = ThreadCounts(fieldCount: 9)
        for thread in 0..<200 {
            counts.add(thread, to: 8, by: thread.isMultiple(of: 7) ? nil : thread)
        }
        #expect(counts.sum(8) == 199 * 200 / 2)
        #expect(counts.sum(7) == 0)
    }

    @Test("the Prometheus text is well-formed, with every series once")
    func prometheusTextIsWellFormed() async throws {
        let stage = try await Stage(ScriptedOrigin(fields: ["Cache-Control": "no-store"]))
        _ = try await stage.get()
        let text = await stage.cache.statistics.prometheusText(prefix: "x")
        #expect(text.contains("x_answers_total{source=\"origin\"} 1\n"))
        #expect(text.contains("x_refused_total{reason=\"response-no-store\"} 1\n"))
        #expect(text.contains("x_capacity_bytes{tier=\"memory\"} 33554432\n"))
        #expect(text.hasSuffix("\n"))
        var types: Set<String> = []
        var series: Set<String> = []
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            if line.hasPrefix("# HELP ") { continue }
            if line.hasPrefix("# TYPE ") {
                #expect(types.insert(String(words[2])).inserted, "\(line) twice")
                #expect(["counter", "gauge", "histogram"].contains(words[3]))
                continue
            }
            #expect(words.count == 2, "\(line)")
            #expect(series.insert(String(words[0])).inserted, "\(line) twice")
            #expect(Double(words[1]) != nil, "\(line)")
            let name = String(words[0].prefix { $0 != "{" })
            let isTyped = ["", "_bucket", "_count", "_sum"].contains {
                name.hasSuffix($0) && types.contains(String(name.dropLast($0.count)))
            }
            #expect(isTyped, "\(line) has no type")
        }
        await stage.end()
    }

    @Test("a label with quotes or line breaks cannot break the text")
    func labelsAreEscaped() {
        var statistics = HTTPCache.Statistics()
        statistics.refusals = [StoreRefusalReason("a\"b\\c\nd"): 1]
        let text = statistics.prometheusText()
        #expect(text.contains("{reason=\"a\\\"b\\\\c\\nd\"} 1\n"))
    }

    // MARK: Recorder

    @Test("refusals and escapes are counted by reason, and what never happened has no row")
    func reasonsAreCounted() {
        let recorder = Recorder(onEvent: nil)
        let request = CacheRequest(url: "http://example.com/")
        #expect(recorder.snapshot.refusals.isEmpty && recorder.snapshot.escapes.isEmpty)
        // Each reason is another string with the same text.
        let reasons = [3, 1, 2].map { "a reason that no word of memory holds \($0)" }
        for reason in reasons + reasons.dropFirst() {
            recorder.refused(StoreRefusalReason(reason), request)
        }
        #expect(
            recorder.snapshot.refusals == [
                StoreRefusalReason(reasons[0]): 1, StoreRefusalReason(reasons[1]): 2,
                StoreRefusalReason(reasons[2]): 2,
            ]
        )
        for (place, escape) in FlightEscape.allCases.enumerated() {
            for _ in 0...place { recorder.escaped(escape, request) }
        }
        let escapes = recorder.snapshot.escapes
        for (place, escape) in FlightEscape.allCases.enumerated() {
            #expect(escapes[escape.rawValue] == (escape == .mayNotShare ? nil : place + 1))
        }
    }

    // MARK: Tags

    @Test("the fields of tags may have any names")
    func tagFieldsMayHaveAnyNames() {
        for count in [1, 9, 13, 62, 63, 64, 65, 200] {
            var rules = CachingRules()
            let name = String(repeating: "n", count: count)
            rules.tagFields = ["Cache-Tag", name]
            let fields: HeaderFields = [
                name.uppercased(): "red, blue", "Server": "s", name + "n": "no",
                "Surrogate-Key": "no",
            ]
            #expect(rules.tags(in: fields.section) == ["red", "blue"])
            #expect(rules.tags(in: FieldSection([("Server", "s")])) == [])
        }
    }

    // MARK: Fields

    @Test("a value that cannot be sent removes the one before", arguments: ["b\n", "b\u{0}", "\r"])
    func invalidValueRemovesTheOneBefore(value: String) {
        var fields: HeaderFields = ["X-Token": "a", "Other": "c", "x-token": "d"]
        fields["X-Token"] = value
        #expect(fields == ["Other": "c"])
        fields["X-Token"] = "e"
        #expect(fields["x-token"] == "e")
    }

    @Test("fields are a sequence of lines, and are described as in a message")
    func fieldsAreASequence() {
        let fields: HeaderFields = ["A": "1", "b": "2", "a": "3"]
        #expect(fields.map { "\($0.name)=\($0.value)" } == ["A=1", "b=2", "a=3"])
        #expect("\(fields)" == "A: 1\nb: 2\na: 3\n")
    }

    @Test("equal chunks have equal hashes, wherever their bytes lie")
    func equalChunksHaveEqualHashes() {
        let whole = ByteChunk("abcabc")
        #expect(Set([whole[0..<3], whole[3..<6], ByteChunk("abc"), ByteChunk("ab")]).count == 2)
    }
}
