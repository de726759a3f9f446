/// Cuts the bytes of a trace into lines or records, however they come in pieces.
struct TraceReader {
    static let recordBytes = 24
    private static let guessBytes = 1 << 16
    private static let lineBytesMax = 1 << 20

    private let source: TraceSource
    private var format: TraceFormat?
    /// `nil` until the form is known.
    private var lines: TraceLineReader?
    private var lineNumber = 0
    /// Bytes that are not used yet: the beginning of a line or of a record.
    private var rest: [UInt8] = []

    private(set) var trace = RequestTrace()

    init(_ source: TraceSource, _ format: TraceFormat?) {
        self.source = source
        self.format = format
    }

    mutating func take(_ bytes: [UInt8]) throws {
        rest += bytes
        guard lines != nil || rest.count >= Self.guessBytes else { return }
        try useRest(isWhole: false)
    }

    mutating func finish() throws -> RequestTrace {
        try useRest(isWhole: true)
        if format == .oracleGeneral, !rest.isEmpty {
            throw UsageError(
                "\(source.path): the last record has \(rest.count) of \(Self.recordBytes) bytes; "
                    + "get the file again"
            )
        }
        if !rest.isEmpty {
            let line = rest
            try line.withUnsafeBytes { try use(line: $0) }
        }
        guard !trace.requests.isEmpty else {
            throw UsageError(
                "\(source.path): the file has no requests; give lines time,object,size"
            )
        }
        return trace
    }

    /// Decides on the form; `isWhole` says that no bytes follow.
    private mutating func begin(isWhole: Bool) throws {
        if let program = TraceSource.unpacker(of: rest) {
            throw UsageError(
                "\(source.path): the bytes are packed; send them through \(program) -dc first"
            )
        }
        let judge = TraceJudge(rest, isWhole: isWhole)
        guard let format = format ?? judge.format(name: source.name) else {
            throw formless(judge)
        }
        self.format = format
        let table = format == .csv ? judge.table : nil
        lines = table ?? TraceLineReader(format)
    }

    private func formless(_ judge: TraceJudge) -> UsageError {
        if judge.isBinary {
            return UsageError(
                "\(source.path): the bytes are neither text nor records of \(Self.recordBytes) "
                    + "bytes whose times do not fall; give --format and one of \(TraceFormat.names)"
            )
        }
        let first = judge.lines.first ?? []
        return UsageError(
            "\(source.path): the first lines have no form in common: `\(Self.shown(first))`; "
                + "give --format and one of \(TraceFormat.names)"
        )
    }

    private mutating func useRest(isWhole: Bool) throws {
        if lines == nil { try begin(isWhole: isWhole) }
        let bytes = rest
        let used = try bytes.withUnsafeBytes { bytes in
            format == .oracleGeneral ? use(records: bytes) : try use(lines: bytes)
        }
        rest = Array(bytes[used...])
        guard rest.count <= Self.lineBytesMax else {
            throw UsageError(
                "\(source.path): line \(lineNumber + 1) is longer than \(Self.lineBytesMax) bytes; "
                    + "give another --format"
            )
        }
    }

    private mutating func use(lines bytes: UnsafeRawBufferPointer) throws -> Int {
        var start = 0
        while let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
            try use(line: UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
            start = end + 1
        }
        return start
    }

    private mutating func use(line: UnsafeRawBufferPointer) throws {
        lineNumber += 1
        guard lines?.read(line, into: &trace) == true else {
            throw UsageError(
                "\(source.path): line \(lineNumber) is not \(lines?.form ?? ""): "
                    + "`\(Self.shown(line))`"
            )
        }
    }

    private static func shown(_ line: some Collection<UInt8>) -> String {
        String(decoding: line.prefix(60), as: UTF8.self)
    }

    private mutating func use(records bytes: UnsafeRawBufferPointer) -> Int {
        let count = bytes.count / Self.recordBytes
        for record in 0..<count {
            let start = record * Self.recordBytes
            let object = bytes.loadUnaligned(fromByteOffset: start + 4, as: UInt64.self)
            let size = bytes.loadUnaligned(fromByteOffset: start + 12, as: UInt32.self)
            trace.append(
                object: UInt64(littleEndian: object),
                sizeBytes: UInt64(UInt32(littleEndian: size))
            )
        }
        return count * Self.recordBytes
    }
}
