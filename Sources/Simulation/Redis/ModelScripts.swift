import CacheEngineRedis
import RESP

/// One run of a script of the fleet on a model of Redis.
///
/// The model cannot read Lua: each script is written again here, and a test compares both on a real
/// server.
struct ModelScript {
    /// The server on which a script runs.
    struct Server {
        var runID: String
        var replicationID: String
        var replicas: Int
        /// The server has no memory left.
        var isFull = false
        var isReadOnly = false
        var nowMilliseconds: Int64
    }

    private enum Name: CaseIterable {
        case open, append, publish, forget, lease

        var script: FleetScript {
            switch self {
            case .open: .open
            case .append: .append
            case .publish: .publish
            case .forget: .forget
            case .lease: .lease
            }
        }
    }

    private let name: Name
    private let keys: [String]
    private let words: [[UInt8]]
    /// The digest of the script.
    let digest: String

    /// Reads EVAL or EVALSHA; `nil` if it names no script of the fleet.
    init?(_ command: [[UInt8]]) {
        guard command.count > 3, let count = Int(Self.text(command[2])), count == 2,
            command.count >= 5
        else { return nil }
        let text = Self.text(command[1])
        let name = Name.allCases.first {
            "\($0.script.digest)" == text || "\($0.script.text)" == text
        }
        guard let name else { return nil }
        self.name = name
        digest = "\(name.script.digest)"
        keys = command[3..<5].map(Self.text)
        words = Array(command[5...])
    }

    func run(on data: inout ModelData, _ server: Server) -> RESPValue {
        var run = Run(keys: keys, words: words, data: ModelData(), server: server)
        // Moved, because a copy of a long log takes long. The steps before a failure stay.
        swap(&run.data, &data)
        defer { swap(&run.data, &data) }
        do throws(ModelData.Failure) {
            switch name {
            case .open: return try run.open()
            case .append: return try run.append()
            case .publish: return try run.publish()
            case .forget: return try run.forget()
            case .lease: return try run.lease()
            }
        } catch {
            return .error(error.text)
        }
    }

    private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}

/// The steps of the scripts.
private struct Run {
    let keys: [String]
    let words: [[UInt8]]
    var data: ModelData
    let server: ModelScript.Server
    /// Whether the script has written: from then on a full server lets it go on.
    var hasWritten = false

    private var now: Int64 { server.nowMilliseconds }
    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    /// Called before each step that writes.
    private mutating func write(grows: Bool = true) throws(ModelData.Failure) {
        if server.isReadOnly {
            throw ModelData.Failure(
                text: "READONLY You can't write against a read only replica."
            )
        }
        if grows, server.isFull, !hasWritten {
            throw ModelData.Failure(
                text: "OOM command not allowed when used memory > 'maxmemory'."
            )
        }
        hasWritten = true
    }

    // MARK: The log

    mutating func open() throws(ModelData.Failure) -> RESPValue {
        var meta = try data.hash(keys[0], now)
        let stream = try data.stream(keys[1], now)
        if meta["inc"] == nil {
            let top = stream?.entries.last?.id.text ?? "0-0"
            try write()
            let fields = [("inc", words[0]), ("last", Array(top.utf8)), ("lastid", [])]
            try data.setFields(fields, of: keys[0], now)
            meta = ["inc": words[0], "last": Array(top.utf8), "lastid": []]
        }
        var found: [UInt8] = []
        if !words[1].isEmpty, let id = ModelStreamID(text(words[1])),
            let entry = stream?.entry(at: id)
        {
            found = entry["i"] ?? [UInt8(ascii: "?")]
        }
        var floor = meta["last"]
        if let first = stream?.entries.first { floor = first["p"] ?? Array(first.id.text.utf8) }
        return .array([
            meta["inc"].map { .bulk($0) } ?? .nilBulk, meta["last"].map { .bulk($0) } ?? .nilBulk,
            .bulk(meta["lastid"] ?? []), .bulk(found), floor.map { .bulk($0) } ?? .nilBulk,
            .integer(Int64(server.replicas)),
        ])
    }

