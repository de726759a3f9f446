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

    /// The names of all forms, for help and errors.
    package static let names = allCases.map(\.rawValue).joined(separator: ", ")
}
