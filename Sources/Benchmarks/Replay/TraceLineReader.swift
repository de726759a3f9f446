/// Reads the requests of one line after the other, in one form of text.
struct TraceLineReader {
    /// The columns of a table that are used.
    private struct Columns {
        var time: Int?
        var object: Int
        var sizes: [Int] = []
        var operation: Int?
        /// The number of columns, if further ones would change the meaning of these.
        var exactly: Int?
        var least: Int { ([time, object, operation].compactMap { $0 } + sizes).reduce(0, max) + 1 }
    }

    private static let blocksMax: UInt64 = 1 << 20

    private let format: TraceFormat
    private var separator: UInt8?
    private var columns: Columns?
    /// Whether the next line may have the names of the columns.
    private var expectsNames = true
    private var fields: [Range<Int>] = []

    /// Reads lines whose layout the first of them gives.
    init(_ format: TraceFormat) { self.format = format }

    /// Reads a table with the layout of `line`, which has names only if it is the first.
    init(tableLike line: UnsafeRawBufferPointer, isFirst: Bool) {
        format = .csv
        split(line)
        let named = isFirst ? namedColumns(line) : nil
        columns = named ?? usualColumns(fields.count)
        expectsNames = named != nil
    }

    /// The form of a line, for errors.
    var form: String {
        switch columns?.exactly {
        case 1: "the object alone"
        case 2: "object,size"
        default: format.line
        }
    }

    /// How much the layout says about a line: names say most, an object alone least.
    var detail: Int { expectsNames ? 4 : columns?.exactly ?? 3 }

    /// Appends the requests of the line; returns `false` if the line has another form.
    mutating func read(_ line: UnsafeRawBufferPointer, into trace: inout RequestTrace) -> Bool {
        if Self.isSkipped(line) { return true }
        switch format {
        case .clf: return Self.readLog(line, into: &trace)
        case .oracleGeneral: return false
        case .csv, .lis, .twitter, .wiki: break
        }
        split(line)
        if expectsNames {
            expectsNames = false
            let named = namedColumns(line)
            columns = named ?? columns ?? usualColumns(fields.count)
            if named != nil { return true }
        }
        if format == .lis { return readBlocks(line, into: &trace) }
        guard let columns, fields.count >= columns.least,
            fields.count == columns.exactly ?? fields.count
        else { return false }
        if let time = columns.time, !Self.isDecimal(bytes(time, line)) { return false }
        if let operation = columns.operation {
            guard Self.isOperation(bytes(operation, line)) else { return false }
            guard bytes(operation, line).starts(with: "get".utf8) else { return true }
        }
        var size: UInt64 = 0
        for column in columns.sizes {
            guard let number = Self.number(bytes(column, line)) else { return false }
            size &+= number
        }
        let object = bytes(columns.object, line)
        guard !object.isEmpty else { return false }
        trace.append(
            object: Self.identity(object),
            sizeBytes: columns.sizes.isEmpty ? 1 : size
        )
        return true
    }

    /// Whether the line has no request in any form: it is empty or a comment.
    static func isSkipped(_ line: some Collection<UInt8>) -> Bool {
        guard let first = line.first(where: { $0 != 0x20 && $0 != 0x09 && $0 != 0x0D }) else {
            return true
        }
        return first == UInt8(ascii: "#")
    }

    /// Whether the bytes are a command of memcached.
    static func isOperation(_ bytes: some Collection<UInt8>) -> Bool {
        [
            "get", "gets", "set", "add", "replace", "cas", "append", "prepend", "delete", "incr",
            "decr",
        ].contains { bytes.elementsEqual($0.utf8) }
    }

    // MARK: Columns

    private mutating func split(_ line: UnsafeRawBufferPointer) {
        fields.removeAll(keepingCapacity: true)
        let separator = separator ?? Self.separator(of: line)
        self.separator = separator
        var start = 0
        let end = line.last == 0x0D ? line.count - 1 : line.count
        for index in 0...end where index == end || line[index] == separator {
            // Several spaces separate as one does.
            if separator != 0x20 || index > start { fields.append(start..<index) }
            start = index + 1
        }
    }

    private static func separator(of line: UnsafeRawBufferPointer) -> UInt8 {
        for one in [UInt8(ascii: "\t"), UInt8(ascii: ","), UInt8(ascii: ";")]
        where line.contains(one) { return one }
        return 0x20
    }

