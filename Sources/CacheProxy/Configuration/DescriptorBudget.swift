import CacheEngine
import CurlOrigin
import Platform

/// Divides the files that a process may open between clients, origins and the proxy itself.
///
/// An eighth, or more if the workers and the segments on disk need more, stays for listeners, the
/// administration, the log, a fleet and the disk cache. Of the rest, clients get five sevenths and
/// origins two, because many clients are idle; if one side needs less, the other gets the rest. An
/// eighth of the origins' part, or more if requests need less, is for connections that are kept.
struct DescriptorBudget: Hashable, Sendable {
    /// The files of a proxy without connections, beside those of its workers.
    private static let ownCount = 32
    private static let ownCountOfWorker = 4
    /// With fewer files for connections, nothing is served.
    private static let connectionsMin = 8
    /// A worker serves nothing without a client, and little without an origin.
    private static let connectionsMinOfWorker = 2
    /// The event loops that keep connections to origins, beside those of the workers: libcurl's, and
    /// the one for tasks of no worker.
    private static let otherLoops = 2
    /// Idle connections of one event loop, however many files there are.
    private static let idleMaxOfLoop = CurlConfiguration.Connections().maximumIdle

    /// Connections of clients, over all workers.
    let clients: Int
    /// Connections to all origins that requests use at once.
    let origins: Int
    /// Idle connections to origins on each event loop.
    let idleOfLoop: Int

    /// `segments` is the number of files that the disk cache keeps open.
    ///
    /// - Throws: A line that says how many files are needed.
    init(
        openFilesMax: Int,
        workers: Int,
        segments: Int = 0,
        clientsWanted: Int,
        originsWanted: Int
    ) throws(ConfigurationError) {
        let own = Self.ownCount + Self.ownCountOfWorker * workers + segments
        let needed = own + max(Self.connectionsMin, Self.connectionsMinOfWorker * workers)
        guard openFilesMax >= needed else {
            throw ConfigurationError(
                .filesTooFew,
                "The process may open \(openFilesMax) files, and needs \(needed); "
                    + "raise the limit with ulimit -n"
            )
        }
        let shared = openFilesMax - max(own, openFilesMax / 8)
        let loops = workers + Self.otherLoops
        // Only a connection that was in use is kept, and any one loop may have used them all.
        let idleWanted = min(Self.idleMaxOfLoop, originsWanted) * loops
        let left = max(workers, shared / 7 * 5, shared - originsWanted - idleWanted)
        clients = max(1, min(clientsWanted, left))
        let forOrigins = shared - clients
        idleOfLoop = min(idleWanted, max(forOrigins - originsWanted, forOrigins / 8)) / loops
        origins = max(1, min(originsWanted, forOrigins - idleOfLoop * loops))
    }
}

extension ProxyConfiguration {
    /// The same with no more connections than `openFilesMax` allows.
    ///
    /// `running` is the configuration of the running process, whose workers and disk stay.
    func bounded(
        openFilesMax: Int,
        running: ProxyConfiguration? = nil,
        processors: Int = Machine.processorCount
    ) throws(ConfigurationError) -> ProxyConfiguration {
        let fixed = running ?? self
        let clientsWanted = connectionsMax * fixed.workers
        let budget = try DescriptorBudget(
            openFilesMax: openFilesMax,
            workers: fixed.workers,
            segments: fixed.segmentsMax(openFilesMax, processors),
            clientsWanted: clientsWanted,
            // Without a limit of its own, each client can hold one connection to an origin.
            originsWanted: originConnectionsMax.map { $0 * max(1, origins.count) } ?? clientsWanted
        )
        var bounded = self
        bounded.connectionsMax = max(1, budget.clients / fixed.workers)
        bounded.originConnectionsTotalMax = budget.origins
        bounded.originConnectionsIdleMax = budget.idleOfLoop
        return bounded
    }

    /// The files that the disk cache keeps open.
    private func segmentsMax(_ openFilesMax: Int, _ processors: Int) -> Int {
        guard let diskDirectory else { return 0 }
        return DiskGeometry.segmentsMax(
            directory: diskDirectory,
            capacityBytes: diskSize.bytes,
            openFilesMax: openFilesMax,
            processors: processors
        )
    }

    /// A line about the connections that `openFilesMax` takes away from `wanted`; `nil` if it takes
    /// none.
    func note(wanted: ProxyConfiguration, openFilesMax: Int) -> String? {
        let origins = originConnectionsTotalMax ?? .max
        let originsWanted =
            wanted.originConnectionsMax.map { $0 * max(1, wanted.origins.count) }
            ?? wanted.connectionsMax * wanted.workers
        guard connectionsMax < wanted.connectionsMax || origins < originsWanted else { return nil }
        return "\(connectionsMax) connections per worker and \(origins) to origins, because the "
            + "process may open \(openFilesMax) files; raise the limit with ulimit -n"
    }
}
