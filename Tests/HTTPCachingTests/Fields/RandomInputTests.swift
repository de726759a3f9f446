import CacheTestSupport
import Testing

@testable import HTTPCaching

/// Seeded random text for every parser: no parser may trap, and its results must be consistent.
@Suite("Random input")
struct RandomInputTests {
    /// Where a parser looks again from each quote, or at each name of a list, this takes minutes.
    @Test("Hostile fields take time by their length, not by its square")
    func longFieldsAreReadInOnePass() {
        let clock = ContinuousClock()
        let quotes = "a=\"" + String(repeating: "\\\"", count: 200_000)
        let directives = clock.measure {
            for opening in ["", "b c"] {
                let facts = RequestFacts(
                    method: .get,
                    fields: FieldSection([("Cache-Control", opening + quotes)])
                )
                #expect(!facts.isConditional)
            }
        }
        #expect(directives < .seconds(10))
        let names = (0..<20_000).map { "x\($0)" }
        let lines = [("Connection", names.joined(separator: ","))] + names.map { ($0, "1") }
        let lists = clock.measure {
            let kept = HopByHop.strip(FieldSection(lines), for: .forwardingRequest)
            #expect(kept.isEmpty)
        }
        #expect(lists < .seconds(10))
    }

    /// Pieces that parsers look for, so that random text reaches deep branches.
    private static let pieces: [String] = [
        "max-age", "s-maxage", "no-cache", "no-store", "private", "public", "must-understand",
        "stale-if-error", "max-stale", "=", "\"", ",", ";", " ", "\t", "\\", "*", "W/", "bytes",
        "bytes=", "bytes ", "-", "/", "0", "1", "99999999999999999999", "9223372036854775807",
        "2147483648", "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994", "q=0.5", "gzip", "en-US", "(", ")", "?1", ":aGk=:", "@1", "%\"",
        "%C3", "http", "://", "h", ":", "[::1]", "..", ".", "?", "#", "é", "'", "a", "Z", "+",
    ]

    private static func text(_ random: inout SeededRandom) -> String {
        var text = ""
        for _ in 0..<Int.random(in: 0...12, using: &random) {
            text += pieces.randomElement(using: &random) ?? ""
        }
        return text
    }

