import CacheEngine

/// The names of records and leases in Redis.
///
/// The braces put everything of one resource into one slot of a cluster. The names are hashes: the
/// whole key stands in the record and is compared there.
struct StoreKeys: Sendable {
    private let namespace: String
    private let hasher: KeyHasher

    /// `log` is the identity of the fleet's log, from which every machine takes the same seed.
    init(namespace: String, log: [UInt8]) {
        self.namespace = namespace
        let word = { (bytes: ArraySlice<UInt8>) in bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        }
        hasher = KeyHasher(
            seed: KeyHash(placement: word(log[..<8]), identity: word(log[8...]))
        )
    }

    /// The record's name, and the name of its lease.
    func names(of key: SharedKey) -> [String] {
        let placement = key.resource.withUnsafeBytes { hasher.hash($0).placement }
        let identity = key.bytes.withUnsafeBytes { hasher.hash($0).identity }
        let record = "ce1:\(namespace):{\(Self.hex(placement))}:\(Self.hex(identity))"
        return [record, record + ":l"]
    }

    private static func hex(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
