import RESP

/// The keys of a server of Redis, with the commands that a fleet uses: a model in place of a server.
///
/// A pure value: a copy of it is a replica. Times are milliseconds since 1970 by the server's clock.
package struct ModelData: Sendable {
    enum Content: Sendable {
        case string([UInt8])
        case hash([String: [UInt8]])
        case stream(ModelStream)
    }

    struct Item: Sendable {
        var content: Content
        var expiresAt: Int64?
        /// The number of the item in the order of their creation, for a choice that names do not
        /// decide.
        let number: Int
    }

    /// An error reply that ends a command or a script.
    struct Failure: Error {
        let text: String

        static let wrongType = Failure(
            text: "WRONGTYPE Operation against a key holding the wrong kind of value"
        )
        static let syntax = Failure(text: "ERR syntax error")
        static let oldID = Failure(
            text: "ERR The ID specified in XADD is equal or smaller than the target stream top item"
        )
    }

    /// The items, also those that have expired; `item(_:)` leaves these out.
    var items: [String: Item] = [:]
    private var itemCount = 0
    /// The identities of all purges that were ever appended here, with their positions.
    var appended: [AppendedPurge] = []

    package init() {}

    func item(_ key: String, _ now: Int64) -> Item? {
        guard let item = items[key], item.expiresAt ?? .max > now else { return nil }
        return item
    }

    func string(_ key: String, _ now: Int64) throws(Failure) -> [UInt8]? {
        guard let item = item(key, now) else { return nil }
        guard case .string(let bytes) = item.content else { throw .wrongType }
        return bytes
    }

    func hash(_ key: String, _ now: Int64) throws(Failure) -> [String: [UInt8]] {
        guard let item = item(key, now) else { return [:] }
        guard case .hash(let fields) = item.content else { throw .wrongType }
        return fields
    }

    func stream(_ key: String, _ now: Int64) throws(Failure) -> ModelStream? {
        guard let item = item(key, now) else { return nil }
        guard case .stream(let stream) = item.content else { throw .wrongType }
        return stream
    }

    mutating func put(_ content: Content, at key: String, expiresAt: Int64? = nil) {
        itemCount += 1
        let number = items[key]?.number ?? itemCount
        items[key] = Item(content: content, expiresAt: expiresAt, number: number)
    }

    mutating func setFields(_ pairs: [(String, [UInt8])], of key: String, _ now: Int64)
        throws(Failure)
    {
        var fields = try hash(key, now)
        for (name, value) in pairs { fields[name] = value }
        put(.hash(fields), at: key, expiresAt: item(key, now)?.expiresAt)
    }

    /// Appends an entry to the stream of a key, and makes the stream if the key has none.
    mutating func append(
        _ id: ModelStreamID,
        _ fields: [[UInt8]],
        to key: String,
        _ now: Int64
    ) throws(Failure) {
        var stream = try stream(key, now) ?? ModelStream()
        // The only reference to the entries, so that they are not copied.
        items[key]?.content = .string([])
        let isNewest = stream.append(id, fields)
        put(.stream(stream), at: key)
        guard isNewest else { throw .oldID }
    }

    @discardableResult
    mutating func remove(_ key: String, _ now: Int64) -> Bool {
        let isThere = item(key, now) != nil
        items[key] = nil
        return isThere
    }
}

/// A purge that a model's log was given.
struct AppendedPurge: Hashable, Sendable {
    /// 16 bytes.
    let id: [UInt8]
    let incarnation: [UInt8]
    let position: ModelStreamID
    let isSoft: Bool
    let scope: String
    let value: [UInt8]
}

// MARK: - Commands

extension ModelData {
    /// The commands that a full server refuses.
    static let growing: Set<String> = ["SET", "HSET", "XADD"]
    /// The commands that a replica refuses.
    static let writing: Set<String> = growing.union(["DEL", "HDEL", "PEXPIRE"])

    /// Runs one command that is no script; `now` is the server's time in microseconds.
    mutating func run(_ words: [[UInt8]], nowMicroseconds: Int64) -> RESPValue {
        do throws(Failure) {
            return try reply(to: words, nowMicroseconds)
        } catch {
            return .error(error.text)
        }
    }

