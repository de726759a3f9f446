/// Divides the files that a process may open between clients, origins and the proxy itself.
///
/// An eighth stays for listeners, the administration, the log and the disk cache. Clients get five
/// eighths and origins a quarter, because many clients are idle; if one side needs less, the other
/// gets the rest.
struct DescriptorBudget: Hashable, Sendable {
    /// Connections of clients, over all workers.
    let clients: Int
    /// Connections to all origins.
    let origins: Int

    init(openFilesMax: Int, clientsWanted: Int, originsWanted: Int) {
        let eighth = max(1, openFilesMax / 8)
        let shared = eighth * 7
        let left = max(eighth * 5, shared - originsWanted)
        clients = max(1, min(clientsWanted, left))
        origins = max(1, min(originsWanted, shared - clients))
    }
}

extension ProxyConfiguration {
    /// The same with no more connections than `openFilesMax` allows.
    func bounded(openFilesMax: Int) -> ProxyConfiguration {
        let clientsWanted = connectionsMax * workers
        let budget = DescriptorBudget(
            openFilesMax: openFilesMax,
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
