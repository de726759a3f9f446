import Synchronization

/// The counters of a worker.
///
/// Its thread alone writes them; every thread may read them.
final class WorkerCounters: Sendable {
    enum Counter: Int, CaseIterable, Sendable {
        case connections
        case connectionsOpen
        case requests
        case hits
        case exchanges
        case refused
        case aborted
        case timeouts
        /// Connections of peers that may not connect.
        case peersRefused
        /// Connections whose PROXY header was missing, invalid or late.
        case headerFaults
        /// Idle connections that were closed for new ones.
        case displaced
        /// The most bytes read and sent between two waits for events.
        case turnBytesMax
        case bytesOut
        case informational
        case successful
        case redirected
        case clientErrors
        case serverErrors
        case otherStatuses
    }

    private let cells: [Cell] = Counter.allCases.map { _ in Cell() }

    private final class Cell: Sendable {
        let value = Atomic(0)
    }

    subscript(counter: Counter) -> Int {
        cells[counter.rawValue].value.load(ordering: .relaxed)
    }

    /// There is one writer, so a plain load and store suffice.
    func add(_ amount: Int, to counter: Counter) {
        let cell = cells[counter.rawValue]
        cell.value.store(cell.value.load(ordering: .relaxed) &+ amount, ordering: .relaxed)
    }

    func raise(_ counter: Counter, to value: Int) {
        let cell = cells[counter.rawValue]
        guard value > cell.value.load(ordering: .relaxed) else { return }
        cell.value.store(value, ordering: .relaxed)
    }

    func count(status: Int) {
        switch status {
        case 200..<300: add(1, to: .successful)
        case 300..<400: add(1, to: .redirected)
        case 400..<500: add(1, to: .clientErrors)
        case 500..<600: add(1, to: .serverErrors)
        case 100..<200: add(1, to: .informational)
        default: add(1, to: .otherStatuses)
        }
    }
}
