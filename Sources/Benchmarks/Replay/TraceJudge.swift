/// Tells the form of a trace from its first bytes.
///
/// A single line may be a stray one, so the form is the one that at least half of the first lines
/// have. Of several such forms, the one that says most about a line is chosen.
struct TraceJudge {
    private static let linesMax = 20

    private let start: [UInt8]
    /// The first lines that are neither blank nor comments.
    let lines: [ArraySlice<UInt8>]

    /// Judges the first bytes of a trace, or all of them if `isWhole`.
    init(_ start: [UInt8], isWhole: Bool) {
        self.start = start
        var pieces = start.split(
            separator: UInt8(ascii: "\n"),
            omittingEmptySubsequences: false
        )
        // The last line may continue after these bytes.
        if !isWhole, pieces.count > 1 { pieces.removeLast() }
        lines = Array(pieces.lazy.filter { !TraceLineReader.isSkipped($0) }.prefix(Self.linesMax))
    }

    /// Whether the bytes are no text.
    var isBinary: Bool { start.contains(0) }

    /// The form of a trace, whose name has no ending of an archive; `nil` if none is common enough.
    ///
    /// The name alone says that bytes are records; without it their times must not fall.
    func format(name: String) -> TraceFormat? {
        if name.contains("oracleGeneral") { return .oracleGeneral }
        if isBinary { return areRecords ? .oracleGeneral : nil }
        if name.hasSuffix(".lis") { return .lis }
        // A file without requests is an error in any form.
        if lines.isEmpty { return .csv }
        if isCommon(count(Self.isLog)) { return .clf }
        if lines.contains(where: Self.hasHashedNames) { return .wiki }
        if isCommon(count(Self.isCommand)) { return .twitter }
        if isCommon(count(Self.areBlocks)) { return .lis }
        return table == nil ? nil : .csv
    }

    /// A reader of the columns that the lines have as a table; `nil` if none are common enough.
    var table: TraceLineReader? {
        let readers = lines.enumerated().map { number, line in
            let reader = line.withUnsafeBytes {
                TraceLineReader(tableLike: $0, isFirst: number == 0)
            }
            return (reader: reader, fits: count { Self.fits($0, reader) })
        }
        return readers.filter { isCommon($0.fits) }
            .max { ($0.reader.detail, $0.fits) < ($1.reader.detail, $1.fits) }?.reader
    }

    /// Whether the times, which begin the records of the binary form, are in order.
    private var areRecords: Bool {
        let size = TraceReader.recordBytes
        let times = start.withUnsafeBytes { bytes in
            stride(from: 0, through: bytes.count - size, by: size).map { place in
                UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt32.self))
            }
        }
        return !times.isEmpty && zip(times, times.dropFirst()).allSatisfy { $0 <= $1 }
    }

    // MARK: Lines

    private func count(_ isFit: (ArraySlice<UInt8>) -> Bool) -> Int { lines.count(where: isFit) }

    private func isCommon(_ count: Int) -> Bool { count * 2 >= lines.count }

    private static func fits(_ line: ArraySlice<UInt8>, _ reader: TraceLineReader) -> Bool {
        var reader = reader
        var trace = RequestTrace()
        return line.withUnsafeBytes { reader.read($0, into: &trace) }
    }

    private static func isLog(_ line: ArraySlice<UInt8>) -> Bool {
        line.withUnsafeBytes { TraceLogLine($0) != nil }
    }

    /// Whether the line has the names that Wikimedia gives to its columns.
    private static func hasHashedNames(_ line: ArraySlice<UInt8>) -> Bool {
        let names = line.split { $0 == UInt8(ascii: "\t") || $0 == UInt8(ascii: ",") }
        return names.contains { $0.starts(with: "hashed_".utf8) } && !line.contains(where: isDigit)
    }

    private static func isCommand(_ line: ArraySlice<UInt8>) -> Bool {
        let fields = line.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
        return fields.count == 7 && TraceLineReader.isOperation(fields[5])
    }

    private static func areBlocks(_ line: ArraySlice<UInt8>) -> Bool {
        let words = line.split { $0 == 0x20 || $0 == 0x0D }
        return words.count == 4 && words.allSatisfy { $0.allSatisfy(isDigit) }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { 0x30...0x39 ~= byte }
}