    private mutating func reply(
        to words: [[UInt8]],
        _ microseconds: Int64
    ) throws(Failure) -> RESPValue {
        let now = microseconds / 1_000
        let texts = words.map { String(decoding: $0, as: UTF8.self) }
        guard let name = texts.first?.uppercased() else { throw .syntax }
        guard name == "PING" || name == "TIME" || texts.count > 1 else { throw .syntax }
        switch name {
        case "PING": return .simple("PONG")
        case "TIME":
            let parts = [microseconds / 1_000_000, microseconds % 1_000_000]
            return .array(parts.map { .bulk(Array(String($0).utf8)) })
        case "GET": return try string(texts[1], now).map { .bulk($0) } ?? .nilBulk
        case "SET": return try set(texts, words, now)
        case "DEL":
            return .integer(Int64(texts.dropFirst().count { remove($0, now) }))
        case "EXISTS": return .integer(item(texts[1], now) == nil ? 0 : 1)
        case "PEXPIRE":
            guard texts.count == 3, let milliseconds = Int64(texts[2]) else { throw .syntax }
            guard item(texts[1], now) != nil else { return .integer(0) }
            items[texts[1]]?.expiresAt = now + milliseconds
            return .integer(1)
        case "HMGET":
            let fields = try hash(texts[1], now)
            return .array(texts.dropFirst(2).map { fields[$0].map { .bulk($0) } ?? .nilBulk })
        case "HGETALL":
            let fields = try hash(texts[1], now).sorted { $0.key < $1.key }
            return .array(fields.flatMap { [.bulk(Array($0.key.utf8)), .bulk($0.value)] })
        case "HSET":
            guard texts.count == 4 else { throw .syntax }
            let isNew = try hash(texts[1], now)[texts[2]] == nil
            try setFields([(texts[2], words[3])], of: texts[1], now)
            return .integer(isNew ? 1 : 0)
        case "HDEL": return try removeFields(texts.dropFirst(2), of: texts[1], now)
        case "XREAD": return try read(texts, now)
        case "XRANGE", "XREVRANGE": return try range(texts, isReversed: name == "XREVRANGE", now)
        default: throw Failure(text: "ERR unknown command '\(name)'")
        }
    }

    private mutating func removeFields(
        _ names: ArraySlice<String>,
        of key: String,
        _ now: Int64
    ) throws(Failure) -> RESPValue {
        var fields = try hash(key, now)
        let count = fields.count
        for name in names { fields[name] = nil }
        if fields.count < count {
            items[key]?.content = .hash(fields)
            if fields.isEmpty { items[key] = nil }
        }
        return .integer(Int64(count - fields.count))
    }

    private mutating func set(
        _ texts: [String],
        _ words: [[UInt8]],
        _ now: Int64
    ) throws(Failure) -> RESPValue {
        guard texts.count >= 3 else { throw .syntax }
        var (isNew, expiresAt): (Bool, Int64?) = (false, nil)
        var index = 3
        while index < texts.count {
            switch texts[index].uppercased() {
            case "NX": isNew = true
            case "PX":
                guard index + 1 < texts.count, let milliseconds = Int64(texts[index + 1]),
                    milliseconds > 0
                else { throw Failure(text: "ERR invalid expire time in 'set' command") }
                expiresAt = now + milliseconds
                index += 1
            default: throw .syntax
            }
            index += 1
        }
        guard !isNew || item(texts[1], now) == nil else { return .nilBulk }
        items[texts[1]] = nil
        put(.string(words[2]), at: texts[1], expiresAt: expiresAt)
        return .simple("OK")
    }

    /// XREAD COUNT n [BLOCK milliseconds] STREAMS key id, without waiting.
    private func read(_ texts: [String], _ now: Int64) throws(Failure) -> RESPValue {
        guard let place = texts.firstIndex(of: "STREAMS"), texts.count == place + 3,
            let after = ModelStreamID(texts[place + 2]), texts[1] == "COUNT",
            let count = Int(texts[2])
        else { throw .syntax }
        guard let stream = try stream(texts[place + 1], now) else { return .nilArray }
        let entries = stream.entries(after: after, count: count)
        guard !entries.isEmpty else { return .nilArray }
        return .array([
            .array([.bulk(Array(texts[place + 1].utf8)), .array(entries.map(\.reply))])
        ])
    }

    /// X[REV]RANGE key from to [COUNT n]; the bounds are `-`, `+`, an ID, or `(` and an ID.
    private func range(
        _ texts: [String],
        isReversed: Bool,
        _ now: Int64
    ) throws(Failure) -> RESPValue {
        guard texts.count == 4 || texts.count == 6 else { throw .syntax }
        let count = texts.count == 6 ? Int(texts[5]) ?? 0 : .max
        guard var low = Self.bound(texts[isReversed ? 3 : 2]),
            let high = Self.bound(texts[isReversed ? 2 : 3])
        else { throw Failure(text: "ERR Invalid stream ID specified as stream command argument") }
        if low.isExclusive { low.id.second += 1 }
        guard let stream = try stream(texts[1], now), low.id <= high.id else { return .array([]) }
        let all = stream.entries(in: low.id...high.id, count: .max)
        let some = isReversed ? Array(all.reversed().prefix(count)) : Array(all.prefix(count))
        return .array(some.map(\.reply))
    }

    private static func bound(_ text: String) -> (id: ModelStreamID, isExclusive: Bool)? {
        switch text {
        case "-": return (.zero, false)
        case "+": return (.largest, false)
        default:
            let isExclusive = text.hasPrefix("(")
            return ModelStreamID(isExclusive ? text.dropFirst() : text[...]).map {
                ($0, isExclusive)
            }
        }
    }
}
