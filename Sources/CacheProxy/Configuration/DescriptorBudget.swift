/// Divides the files that a process may open between clients, origins and the proxy itself.
///
/// An eighth, or more if the workers need more, stays for listeners, the administration, the log, a
/// fleet and the disk cache. Of the rest, clients get five sevenths and origins two, because many
/// clients are idle; if one side needs less, the other gets the rest.
struct DescriptorBudget: Hashable, Sendable {
    /// The files of a proxy without connections, beside those of its workers.
    private static let ownCount = 32
    private static let ownCountOfWorker = 4
    /// With fewer files for connections, nothing is served.
    private static let connectionsMin = 8

    /// Connections of clients, over all workers.
    let clients: Int
    /// Connections to all origins.
    let origins: Int

    /// - Throws: A line that says how many files are needed.
    init(
        openFilesMax: Int,
        workers: Int,
        clientsWanted: Int,
        originsWanted: Int
    ) throws(ConfigurationError) {
        let own = Self.ownCount + Self.ownCountOfWorker * workers
        guard openFilesMax >= own + Self.connectionsMin else {
            throw ConfigurationError(
                .filesTooFew,
                "The process may open \(openFilesMax) files, and needs "
                    + "\(own + Self.connectionsMin); raise the limit with ulimit -n"
            )
        }
        let shared = openFilesMax - max(own, openFilesMax / 8)
        let left = max(shared / 7 * 5, shared - originsWanted)
        clients = max(1, min(clientsWanted, left))
        origins = max(1, min(originsWanted, shared - clients))
    }
}

extension ProxyConfiguration {
    /// The same with no more connections than `openFilesMax` allows.
    func bounded(openFilesMax: Int) throws(ConfigurationError) -> ProxyConfiguration {
        let clientsWanted = connectionsMax * workers
        let budget = try DescriptorBudget(
            openFilesMax: openFilesMax,
            workers: workers,
            clientsWanted: clientsWanted,
            // Without a limit of its own, each client can hold one connection to an origin.
            originsWanted: originConnectionsMax.map { $0 * max(1, origins.count) } ?? clientsWanted
        )
        var bounded = self
        bounded.connectionsMax = max(1, budget.clients / workers)
        bounded.originConnectionsTotalMax = budget.origins
        return bounded
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
