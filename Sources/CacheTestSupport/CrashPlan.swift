package import CacheEngine

/// The constants that the two processes of the crash test share.
package enum CrashPlan {
    package static let keys = 64
    package static let tags = ["red", "green", "blue"]
    package static let sizes = [10, 500, 500, 4_000, 4_000, 20_000, 90_000]
    /// The bytes that a shard may hold unwritten, and may therefore lose.
    package static let queueBytesMax = 1 << 20
    package static let shardCount = 2

    package static func configuration(directory: String, capacityBytes: Int) -> DiskConfiguration {
        var configuration = DiskConfiguration(
            directory: directory,
            capacityBytes: capacityBytes
        )
        configuration.segmentBytes = 128 << 10
        configuration.shardCount = shardCount
        configuration.queueBytesMax = queueBytesMax
        configuration.entryBytesMax = 200_000
        configuration.ioThreads = 2
        return configuration
    }

    // MARK: A whole cache

    package static func cacheConfiguration(
        _ directory: String,
        _ capacityBytes: Int
    ) -> HTTPCache.Configuration {
        HTTPCache.Configuration(
            memory: .megabytes(1),
            backing: .disk(path: directory, capacity: .bytes(capacityBytes))
        )
    }

    package static func url(_ key: Int) -> String { "http://example.com/\(key)" }
    package static func tag(of key: Int) -> String { tags[key % tags.count] }

    /// A body that names its key and version at both ends.
    package static func text(_ key: Int, version: Int, bytes: Int) -> String {
        let name = "\(key) \(version)"
        return name + " " + String(repeating: "x", count: bytes) + " " + name
    }

    /// Returns the version of a complete body of the key, or `nil` for any other text.
    package static func version(in text: String, of key: Int) -> Int? {
        let words = text.split(separator: " ")
        guard words.count == 5, let version = Int(words[1]), Int(words[0]) == key,
            self.text(key, version: version, bytes: words[2].utf8.count) == text
        else { return nil }
        return version
    }
}
