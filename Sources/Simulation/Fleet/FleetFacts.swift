import CacheEngine

/// One response of the origin of a simulated fleet.
struct FleetContent: Sendable {
    let serial: Int
    let path: FleetPath
    /// The language, for a path that varies.
    let language: String
    let caller: String
    let isBroken: Bool
    /// The moments of the requests that it answered or was confirmed for, with the true time.
    var askedAt: [Int: Int64]

    var tag: String { "\"\(path.rawValue.dropFirst())-\(serial)\"" }
}

/// The responses that a purge concerns.
struct FleetScope: Sendable {
    enum Target: Hashable, Sendable {
        /// All variants of a resource.
        case path(FleetPath)
        case tag(String)
        case everything
    }

    let target: Target
    let isSoft: Bool

    /// The identity of a purge, short enough to be read.
    static func name(_ id: [UInt8]) -> String {
        id.suffix(2).map { String($0) }.joined(separator: ".")
    }

    func covers(_ content: FleetContent) -> Bool {
        switch target {
        case .path(let path): path == content.path
        case .tag(let tag): content.path.tags.contains(tag)
        case .everything: true
        }
    }

    /// Whether a response that is covered may still be served in this way.
    func permits(_ answer: FleetAnswer) -> Bool {
        isSoft && target != .everything && [.stale, .fallback].contains(answer.source)
    }

    init(_ target: Target, isSoft: Bool) {
        self.target = target
        self.isSoft = isSoft
    }

    /// The scope of a purge in the log; a key names its URL.
    init(_ purge: AppendedPurge) {
        let text = String(decoding: purge.value, as: UTF8.self)
        let path = FleetPath.allCases.first { text.contains($0.rawValue) }
        switch purge.scope {
        case "t": target = .tag(text)
        case "k": target = path.map { .path($0) } ?? .everything
        default: target = .everything
        }
        isSoft = purge.isSoft
    }
}

/// A purge that a machine was asked for.
struct OwnPurge: Sendable {
    let process: Int
    let scope: FleetScope
    let began: Int
    /// Whether it concerns the machine alone: an unsafe method.
    let isUnsafeMethod: Bool
    /// When the machine had applied it.
    var ended: Int?
    /// The purge in the log, if there is a receipt.
    var id: [UInt8]?
}
