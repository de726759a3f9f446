/// The forms of recorded requests that a replay reads.
package enum TraceFormat: String, CaseIterable, Sendable {
    /// Columns of text: time, object and size; or object and size; or the object alone.
    ///
    /// A first line with names decides which column is which. Further columns are ignored.
    case csv
    /// Records of 24 bytes, as libCacheSim writes them.
    case oracleGeneral
    /// First block, number of blocks and two numbers more, as in the traces of ARC.
    case lis
    /// Time, key, size of the key, size of the value, client, operation and lifetime.
    case twitter
    /// The columns of Wikimedia's upload and text caches.
    case wiki
    /// The common log format of web servers.
    case clf

    /// The form of a line, for errors.
    var line: String {
        switch self {
        case .csv: "time,object,size"
        case .oracleGeneral: "a record of 24 bytes"
        case .lis: "first block, number of blocks, 0, number"
        case .twitter: "time,key,key size,value size,client,operation,lifetime"
        case .wiki: "time, hashed path, type, size, time to the first byte"
        case .clf: #"host ident user [time] "GET path HTTP/1.1" status bytes"#
        }
    }

    /// Guesses the form from the name of a file, without the ending of an archive, and its first
    /// bytes.
    package static func guess(name: String, start: [UInt8]) -> TraceFormat {
        if name.contains("oracleGeneral") || start.contains(0) { return .oracleGeneral }
        if name.hasSuffix(".lis") { return .lis }
        let lines = start.split(separator: UInt8(ascii: "\n"))
        let data = lines.first { !TraceLineReader.isSkipped($0) }
        guard let first = data.map({ String(decoding: $0, as: UTF8.self) }) else { return .csv }
        if first.contains("\""), first.contains("[") { return .clf }
        if first.contains("hashed_") { return .wiki }
        let fields = first.split(separator: ",", omittingEmptySubsequences: false)
        if fields.count == 7, TraceLineReader.isOperation(fields[5].utf8) { return .twitter }
        let words = first.split { $0 == " " || $0 == "\r" }
        if words.count == 4, words.allSatisfy({ $0.allSatisfy(\.isNumber) }) { return .lis }
        return .csv
    }
}
