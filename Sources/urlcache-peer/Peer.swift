import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Answers the commands of bench-cli with timed work on one cache.
final class Peer {
    private let cache: PeerCache
    private let bodies: Data?
    /// The requests for the responses in memory, once these are stored.
    private var requests: [URLRequest] = []
    /// The number of stores so far, by size.
    private var storeCounts: [Int: Int] = [:]

    /// Each store lists the whole directory and takes up to 90 milliseconds, so more entries would
    /// take hours; fewer favour URLCache.
    private static let diskEntriesMax = 64
    /// Each hit lists the whole directory too and takes ten milliseconds or more.
    private static let diskHitsMax = 100
    /// The time after which a round on disk begins no further operation.
    private static let roundNanosecondsMax: UInt64 = 400_000_000
    private static let bodyStride = 506_816
    private static let keyPrefix = "https://example.test/assets/"
    private static let keyBytes = 46
    /// The look-ups between two readings of the clock, as in bench-cli.
    private static let chunkSize = 256
    private static let sequenceLength = 1 << 16

    init(_ cache: PeerCache, bodies: Data?) {
        self.cache = cache
        self.bodies = bodies
    }

    func answer(_ line: String) -> String {
        let words = line.split(separator: " ")
        var settings: [String: Int] = [:]
        for word in words.dropFirst() {
            let parts = word.split(separator: "=")
            if parts.count == 2 { settings[String(parts[0])] = Int(parts[1]) }
        }
        switch words.first {
        case "describe":
            let bounds =
                ", at most \(Self.diskEntriesMax) entries, \(Self.diskHitsMax) hits or "
                + "\(Self.roundNanosecondsMax / 1_000_000) ms a round"
            let note = bodies == nil ? "" : bounds
            return "{\"configuration\": \"\(cache.description)\(note)\"}"
        case "http-hit":
            return hits(
                settings["keys"] ?? 1_024,
                size: settings["size"] ?? 1_024,
                milliseconds: settings["milliseconds"] ?? 200
            )
        case "disk-store":
            return stores(settings["size"] ?? 4096, settings["entries"] ?? 1)
        case "disk-hit":
            return diskHits(
                size: settings["size"] ?? 4096,
                entries: settings["entries"] ?? 1,
                operations: settings["operations"] ?? 1
            )
        default: return "{\"error\": \"unknown command\"}"
        }
    }

    // MARK: - Work

    /// Looks up responses in memory, in the order of bench-cli.
    private func hits(_ count: Int, size: Int, milliseconds: Int) -> String {
        let requests = stored(count, bodySizeBytes: size)
        let sequence = Self.sequence(count)
        let nanoseconds = UInt64(milliseconds) * 1_000_000
        var chunks: [UInt64] = []
        chunks.reserveCapacity(1 << 17)
        var step = 0
        var correct = 0
        let start = DispatchTime.now().uptimeNanoseconds
        var last = start
        repeat {
            for _ in 0..<Self.chunkSize {
                let number = Int(sequence[step & (Self.sequenceLength - 1)])
                let byte = cache.firstByte(requests[number])
                correct += byte == UInt8(truncatingIfNeeded: number) ? 1 : 0
                step += 1
            }
            let now = DispatchTime.now().uptimeNanoseconds
            chunks.append(now - last)
            last = now
        } while last - start < nanoseconds
        let each = Self.median(chunks) / Double(Self.chunkSize)
        return report(each, operations: step, correct: correct)
    }

    /// Stores all entries if it is the first round of that size.
    ///
    /// A later round replaces entries, beginning after those of the round before, until its time
    /// is over.
    private func stores(_ size: Int, _ entries: Int) -> String {
        let count = min(entries, Self.diskEntriesMax)
        let keys = (0..<count).map { Self.key("\(size)-", $0) }
        let contents = (0..<count).map { body($0, size) }
        let first = storeCounts[size] ?? 0
        let start = DispatchTime.now().uptimeNanoseconds
        var operations = 0
        while operations < count, first == 0 || operations == 0 || !isRoundOver(start) {
            let number = (first + operations) % count
            cache.store(contents[number], key: keys[number])
            operations += 1
        }
        storeCounts[size] = first + operations
        // The whole time, as for every other peer: a store may go on after its call.
        let time = DispatchTime.now().uptimeNanoseconds - start
        return report(
            Double(time) / Double(max(1, operations)),
            operations: operations,
            correct: operations
        )
    }

    private func diskHits(size: Int, entries: Int, operations: Int) -> String {
        let count = min(entries, Self.diskEntriesMax)
        let most = min(operations, Self.diskHitsMax)
        let requests = (0..<count).compactMap { Self.request(Self.key("\(size)-", $0)) }
        guard requests.count == count, count > 0 else { return "{\"error\": \"no entries\"}" }
        let start = DispatchTime.now().uptimeNanoseconds
        var times: [UInt64] = []
        var correct = 0
        while times.count < most, times.isEmpty || !isRoundOver(start) {
            let number = times.count &* 7919 % count
            let before = DispatchTime.now().uptimeNanoseconds
            let byte = cache.firstByte(requests[number])
            times.append(DispatchTime.now().uptimeNanoseconds - before)
            correct += byte == UInt8(truncatingIfNeeded: number) ? 1 : 0
        }
        return report(Self.median(times), operations: times.count, correct: correct)
    }

    private func isRoundOver(_ start: UInt64) -> Bool {
        DispatchTime.now().uptimeNanoseconds - start >= Self.roundNanosecondsMax
    }

    // MARK: - Keys and bodies

    /// Returns the requests for the responses in memory, and stores these on first use.
    private func stored(_ count: Int, bodySizeBytes: Int) -> [URLRequest] {
        if requests.count == count { return requests }
        let keys = (0..<count).map { Self.key("", $0) }
        for (number, key) in keys.enumerated() {
            let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: bodySizeBytes)
            cache.store(Data(bytes), key: key)
        }
        requests = keys.compactMap(Self.request)
        return requests
    }

    /// The numbers of the look-ups, drawn as bench-cli draws them: SplitMix64 with the seed 1.
    private static func sequence(_ count: Int) -> [UInt32] {
        var state: UInt64 = 1
        return (0..<sequenceLength).map { _ in
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return UInt32((mixed ^ (mixed >> 31)) % UInt64(count))
        }
    }

    private func body(_ number: Int, _ size: Int) -> Data {
        let first = UInt8(truncatingIfNeeded: number)
        guard let bodies, bodies.count > size else { return Data(repeating: first, count: size) }
        let offset = number &* Self.bodyStride % (bodies.count - size)
        var body = Data(bodies[offset..<offset + size])
        body[body.startIndex] = first
        return body
    }

    private static func key(_ kind: String, _ number: Int) -> String {
        let digits = String(number)
        let zeros = keyBytes - keyPrefix.count - kind.count - digits.count
        return keyPrefix + kind + String(repeating: "0", count: max(0, zeros)) + digits
    }

    private static func request(_ key: String) -> URLRequest? {
        URL(string: key).map { URLRequest(url: $0) }
    }

    /// The median, as in bench-cli: a time in which the thread lost its processor does not count.
    private static func median(_ times: [UInt64]) -> Double {
        times.isEmpty ? 0 : Double(times.sorted()[(times.count - 1) / 2])
    }

    private func report(_ nanoseconds: Double, operations: Int, correct: Int) -> String {
        "{\"nanoseconds_per_operation\": \(nanoseconds), \"operations\": \(operations), "
            + "\"correct\": \(correct)}"
    }
}
