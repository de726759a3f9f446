import HTTPCaching
import Synchronization

/// The parameters of queries that neither the key nor the origin gets: `gclid,utm_*`.
///
/// A parameter is the text between two `&`, and its name ends at the first `=`. Names are compared
/// byte by byte, as the client writes them, so a percent-encoded name is another one. Every other
/// byte stays in its place, empty parameters included. The `?` goes with the last byte of the query.
struct IgnoredParameters: Hashable, Sendable {
    /// Names in one list: each costs a comparison for every parameter of a query.
    static let namesMax = 64

    /// One name of the list.
    private struct Name: Hashable, Sendable {
        let bytes: [UInt8]
        /// Whether it stands for all names that begin with it.
        let isPrefix: Bool

        func fits(_ other: ByteRun) -> Bool {
            bytes.withByteRun { own in
                guard isPrefix else { return other.equals(own) }
                return other.count >= own.count && other[0..<own.count].equals(own)
            }
        }
    }

    private let names: [Name]

    /// Reads the written form.
    init(parsing text: String) throws(ValueFault) {
        names = try ConfigurationValue.names(in: text, atMost: Self.namesMax) {
            (item) throws(ValueFault) in
            let isPrefix = item.utf8.last == UInt8.asterisk
            let bytes = [UInt8](isPrefix ? item.utf8.dropLast() : item.utf8[...])
            guard !bytes.isEmpty, bytes.allSatisfy(Self.isNameByte) else {
                throw ValueFault(
                    "`\(item)` is not the name of a parameter",
                    give: "it as URLs have it, and * only at its end"
                )
            }
            return Name(bytes: bytes, isPrefix: isPrefix)
        }
    }

    /// The URL without these parameters; the same URL if it has none of them.
    func removed(from url: String) -> String {
        let rest = url.withByteRun { bytes -> String? in
            guard let mark = bytes.index(of: .questionMark) else { return nil }
            let query = bytes[mark + 1..<bytes.count]
            guard hasIgnored(query) else { return nil }
            var kept = [UInt8](bytes[0..<mark + 1].buffer)
            kept.reserveCapacity(bytes.count)
            var isFirst = true
            Self.forEachParameter(of: query) { parameter in
                guard !isIgnored(parameter) else { return }
                if !isFirst { kept.append(Self.separator) }
                isFirst = false
                kept.append(contentsOf: parameter.buffer)
            }
            if kept.count == mark + 1 { kept.removeLast() }
            return String(decoding: kept, as: UTF8.self)
        }
        return rest ?? url
    }

    private func hasIgnored(_ query: ByteRun) -> Bool {
        var hasIgnored = false
        Self.forEachParameter(of: query) { hasIgnored = hasIgnored || isIgnored($0) }
        return hasIgnored
    }

    private func isIgnored(_ parameter: ByteRun) -> Bool {
        let name = parameter[0..<(parameter.index(of: .equalsSign) ?? parameter.count)]
        return names.contains { $0.fits(name) }
    }

    /// The byte between two parameters, `&`.
    private static let separator: UInt8 = 0x26

    private static func forEachParameter(of query: ByteRun, _ body: (ByteRun) -> Void) {
        var start = 0
        while start <= query.count {
            let end = query.index(of: separator, from: start) ?? query.count
            body(query[start..<end])
            start = end + 1
        }
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        ByteClass.isTarget(byte) && byte != separator && byte != .equalsSign && byte != .asterisk
    }
}

/// The list that holds now, which the engine reads while a reload may change it.
final class CurrentParameters: Sendable {
    private let list: Mutex<IgnoredParameters?>

    init(_ list: IgnoredParameters?) { self.list = Mutex(list) }

    func replace(_ list: IgnoredParameters?) { self.list.withLock { $0 = list } }

    /// The URL that requests have for one that an origin writes, as in `Location`.
    func removed(from url: String) -> String {
        list.withLock { $0 }?.removed(from: url) ?? url
    }
}

extension RequestURL {
    /// The same URL without these parameters, for the key and for the origin.
    func without(_ ignored: IgnoredParameters) -> RequestURL {
        RequestURL(text: ignored.removed(from: text), hostOverride: hostOverride)
    }
}