    private func bytes(_ column: Int, _ line: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: line[fields[column]])
    }

    private static let names: (time: Set<String>, object: Set<String>, size: Set<String>) = (
        ["time", "timestamp", "ts", "relative_unix", "clock_time"],
        [
            "object", "id", "obj", "key", "url", "obj_id", "object_id", "hashed_path_query",
            "hashed_host_path_query",
        ],
        ["size", "bytes", "obj_size", "object_size", "response_size", "length"]
    )

    /// The columns that a line of names gives, or `nil` if it gives none; no name is a number.
    private func namedColumns(_ line: UnsafeRawBufferPointer) -> Columns? {
        guard !fields.contains(where: { Self.isDecimal(.init(rebasing: line[$0])) }) else {
            return nil
        }
        var columns = Columns(object: -1)
        for (index, range) in fields.enumerated() {
            let name = String(decoding: line[range], as: UTF8.self).lowercased()
                .filter { !$0.isWhitespace && $0 != "\"" }
            if Self.names.time.contains(name) { columns.time = index }
            if Self.names.object.contains(name) { columns.object = index }
            if Self.names.size.contains(name) { columns.sizes = [index] }
        }
        return columns.object < 0 ? nil : columns
    }

    private func usualColumns(_ count: Int) -> Columns {
        switch format {
        case .twitter: Columns(time: 0, object: 1, sizes: [2, 3], operation: 5)
        case .wiki: Columns(time: 0, object: 1, sizes: [count == 4 ? 2 : 3])
        case .csv where count == 1: Columns(object: 0, exactly: 1)
        case .csv where count == 2: Columns(object: 0, sizes: [1], exactly: 2)
        default: Columns(time: 0, object: 1, sizes: [2])
        }
    }

    private func readBlocks(
        _ line: UnsafeRawBufferPointer,
        into trace: inout RequestTrace
    ) -> Bool {
        guard fields.count == 4, let first = Self.number(bytes(0, line)),
            let count = Self.number(bytes(1, line)), count <= Self.blocksMax
        else { return false }
        for block in 0..<count { trace.append(object: first &+ block, sizeBytes: 1) }
        return true
    }

    private static func readLog(
        _ line: UnsafeRawBufferPointer,
        into trace: inout RequestTrace
    ) -> Bool {
        guard let log = TraceLogLine(line) else { return false }
        if log.method.isEmpty { trace.skipLine() }
        // Other methods do not read what a cache stores.
        guard log.method.elementsEqual("GET".utf8) else { return true }
        trace.append(object: identity(log), sizeBytes: log.sizeBytes ?? 0)
        if log.sizeBytes == nil { trace.noteMissingSize() }
        return true
    }

    // MARK: Fields

    static func number(_ bytes: UnsafeRawBufferPointer) -> UInt64? {
        guard !bytes.isEmpty, bytes.count < 20 else { return nil }
        var number: UInt64 = 0
        for byte in bytes {
            guard 0x30...0x39 ~= byte else { return nil }
            number = number * 10 + UInt64(byte - 0x30)
        }
        return number
    }

    static func isDecimal(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var dots = 0
        for byte in bytes where !(0x30...0x39 ~= byte) {
            guard byte == UInt8(ascii: ".") else { return false }
            dots += 1
        }
        return dots < 2 && bytes.count > dots
    }

    /// A number is its own identity; any other text is hashed.
    private static func identity(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        number(bytes) ?? hash(bytes)
    }

    /// A path of one host is another object than the same path of another host.
    private static func identity(_ log: TraceLogLine) -> UInt64 {
        // A target that is a whole URL names its own host.
        guard !log.host.isEmpty, log.target.first == UInt8(ascii: "/") else {
            return identity(log.target)
        }
        return hash(log.target, onto: hash(log.host.lazy.map(withoutCase)))
    }

    /// Hosts compare without case.
    private static func withoutCase(_ byte: UInt8) -> UInt8 {
        0x41...0x5A ~= byte ? byte | 0x20 : byte
    }

    /// FNV-1a, of `bytes` after those that gave `start`.
    private static func hash(
        _ bytes: some Sequence<UInt8>,
        onto start: UInt64 = 0xCBF2_9CE4_8422_2325
    ) -> UInt64 {
        bytes.reduce(start) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }
}
