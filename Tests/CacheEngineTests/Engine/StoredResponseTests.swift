import CacheTestSupport
import HTTPCaching
import Testing

@testable import CacheEngine

/// The metadata of responses and variant indexes, byte by byte.
@Suite struct StoredResponseTests {
    static let key = RequestKey(bytes: [1, 2, 3], hash: KeyHash(placement: 1, identity: 1))

    static func entry(_ metadata: [UInt8], body: String = "") -> StoredEntry {
        let blueprint = EntryBlueprint(key: key, metadata: metadata, createdSeconds: 17)
        return StoredEntry(blueprint.makeEntry(body: [ByteChunk(body)], sequence: 0))
    }

    static func facts(isPartial: Bool = false) -> StoredFacts {
        let fields = FieldSection([("Cache-Control", "max-age=60"), ("ETag", "\"1\"")])
        let rules = StoringRules.shared
        let response = ResponseFacts(
            status: 200,
            fields: fields,
            rules: rules,
            receivedAtSeconds: 1_000
        )
        var facts = StoredFacts(
            response: response,
            lifetime: FreshnessLifetime(seconds: 60, source: .maxAge),
            rules: rules,
            requestTimeSeconds: 1_000,
            responseTimeSeconds: 1_001
        )
        if isPartial { facts.flags.insert(.isPartial) }
        return facts
    }

    static let fields = FieldSection([("ETag", "\"1\""), ("X", "y")])

    @Test("a plain hit is read as the whole metadata is, and only where there is no more of it")
    func plainHitsReadTheSame() throws {
        for userInfo in [nil, ByteChunk([7])] {
            for isPartial in [false, true] {
                let metadata = StoredResponse.metadata(
                    facts: Self.facts(isPartial: isPartial),
                    fields: Self.fields,
                    userInfo: userInfo,
                    parts: isPartial ? PartialBody(bodySize: 9) : nil
                )
                let entry = Self.entry(metadata, body: "hello").entry
                guard let hit = PlainHit(entry, nowSeconds: 1_010) else {
                    #expect(userInfo != nil || isPartial)
                    continue
                }
                #expect(userInfo == nil && !isPartial)
                let stored = try #require(StoredResponse(StoredEntry(entry)))
                #expect(ByteChunk(entry.storage, hit.fields) == stored.encodedFields)
                #expect(ByteChunk(entry.storage, hit.body).text == "hello")
                #expect(hit.createdSeconds == stored.stored.createdSeconds)
                #expect(hit.fresh.ageSeconds == stored.facts.ageSeconds(at: 1_010))
            }
        }
        let index = VariantIndex(try #require(Vary(["accept"])), nonce: 1).metadata(
            VariantRoll(sinceSeconds: 7)
        )
        for metadata in [[], [1], index] {
            #expect(PlainHit(Self.entry(metadata).entry, nowSeconds: 1_010) == nil)
        }
    }

    @Test("what was written is read back")
    func metadataRoundTrips() throws {
        for userInfo in [nil, ByteChunk([]), ByteChunk([0, 1, 255])] {
            for ownLifetime in [nil, 0, 600] as [UInt32?] {
                let metadata = StoredResponse.metadata(
                    facts: Self.facts(),
                    fields: Self.fields,
                    userInfo: userInfo,
                    ownLifetimeSeconds: ownLifetime
                )
                let stored = try #require(StoredResponse(Self.entry(metadata, body: "hello")))
                #expect(stored.facts == Self.facts())
                #expect(stored.fields().bytes == Self.fields.bytes)
                #expect(stored.fields(reserving: 100).bytes == Self.fields.bytes)
                #expect(stored.userInfo?.array == (userInfo?.isEmpty == false ? [0, 1, 255] : nil))
                #expect(stored.ownLifetimeSeconds == ownLifetime)
                #expect(stored.parts == nil)
                #expect(stored.bodyCount == 5)
            }
        }
    }

