import RESP

/// The ID of an entry of a stream: two numbers.
struct ModelStreamID: Hashable, Comparable, Sendable {
    static let zero = ModelStreamID(first: 0, second: 0)
    static let largest = ModelStreamID(first: .max, second: .max)

    var first: UInt64
    var second: UInt64

    init(first: UInt64, second: UInt64) {
        self.first = first
        self.second = second
    }

    init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let first = UInt64(parts[0]), let second = UInt64(parts[1]) else {
            return nil
        }
        self.init(first: first, second: second)
    }

    var text: String { "\(first)-\(second)" }

    static func < (one: ModelStreamID, other: ModelStreamID) -> Bool {
        (one.first, one.second) < (other.first, other.second)
    }
}

/// A stream of a model of Redis.
struct ModelStream: Sendable {
    struct Entry: Sendable {
        let id: ModelStreamID
        /// Names and values in turn.
        let fields: [[UInt8]]

        subscript(name: String) -> [UInt8]? {
            let name = Array(name.utf8)
            let place = stride(from: 0, to: fields.count, by: 2).first { fields[$0] == name }
            return place.map { fields[$0 + 1] }
        }

        var reply: RESPValue {
            .array([.bulk(Array(id.text.utf8)), .array(fields.map { .bulk($0) })])
        }
    }

    /// The entries in the order of their IDs.
    var entries: [Entry] = []
    private(set) var last = ModelStreamID.zero

    /// Returns `false` if the ID is not above all that the stream has had.
    mutating func append(_ id: ModelStreamID, _ fields: [[UInt8]]) -> Bool {
        guard id > last else { return false }
        entries.append(Entry(id: id, fields: fields))
        last = id
        return true
    }

    func entry(at id: ModelStreamID) -> Entry? { entries.last { $0.id == id } }

    func entries(in range: ClosedRange<ModelStreamID>, count: Int) -> ArraySlice<Entry> {
        entries.drop { $0.id < range.lowerBound }.prefix { $0.id <= range.upperBound }
            .prefix(count)
    }

    func entries(after id: ModelStreamID, count: Int) -> ArraySlice<Entry> {
        entries.drop { $0.id <= id }.prefix(count)
    }
}
