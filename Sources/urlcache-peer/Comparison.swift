import Foundation

/// Both caches side by side: rounds that alternate, and the median of each.
struct Comparison {
    let isQuick: Bool

    private struct Side {
        let name: String
        let peer: Peer
    }

    func run() async throws {
        let folder = NSTemporaryDirectory() + "urlcache-peer-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: folder + "/engine",
            withIntermediateDirectories: true
        )
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let milliseconds = isQuick ? 50 : 300
        let memory = try await sides(directory: nil)
        measure("memory-hit", memory, "http-hit keys=1024 milliseconds=\(milliseconds)")
        let disk = try await sides(directory: folder)
        let operations = isQuick ? 50 : 500
        measure("disk-store", disk, "disk-store size=4096 entries=\(isQuick ? 64 : 256)")
        measure("disk-hit", disk, "disk-hit size=4096 entries=64 operations=\(operations)")
    }

    private func sides(directory: String?) async throws -> [Side] {
        var sides: [Side] = []
        for name in ["urlcache", "enginecache"] {
            let cache = try await PeerCache.make(
                isEngine: name == "enginecache",
                directory: directory
            )
            sides.append(Side(name: name, peer: Peer(cache, bodies: nil)))
        }
        return sides
    }

    private func measure(_ name: String, _ sides: [Side], _ command: String) {
        var times: [String: [Double]] = [:]
        for _ in 0..<5 {
            for side in sides { times[side.name, default: []].append(time(side.peer, command)) }
        }
        for side in sides {
            let sorted = (times[side.name] ?? []).sorted()
            print("{\"name\": \"\(name) \(side.name)\", \"ns\": \(sorted[sorted.count / 2])}")
        }
    }

    /// Nanoseconds for one operation; a miss among them makes the figure worthless.
    private func time(_ peer: Peer, _ command: String) -> Double {
        struct Answer: Decodable {
            let nanoseconds_per_operation: Double
            let operations: Int
            let correct: Int
        }
        let line = peer.answer(command)
        guard let answer = try? JSONDecoder().decode(Answer.self, from: Data(line.utf8)),
            answer.correct == answer.operations
        else {
            FileHandle.standardError.write(Data("urlcache-peer: \(command): \(line)\n".utf8))
            exit(1)
        }
        return answer.nanoseconds_per_operation
    }
}
