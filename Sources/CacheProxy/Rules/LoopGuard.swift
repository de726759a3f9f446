import HTTPCaching

/// Recognizes a request that was here before (RFC 9110 §7.6.3, RFC 8586).
struct LoopGuard: Hashable, Sendable {
    /// More proxies than this are taken for a loop whose members hide their names.
    ///
    /// A proxy may add itself to both fields, so each field is counted by itself.
    static let hopsMax = 20

    /// The name of this proxy in Via and CDN-Loop.
    let name: String

    /// The member of `Via` for a request that came in HTTP/1.0 (RFC 9110 §7.6.3).
    let oldVersionVia: String

    init(name: String) {
        self.name = name
        oldVersionVia = "1.0 \(name)"
    }

    /// Whether the fields have the line of a request that came in HTTP/1.0.
    ///
    /// No client can send it: a request with the name of this proxy is a loop.
    func hasOldVersionVia(_ fields: FieldSection) -> Bool {
        var isThere = false
        fields.forEachValue(of: "via") { if $0.string == oldVersionVia { isThere = true } }
        return isThere
    }

    func isLooping(_ fields: FieldSection) -> Bool {
        isLooping("via", of: fields) { member in
            // received-protocol RWS received-by [ RWS comment ]
            let words = member.split(maxSplits: 2, whereSeparator: Self.isSpace)
            return words.count > 1 ? words[1] : nil
        }
            || isLooping("cdn-loop", of: fields) { member in
                member.prefix { $0 != UInt8(ascii: ";") && !Self.isSpace($0) }
            }
    }

    /// Whether a member names this proxy or is one too many.
    ///
    /// The members after that one are not read: a client may send thousands. Each comma separates
    /// members, also inside quotes: a proxy that joins lines may have put our name behind an open
    /// quote of the client.
    private func isLooping(
        _ field: StaticString,
        of fields: FieldSection,
        nameIn: (UnsafeRawBufferPointer) -> Slice<UnsafeRawBufferPointer>?
    ) -> Bool {
        var hops = 0
        var hasLoop = false
        fields.forEachValue(of: field) { line in
            var start = 0
            while !hasLoop, start < line.count {
                let end = (start..<line.count).first { line[$0] == UInt8(ascii: ",") } ?? line.count
                let member = line[start..<end].trimmed
                start = end + 1
                guard !member.isEmpty else { continue }
                hops += 1
                hasLoop =
                    hops > Self.hopsMax && !Mutant.countsNoHops.isOn
                    || nameIn(member.buffer)?.elementsEqual(name.utf8) == true
            }
        }
        return hasLoop
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}