    private static func bytes(_ random: inout SeededRandom) -> [UInt8] {
        if Bool.random(using: &random) { return Array(text(&random).utf8) }
        let count = Int.random(in: 0...40, using: &random)
        return (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
    }

    @Test(arguments: 0..<64 as Range<UInt64>)
    func parsersOfValuesNeverTrap(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        for _ in 0..<400 {
            Self.bytes(&random).withByteRun { value in
                Self.readDirectives(value)
                Self.readScalars(value, seed: seed)
                var members = ListScanner(value)
                while let member = members.next() { #expect(!member.isEmpty) }
                var tags = EntityTagScanner(value)
                while let tag = tags.next() { #expect(tag.weaklyEquals(tag)) }
            }
        }
    }

    private static func readDirectives(_ value: ByteRun) {
        var scanner = DirectiveScanner(value)
        var directives = 0
        while let directive = scanner.next() {
            #expect(FieldSection.isValidName(directive.name))
            _ = directive.argument.namesFields
            directives += 1
        }
        #expect(directives <= value.count)
        for ending in [", no-store", "; no-store", " no-store"] {
            (Array(value.buffer) + Array(ending.utf8)).withByteRun { line in
                var response = ResponseDirectives()
                response.add(line)
                #expect(response.flags.contains(.noStore), "\(line.string)")
            }
        }
        var response = ResponseDirectives()
        response.add(value)
        for seconds in [response.maxAgeSeconds, response.sharedMaxAgeSeconds] {
            #expect(seconds ?? 0 <= DeltaSeconds.maximum)
        }
        var dictionary = StructuredDictionary(value)
        reading: while true {
            switch dictionary.next() {
            case .member(let member): #expect(!member.key.isEmpty)
            case .end, .malformed: break reading
            }
        }
    }

    private static func readScalars(_ value: ByteRun, seed: UInt64) {
        // From 1970 to the year 3000; the extreme values must not trap either.
        let near = Int64(seed) * 500_000_000
        _ = HTTPDate.parse(value, nearSeconds: .max)
        _ = HTTPDate.parse(value, nearSeconds: .min)
        if let seconds = HTTPDate.parse(value, nearSeconds: near) {
            #expect(HTTPDate.parse(HTTPDate.string(seconds), nearSeconds: 0) == seconds)
        }
        if let range = ContentRange(value) { #expect(ContentRange(range.text) == range) }
        if let tag = EntityTag(value) { #expect(tag.weaklyEquals(tag)) }
        _ = MethodKind(value)
        _ = DeltaSeconds.parse(value)
        if case .next(let count) = MaxForwards(FieldSection([("Max-Forwards", value.string)])) {
            #expect((0...MaxForwards.maximum).contains(count))
        }
        if let number = DecimalNumber.parse(value) { #expect(number >= 0) }
        for size in [0, 1, 10, Int.max] {
            guard let ranges = RangeSet(value) else { continue }
            switch ranges.resolve(bodySize: size) {
            case .whole, .unsatisfiable: break
            case .single(let range): #expect(!range.isEmpty && range.upperBound <= size)
            case .multi(let several):
                #expect(several.count > 1 && several.allSatisfy { $0.upperBound <= size })
            }
        }
    }

    @Test(arguments: 0..<64 as Range<UInt64>)
    func urisResolveToWhatStaysTheSame(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let base = URIReference("http://h/a/b?c")
        for _ in 0..<400 {
            let text = Self.text(&random)
            guard let base, let reference = URIReference(text) else { continue }
            let target = reference.resolved(against: base).target
            guard let again = URIReference(target) else {
                Issue.record("\(text) gives \(target), which is no URI")
                continue
            }
            #expect(again.target == target, "\(text)")
        }
    }

    @Test(arguments: 0..<64 as Range<UInt64>)
    func wholeHeadsNeverTrap(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let names = [
            "Cache-Control", "CDN-Cache-Control", "Expires", "Date", "Age", "Last-Modified", "ETag",
            "Vary", "Content-Length", "Content-Range", "Content-Location", "Location", "Range",
            "If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range",
            "Pragma", "Connection", "Set-Cookie", "Accept-Encoding", "Accept-Language", "X-Other",
        ]
        func section() -> FieldSection {
            var fields = FieldSection()
            for _ in 0..<Int.random(in: 0...14, using: &random) {
                fields.append(names.randomElement(using: &random) ?? "X", Self.text(&random))
            }
            return fields
        }
        for _ in 0..<60 {
            let rules: StoringRules = Bool.random(using: &random) ? .shared : .private
            Self.exchange(section(), section(), section(), rules, &random)
        }
    }

    /// Applies every rule to one request, its response, and a later 304.
    private static func exchange(
        _ requestFields: FieldSection,
        _ fields: FieldSection,
        _ laterFields: FieldSection,
        _ rules: StoringRules,
        _ random: inout SeededRandom
    ) {
        let now = Int64.random(in: -1 << 40...1 << 40, using: &random)
        let request = RequestFacts(method: .get, fields: requestFields)
        let status = [200, 206, 301, 404, 503, 599].randomElement(using: &random) ?? 200
        let response = ResponseFacts(
            status: status,
            fields: fields,
            rules: rules,
            receivedAtSeconds: now
        )
        let decision = StoreDecision.decide(
            request: request,
            response: response,
            rules: rules,
            receivedAtSeconds: now
        )
        guard case .store(let lifetime) = decision else { return }
        let facts = StoredFacts(
            response: response,
            lifetime: lifetime,
            rules: rules,
            requestTimeSeconds: now - 1,
            responseTimeSeconds: now
        )
        let stored = StoredFields.make(
            from: fields,
            response: response,
            rules: rules,
            receivedAtSeconds: now
        )
        #expect(stored.contains("Date"))
        #expect(!stored.contains("Connection"))
        let reuse = ReuseDecision.decide(
            stored: facts,
            request: request,
            nowSeconds: now + Int64.random(in: 0...100, using: &random),
            preferences: ReusePreferences()
        )
        if facts.flags.contains(.noCache) {
            #expect(!["serve", "serveStale"].contains(reuse.verdict))
        }
        var validation = requestFields
        Conditional.makeConditionalFields(stored: stored, into: &validation)
        #expect(!validation.contains("Range"))
        _ = Conditional.evaluateClientConditionals(
            request: requestFields,
            requestFacts: request,
            stored: stored,
            storedFacts: facts,
            nowSeconds: now
        )
        let fresh = Conditional.freshen(
            stored: stored,
            with304: laterFields,
            rules: rules,
            receivedAtSeconds: now + 5
        )
        #expect(fresh.values("Date").count == 1 || laterFields.values("Date").count > 1)
        #expect(fresh.values("Content-Length") == stored.values("Content-Length"))
        _ = Conditional.identifies(stored: stored, with304: laterFields)
        if case .selecting(let vary) = Vary.read(fields) {
            let key = VariantKey(vary, request: requestFields)
            #expect(key == VariantKey(vary, request: requestFields))
        }
        _ = Invalidation.targets(
            method: .post,
            status: 200,
            requestURL: "http://h/a",
            responseFields: fields
        )
    }

    @Test(arguments: 0..<64 as Range<UInt64>)
    func decodersNeverTrapAndGiveBackTheirBytes(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        for _ in 0..<200 {
            var bytes = (0..<Int.random(in: 0...64, using: &random)).map { _ in
                // Small numbers, so that lengths sometimes fit.
                UInt8.random(in: 0...255, using: &random)
                    & UInt8.random(in: 0...255, using: &random)
            }
            bytes.withUnsafeBytes { source in
                if let fields = FieldSection(decoding: source) {
                    #expect(fields.bytes == Array(source))
                }
                if let vary = Vary(decoding: source) {
                    var again: [UInt8] = []
                    vary.encode(to: &again)
                    #expect(again == Array(source))
                }
            }
            if !bytes.isEmpty { bytes[0] = 1 }
            bytes.withUnsafeBytes { source in
                guard let facts = StoredFacts(decoding: source) else { return }
                var again = [UInt8](repeating: 0, count: StoredFacts.encodedBytes)
                again.withUnsafeMutableBytes { facts.encode(into: $0) }
                #expect(again == Array(source.prefix(StoredFacts.encodedBytes)))
            }
        }
    }
}
