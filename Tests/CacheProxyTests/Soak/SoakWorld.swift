import CacheTestSupport
import Platform
import Synchronization

/// The pages of the soak's origin, what the clients know of them, and the complaints.
final class SoakWorld: Sendable {
    /// The versions of one variant that clients have got as fresh.
    private struct Seen {
        private var newest = 0
        private var sinceNanoseconds: UInt64 = 0
        private var before = 0

        /// The newest of a second ago.
        ///
        /// Until then a response that the origin sent before may arrive after it.
        func settled() -> Int {
            monotonicNanoseconds() - sinceNanoseconds > 1_000_000_000 ? newest : before
        }

        mutating func note(_ version: Int) {
            guard version > newest else { return }
            before = settled()
            newest = version
            sinceNanoseconds = monotonicNanoseconds()
        }
    }

    private struct State {
        /// The versions at the origin.
        var newest = [Int](repeating: 0, count: SoakPage.count)
        /// The oldest versions that clients may still get.
        var oldest = [Int](repeating: 0, count: SoakPage.count)
        /// What clients have got as fresh, by variant.
        var seen: [String: Seen] = [:]
        var faults = SeededRandom(seed: 1)
        var isFaulty = true
        var wrong: [String] = []
        var good = 0
        /// The latest events of each page, to explain a complaint.
        var history = [[String]](repeating: [], count: SoakPage.count)

        /// Replaces a page by its next version.
        mutating func change(_ page: SoakPage) -> Int {
            newest[page.number] += 1
            return newest[page.number]
        }

        mutating func tell(_ event: String, of page: SoakPage) {
            history[page.number].append("\(monotonicNanoseconds() / 1_000_000) \(event)")
            if history[page.number].count > 40 { history[page.number].removeFirst() }
        }
    }

    private let state = Mutex(State())

    /// The complaints, and the number of responses without one.
    var result: (wrong: [String], good: Int) { state.withLock { ($0.wrong, $0.good) } }

    func version(of page: SoakPage) -> Int { state.withLock { $0.newest[page.number] } }

    func change(_ page: SoakPage) -> Int { state.withLock { $0.change(page) } }

    /// From now on, no client may get an older version.
    func confirm(_ version: Int, of page: SoakPage) {
        state.withLock { $0.oldest[page.number] = max($0.oldest[page.number], version) }
    }

    func endFaults() { state.withLock { $0.isFaulty = false } }

    func request(using random: inout SeededRandom) -> SoakRequest {
        var request = SoakRequest(using: &random)
        state.withLock { state in
            let number = request.page.number
            request.newest = state.newest[number]
            request.oldest = state.oldest[number]
            request.oldestFresh = state.seen[request.variant]?.settled() ?? 0
        }
        return request
    }

    func judge(_ response: WireResponse, to request: SoakRequest, of client: UInt64) {
        let (status, version) = (response["Cache-Status"] ?? "", response["ETag"] ?? "")
        tell("\(client) got \(response.status) \(version) \(status)", of: request.page)
        if let fault = request.fault(of: response) { return complain(fault, of: request.page) }
        guard response.status < 500 else { return }
        state.withLock { state in
            state.good += 1
            guard let version = response.version, response.isFresh else { return }
            state.seen[request.variant, default: Seen()].note(version)
        }
        if request.kind == .change, let version = response.version {
            confirm(version, of: request.page)
        }
    }

    /// Notes a complaint about a page, with what happened to it before.
    func complain(_ complaint: String, of page: SoakPage) {
        state.withLock { state in
            let lines = ["page \(page.number): \(complaint)"] + state.history[page.number]
            state.wrong.append(lines.joined(separator: "\n    "))
        }
    }

    func tell(_ event: String, of page: SoakPage) { state.withLock { $0.tell(event, of: page) } }

    func tellAll(_ event: String) {
        for number in 0..<SoakPage.count { tell(event, of: SoakPage(number)) }
    }

    // MARK: The origin

    func answer(_ request: WireOrigin.Request, on socket: WireSocket) throws -> WireOrigin.Then {
        guard let page = SoakPage(target: request.target) else { return try socket.answer(404) }
        let isChange = request.method == "POST"
        let (version, fault) = state.withLock { state in
            let fault = Int.random(in: 0..<100, using: &state.faults)
            let version = isChange ? state.change(page) : state.newest[page.number]
            let asked = "\(request.head), tag \(request["If-None-Match"] ?? "none")"
            state.tell("origin has \(version): \(asked), fault \(fault)", of: page)
            return (version, state.isFaulty ? fault : 99)
        }
        let text = isChange ? "" : page.body(version, form: request["X-Form"] ?? "")
        let fields = page.fields(version)
        let isHead = request.method == "HEAD"
        // Meanwhile others change the page.
        if fault >= 60 { poll(nil, 0, Int32(fault - 60)) }
        switch fault {
        case 0..<2: return .end
        case 2..<4: return .reset
        case 4: return try socket.answer(503, [], "down", isHead: isHead)
        case 5..<7 where !isHead:
            try socket.write(
                "HTTP/1.1 200 OK\r\nContent-Length: \(text.utf8.count + 10)\r\n\r\n\(text)"
            )
            return .end
        case 7..<30 where !isHead && !isChange:
            try socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n")
            try socket.write(fields.map { $0 + "\r\n" }.joined() + "\r\n")
            // A client may leave between the head and the body.
            if fault < 12 { poll(nil, 0, 5) }
            let size = String(text.utf8.count, radix: 16)
            try socket.write("\(size)\r\n\(text)\r\n0\r\n\r\n")
            return .keep
        default:
            if request["If-None-Match"] == "\"\(version)\"", !isChange {
                return try socket.answer(304, fields)
            }
            return try socket.answer(200, fields, text, isHead: isHead)
        }
    }
}