    mutating func append() throws(ModelData.Failure) -> RESPValue {
        let meta = try data.hash(keys[0], now)
        let incarnation = meta["inc"] ?? words[0]
        let top = try data.stream(keys[1], now)?.entries.last?.id.text
        let last = meta["last"].map(text) ?? top ?? "0-0"
        var epoch = meta["epoch"].flatMap { UInt64(text($0)) } ?? ModelStreamID(last)?.first ?? 0
        var number = meta["seq"].flatMap { UInt64(text($0)) } ?? 0
        let seen = UInt64(text(words[1])) ?? 0
        let isOfAnotherTerm = meta["repl"].map { text($0) != server.replicationID } ?? false
        if meta["run"].map(text) != server.runID || isOfAnotherTerm || seen > epoch {
            (epoch, number) = (max(epoch, seen) + 1, 0)
        }
        let id = ModelStreamID(first: epoch, second: number + 1)
        try write()
        let fields = [("i", words[3]), ("k", words[4]), ("s", words[5]), ("v", words[6])]
            .flatMap { [Array($0.0.utf8), $0.1] }
        try data.append(id, fields + [Array("p".utf8), Array(last.utf8)], to: keys[1], now)
        let pairs = [
            ("inc", incarnation), ("epoch", Array(String(epoch).utf8)),
            ("seq", Array(String(number + 1).utf8)), ("run", Array(server.runID.utf8)),
            ("repl", Array(server.replicationID.utf8)), ("last", Array(id.text.utf8)),
            ("lastid", words[3]),
        ]
        try data.setFields(pairs, of: keys[0], now)
        data.appended.append(
            AppendedPurge(
                id: words[3],
                incarnation: incarnation,
                position: id,
                isSoft: text(words[4]) == "s",
                scope: text(words[5]),
                value: words[6]
            )
        )
        return .array([.bulk(Array(id.text.utf8)), .integer(Int64(server.replicas))])
    }

    // MARK: The store

    mutating func publish() throws(ModelData.Failure) -> RESPValue {
        let lease = try data.string(keys[1], now)
        let isThere = data.item(keys[0], now) != nil
        let mayWrite =
            words[0].isEmpty
            ? lease != [UInt8(ascii: "!")] && (text(words[3]) == "1" || !isThere)
            : lease == words[0] || (lease == nil && !isThere)
        guard mayWrite else { return .integer(0) }
        try write()
        data.items[keys[0]] = nil
        data.put(.string(words[1]), at: keys[0], expiresAt: now + (Int64(text(words[2])) ?? 0))
        if lease == words[0] { data.remove(keys[1], now) }
        return .integer(1)
    }

    mutating func forget() throws(ModelData.Failure) -> RESPValue {
        try write(grows: false)
        data.remove(keys[0], now)
        try write()
        giveUp(milliseconds: words[0])
        return .integer(1)
    }

    mutating func lease() throws(ModelData.Failure) -> RESPValue {
        guard try data.string(keys[1], now) == words[0] else { return .integer(0) }
        try write(grows: false)
        switch text(words[1]) {
        case "keep":
            let expiresAt = now + (Int64(text(words[2])) ?? 0)
            data.items[keys[1]]?.expiresAt = expiresAt
        case "skip":
            data.remove(keys[0], now)
            giveUp(milliseconds: words[2])
        default: data.remove(keys[1], now)
        }
        return .integer(1)
    }

    private mutating func giveUp(milliseconds: [UInt8]) {
        data.items[keys[1]] = nil
        let expiresAt = now + (Int64(text(milliseconds)) ?? 0)
        data.put(.string([UInt8(ascii: "!")]), at: keys[1], expiresAt: expiresAt)
    }
}
