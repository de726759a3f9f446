import CacheEngine

/// An entry of this machine, and perhaps the index of its resource, on their way into Redis.
struct Publication: Sendable {
    /// The entry comes first.
    let copies: [SharedCopy]
    /// The lease of each copy; empty if this machine has none.
    let tokens: [[UInt8]]
    /// Whether the records may replace another machine's, although this machine had no lease.
    var mayReplace: Bool
    /// Hides the older record from this machine.
    let mark: PurgeHorizon.Mark
    /// The log that the positions of the copies belong to.
    let log: [UInt8]
    /// The names of records in that log.
    let keys: StoreKeys
    /// The moment, in the fleet's time.
    let milliseconds: Int64

    var key: SharedKey { copies[0].key }
}

/// The publications of this machine that Redis has not confirmed yet.
///
/// Those of one resource are sent one at a time in the order of storing, so that no record is
/// replaced by an older one. The order holds for those that Redis confirms in time: it may still run
/// another one later, behind a newer one. Of one entry only the newest waits.
struct PublicationQueue {
    /// Those that wait behind the one that is sent, by resource.
    private var waiting: [[UInt8]: [Publication]] = [:]

    /// Adds a publication; returns whether it is to be sent now, and the older one that it replaces.
    mutating func add(_ publication: Publication) -> (isNext: Bool, replaced: Publication?) {
        let resource = publication.key.resource
        guard var queue = waiting[resource] else {
            waiting[resource] = []
            return (true, nil)
        }
        let older = queue.firstIndex { $0.key == publication.key }.map { queue.remove(at: $0) }
        var publication = publication
        if let older, older.mayReplace { publication.mayReplace = true }
        queue.append(publication)
        waiting[resource] = queue
        return (false, older)
    }

    /// The publication was sent, or failed; returns the next one of its resource.
    mutating func next(behind publication: Publication) -> Publication? {
        let resource = publication.key.resource
        guard var queue = waiting[resource], !queue.isEmpty else {
            waiting[resource] = nil
            return nil
        }
        defer { waiting[resource] = queue }
        return queue.removeFirst()
    }
}
