import CacheEngine

/// The names of records and leases in Redis.
///
/// A name is `ce1:<namespace>:{<resource>}:<version>:<key>`. The braces put everything of one resource into one slot of a cluster. The names are hashes: the
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

    func name(of key: SharedKey) -> StoreName {
        let placement = key.resource.withUnsafeBytes { hasher.hash($0).placement }
        let identity = key.bytes.withUnsafeBytes { hasher.hash($0).identity }
        var record = [UInt8]()
        record.reserveCapacity(namespace.utf8.count + 40)
        record += "ce1:".utf8
        record += namespace.utf8
        record += ":{".utf8
        Self.append(placement, to: &record)
        record += "}:".utf8
        record += SharedRecord.version.utf8
        record += ":".utf8
        Self.append(identity, to: &record)
        return StoreName(record: record)
    }

    /// Sixteen digits.
    private static func append(_ number: UInt64, to bytes: inout [UInt8]) {
        for shift in stride(from: 60, through: 0, by: -4) {
            let digit = UInt8(number >> UInt64(shift) & 0xF)
            bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
        }
    }
}

/// The name of a record in Redis, and that of its lease.
struct StoreName: Hashable, Sendable {
    let record: [UInt8]
    var lease: [UInt8] { record + ":l".utf8 }
    /// The keys of the scripts.
    var both: [[UInt8]] { [record, lease] }
}
