import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Answers the commands of bench-cli with timed work on one cache.
final class Peer {
    private let cache: PeerCache
    private let bodies: Data?
    private var requests: [String: [URLRequest]] = [:]
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
            return hits(settings["keys"] ?? 1024, milliseconds: settings["milliseconds"] ?? 200)
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

    private func hits(_ count: Int, milliseconds: Int) -> String {
        let requests = stored(kind: "", count, bodySizeBytes: 128)
        let end = DispatchTime.now().uptimeNanoseconds + UInt64(milliseconds) * 1_000_000
        let start = DispatchTime.now().uptimeNanoseconds
        var operations = 0
        var correct = 0
        var random = SystemRandomNumberGenerator()
        while DispatchTime.now().uptimeNanoseconds < end {
            for _ in 0..<256 {
                let number = Int.random(in: 0..<requests.count, using: &random)
                let byte = cache.firstByte(requests[number])
                correct += byte == UInt8(truncatingIfNeeded: number) ? 1 : 0
            }
            operations += 256
        }
        return report(start, operations: operations, correct: correct)
    }

    /// Stores all entries if it is the first round of that size.
    ///
    /// A later round replaces entries, beginning after those of the round before, until its time
    /// is over.
    private func stores(_ size: Int, _ entries: Int) -> String {
        let count = min(entries, Self.diskEntriesMax)
        let keys = (0..<count).map { Self.key("\(size)-", $0) }
        let contents = (0..<count).map { body($0, size) }
        requests["\(size)-"] = nil
        let first = storeCounts[size] ?? 0
        let start = DispatchTime.now().uptimeNanoseconds
        var operations = 0
        while operations < count, first == 0 || operations == 0 || !isRoundOver(start) {
            let number = (first + operations) % count
            cache.store(contents[number], key: keys[number])
            operations += 1
        }
        storeCounts[size] = first + operations
        return report(start, operations: operations, correct: operations)
    }

    private func diskHits(size: Int, entries: Int, operations: Int) -> String {
        let count = min(entries, Self.diskEntriesMax)
        let most = min(operations, Self.diskHitsMax)
        let requests = (0..<count).compactMap { Self.request(Self.key("\(size)-", $0)) }
        guard requests.count == count, count > 0 else { return "{\"error\": \"no entries\"}" }
        let start = DispatchTime.now().uptimeNanoseconds
        var operations = 0
        var correct = 0
        while operations < most, operations == 0 || !isRoundOver(start) {
            let number = operations &* 7919 % count
            let byte = cache.firstByte(requests[number])
            correct += byte == UInt8(truncatingIfNeeded: number) ? 1 : 0
            operations += 1
        }
        return report(start, operations: operations, correct: correct)
    }

    private func isRoundOver(_ start: UInt64) -> Bool {
        DispatchTime.now().uptimeNanoseconds - start >= Self.roundNanosecondsMax
    }

    // MARK: - Keys and bodies

    /// Returns the requests of that kind and stores their responses on first use.
    private func stored(kind: String, _ count: Int, bodySizeBytes: Int) -> [URLRequest] {
        if let made = requests[kind], made.count == count { return made }
        let keys = (0..<count).map { Self.key(kind, $0) }
        for (number, key) in keys.enumerated() {
            let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: bodySizeBytes)
            cache.store(Data(bytes), key: key)
        }
        let made = keys.compactMap(Self.request)
        requests[kind] = made
        return made
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

    private func report(_ start: UInt64, operations: Int, correct: Int) -> String {
        let time = DispatchTime.now().uptimeNanoseconds - start
        let each = Double(time) / Double(max(1, operations))
        return "{\"nanoseconds_per_operation\": \(each), \"operations\": \(operations), "
            + "\"correct\": \(correct)}"
    }
}
