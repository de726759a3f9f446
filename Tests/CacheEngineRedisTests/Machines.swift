import CacheEngine
import CacheTestSupport
import Foundation
import Platform
import RedisClient
import RedisTestSupport
import Synchronization

@testable import CacheEngineRedis

/// An origin whose resources have versions; each names its version as its body.
final class VersionedOrigin: Origin {
    private struct State {
        var versions: [String: Int] = [:]
        var count = 0
        var confirmed = 0
    }

    private let state = Mutex(State())

    /// The requests so far.
    var count: Int { state.withLock { $0.count } }
    /// The requests that were answered by a 304.
    var confirmed: Int { state.withLock { $0.confirmed } }

    /// Changes a resource; the answers from now on have the next version.
    func change(_ path: String) { state.withLock { $0.versions[path, default: 0] += 1 } }

    func version(_ path: String) -> Int { state.withLock { $0.versions[path] ?? 0 } }

    func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        let path = String(request.url.dropFirst(Machine.host.count))
        let (version, isConfirmed) = state.withLock { state in
            let version = state.versions[path] ?? 0
            let isConfirmed = request.fields["If-None-Match"] == "\"\(version)\""
            state.count += 1
            state.confirmed += isConfirmed ? 1 : 0
            return (version, isConfirmed)
        }
        let fields: HeaderFields = [
            "Cache-Control": "max-age=3600, stale-while-revalidate=3600", "ETag": "\"\(version)\"",
            "Cache-Tag": "all, tag\(path.dropFirst())",
        ]
        return isConfirmed
            ? OriginResponse(status: 304, fields: fields)
            : .whole(fields: fields, body: "\(version)")
    }
}

extension FleetSurroundings.Patience {
    /// So long that a busy machine does not change what a test sees.
    static var ofATest: Self {
        var patience = Self()
        patience.replyLimit = .seconds(5)
        patience.spentNanosecondsMax = 5_000_000_000
        patience.waitNanosecondsMax = 60_000_000_000
        return patience
    }
}

/// One machine of a fleet: a cache with a place in it.
struct Machine: Sendable {
    static let host = "http://h.test"

    let cache: HTTPCache

    init(
        _ url: String,
        _ origin: any Origin,
        disk: TemporaryFolder? = nil,
        options: RedisFleetOptions = RedisFleetOptions(),
        patience: FleetSurroundings.Patience = .ofATest,
        onEvent: (@Sendable (CacheEvent) -> Void)? = nil
    ) async throws {
        var configuration = HTTPCache.Configuration(memory: .megabytes(16), mode: .shared)
        if let disk {
            configuration.backing = .disk(path: disk.path + "/cache", capacity: .megabytes(64))
        }
        configuration.hooks.onEvent = onEvent
        cache = try await HTTPCache(
            configuration: configuration,
            origin: origin,
            fleet: Fleet {
                try RedisFleet(
                    RedisURL(url),
                    options,
                    FleetSurroundings(patience: patience)
                )
            }
        )
    }

    /// A machine whose entries are shared.
    static func sharing(
        _ url: String,
        _ origin: any Origin,
        disk: TemporaryFolder? = nil,
        patience: FleetSurroundings.Patience = .ofATest
    ) async throws -> Machine {
        var options = RedisFleetOptions()
        options.shares = .entries
        let machine = try await Machine(
            url,
            origin,
            disk: disk,
            options: options,
            patience: patience
        )
        guard await machine.isLinked() else {
            throw RedisFailure("The machine does not read the log")
        }
        return machine
    }

    func answer(_ path: String, _ fields: HeaderFields = [:]) async throws -> CacheResponse {
        var request = CacheRequest(url: Self.host + path)
        request.fields = fields
        return try await cache.respond(to: request)
    }

    /// The version of the body that this machine serves.
    func version(_ path: String) async throws -> Int {
        let response = try await cache.respond(to: CacheRequest(url: Self.host + path))
        return Int(try await response.body.collectText()) ?? -1
    }

    var counts: FleetStatistics {
        get async { await cache.statistics.fleet ?? FleetStatistics() }
    }

    /// Purges, and sends the purge again if the machine is too busy to append it in time.
    @discardableResult
    func purge(
        _ target: PurgeTarget,
        waitingFor wait: PurgeWait = .log
    ) async throws -> FleetReceipt? {
        try await repeated { try await cache.purge(target, waitingFor: wait).receipt }
    }

    /// Purges targets together; if they are sent again, the log has some of them twice.
    func purge(_ targets: [PurgeTarget]) async throws {
        _ = try await repeated { try await cache.purge(targets).receipt }
    }

    private func repeated(
        _ purge: () async throws -> FleetReceipt?
    ) async throws -> FleetReceipt? {
        for _ in 0..<20 {
            do {
                return try await purge()
            } catch let error as CacheError {
                guard error.code == .purgeNotShared else { throw error }
            }
        }
        return try await purge()
    }

    /// Waits until the machine reads the log.
    func isLinked() async -> Bool { await eventually { await counts.isLinked } }
}

extension BodyStream {
    /// The whole body as text.
    func collectText() async throws -> String {
        try await collect(upTo: .megabytes(1)).text
    }
}