    @Test("the parts of a partial response are read back")
    func partsRoundTrip() throws {
        for size in [nil, 100] {
            var parts = PartialBody(bodySize: size)
            _ = parts.add(ContentRange(range: 0..<10, bodySize: size))
            _ = parts.add(ContentRange(range: 50..<60, bodySize: size))
            let metadata = StoredResponse.metadata(
                facts: Self.facts(isPartial: true),
                fields: Self.fields,
                userInfo: ByteChunk([9]),
                parts: parts
            )
            let stored = try #require(
                StoredResponse(Self.entry(metadata, body: String(repeating: "x", count: 20)))
            )
            #expect(stored.parts == parts)
            #expect(stored.userInfo?.array == [9])
            #expect(parts.storedRange(of: 52..<54) == 12..<14)
        }
    }

    @Test("cut at every byte it is refused, or read as the same response")
    func truncationIsNoticed() {
        var parts = PartialBody(bodySize: 100)
        _ = parts.add(ContentRange(range: 0..<10, bodySize: 100))
        let metadata = StoredResponse.metadata(
            facts: Self.facts(isPartial: true),
            fields: Self.fields,
            userInfo: ByteChunk([1, 2, 3]),
            parts: parts
        )
        for count in 0..<metadata.count {
            let stored = StoredResponse(Self.entry([UInt8](metadata[..<count]), body: "0123456789"))
            #expect(stored == nil, "Cut at \(count)")
        }
    }

    @Test("random bytes and flipped bits never trap, whatever is then asked of the response")
    func randomBytesNeverTrap() {
        var parts = PartialBody(bodySize: 100)
        _ = parts.add(ContentRange(range: 0..<10, bodySize: 100))
        let good = StoredResponse.metadata(
            facts: Self.facts(isPartial: true),
            fields: Self.fields,
            userInfo: ByteChunk([1, 2, 3]),
            parts: parts
        )
        var random = SeededRandom(seed: 5)
        var understood = 0
        for round in 0..<20_000 {
            var bytes = good
            if round % 4 == 0 {
                bytes = (0..<Int.random(in: 0..<150, using: &random)).map { _ in
                    UInt8.random(in: 0...255, using: &random)
                }
                if !bytes.isEmpty { bytes[0] = UInt8(round / 4 % 3) }
            } else {
                for _ in 0...(round % 3) {
                    let index = Int.random(in: 0..<bytes.count, using: &random)
                    bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                }
            }
            let entry = Self.entry(bytes, body: "0123456789")
            _ = VariantIndex(entry.entry)
            guard let stored = StoredResponse(entry) else { continue }
            understood += 1
            _ = stored.userInfo
            _ = stored.parts
            _ = stored.fields().first("etag")
        }
        #expect(understood > 100)
    }

    // MARK: Variants

    @Test("an index of variants is read back")
    func variantIndexRoundTrips() throws {
        let accept = try #require(Vary(["Accept"]))
        let both = try #require(Vary(["Accept", "Accept-Language"]))
        var index = VariantIndex(accept, nonce: 7)
        index.add(accept, maximumVariants: 10, nonce: 8)
        index.add(both, maximumVariants: 10, nonce: 8)
        #expect(index.nonce == 7)
        #expect(index.sets == [both, accept], "The newest first")
        let entry = Self.entry(index.metadata(VariantRoll(sinceSeconds: 7)))
        #expect(VariantIndex(entry.entry) == index)
        #expect(VariantIndex.isIndex(entry.entry))
        #expect(StoredResponse(entry) == nil)
        for count in 0..<index.metadata(VariantRoll(sinceSeconds: 7)).count {
            let cut = Self.entry([UInt8](index.metadata(VariantRoll(sinceSeconds: 7))[..<count]))
            #expect(VariantIndex(cut.entry) == nil, "Cut at \(count)")
        }
    }

    @Test("an index that no machine writes is not read")
    func indexThatNobodyWritesIsNotRead() throws {
        var index = VariantIndex(try #require(Vary(["x-0"])), nonce: 7)
        var encoded: [[UInt8]] = []
        for number in 0...VariantIndex.setsMax {
            let vary = try #require(Vary(["x-\(number)"]))
            var bytes: [UInt8] = []
            vary.encode(to: &bytes)
            encoded.append([UInt8(bytes.count), 0] + bytes)
            if number < VariantIndex.setsMax { index.prefer(vary) }
        }
        let good = index.metadata(VariantRoll(sinceSeconds: 7))
        func isRead(_ bytes: [UInt8]) -> Bool { VariantIndex(Self.entry(bytes).entry) != nil }
        func altered(_ change: (inout [UInt8]) -> Void) -> [UInt8] {
            var bytes = good
            change(&bytes)
            return bytes
        }
        #expect(isRead(good))
        let oneMore = altered { bytes in
            bytes[1] += 1
            bytes.insert(contentsOf: encoded[VariantIndex.setsMax], at: 16)
        }
        #expect(!isRead(oneMore), "A set too many")
        let twice = altered { bytes in
            let newest = encoded[VariantIndex.setsMax - 1]
            bytes.replaceSubrange(16..<16 + newest.count, with: encoded[0])
        }
        #expect(!isRead(twice), "The same set twice")
        let longer = altered { bytes in bytes.append(0) }
        #expect(!isRead(longer), "A byte behind the roll")
        let withoutRoll = altered { bytes in
            bytes[4] = 0
            bytes.removeLast(4)
        }
        #expect(!isRead(withoutRoll), "No roll")
        let longRoll = altered { bytes in
            bytes[4] = 2
            bytes[5] = 1
            bytes.append(contentsOf: [UInt8](repeating: 0, count: 4 * VariantRoll.keysMax + 4))
        }
        #expect(!isRead(longRoll), "A roll of \(VariantRoll.wordsMax + 1) words")
    }

    @Test("past the limit a new nonce forgets all variants, and few sets are kept")
    func variantsAreForgottenTogether() throws {
        let accept = try #require(Vary(["Accept"]))
        var index = VariantIndex(accept, nonce: 1)
        for _ in 0..<5 { index.add(accept, maximumVariants: 5, nonce: 2) }
        #expect(index.nonce == 1)
        index.add(accept, maximumVariants: 5, nonce: 2)
        #expect(index.nonce == 2)
        #expect(index.variants == 1)
        for number in 0..<20 {
            index.add(try #require(Vary(["X-\(number)"])), maximumVariants: 100, nonce: 3)
        }
        #expect(index.sets.count == VariantIndex.setsMax)
        #expect(index.sets.first == Vary(["X-19"]))
    }

    /// Machines hash keys differently, and share the index with its roll.
    @Test func variantCountsOnceOnTwoMachines() async throws {
        let origin = ScriptedOrigin(
            fields: ["Cache-Control": "max-age=60", "Vary": "Accept-Language"]
        )
        var hashes: Set<KeyHash> = []
        var shared: StoredEntry?
        for seed in 0..<UInt64(2) {
            let world = try await SimulatedCache(seed: seed, origin: origin)
            let tiers = world.cache.services.tiers
            let key = try world.cache.services.key(of: .page).key
            hashes.insert(key.hash)
            if let shared {
                let own = try #require(shared.adopted(under: key.storeKey, sequence: 0))
                #expect(tiers.put(own.entry, since: tiers.ledger.ticket()) == .stored)
            }
            for language in ["de", "en", "fr"] {
                _ = await world.answer(.speaking(language))
            }
            let entry = try #require(tiers.peek(key))
            #expect(VariantIndex(entry)?.variants == 3)
            shared = StoredEntry(entry)
            #expect(await world.shutDown())
        }
        #expect(hashes.count == 2 && origin.count == 6)
    }

    /// An index that counted no further would never forget any.
    @Test func variantsAreBoundedWhateverTheSetting() throws {
        let accept = try #require(Vary(["Accept"]))
        var index = VariantIndex(accept, nonce: 1)
        for _ in 0..<VariantIndex.variantsMax { index.add(accept, maximumVariants: .max, nonce: 2) }
        #expect(index.nonce == 1 && index.variants == VariantIndex.variantsMax)
        index.add(accept, maximumVariants: .max, nonce: 2)
        #expect(index.nonce == 2 && index.variants == 1)
        index.add(accept, maximumVariants: -1, nonce: 3)
        #expect(index.nonce == 3)
    }
}
