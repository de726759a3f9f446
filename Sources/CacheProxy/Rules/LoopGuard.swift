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
        var viaHops = 0
        var loopHops = 0
        var isKnown = false
        fields.forEachValue(of: "via") { line in
            var members = ListScanner(line)
            while let member = members.next() {
                viaHops += 1
                // received-protocol RWS received-by [ RWS comment ]
                var words = member.string.split { $0 == " " || $0 == "\t" }.makeIterator()
                _ = words.next()
                if let by = words.next(), by == name { isKnown = true }
            }
        }
        fields.forEachValue(of: "cdn-loop") { line in
            var members = ListScanner(line)
            while let member = members.next() {
                loopHops += 1
                let identifier = member.string.prefix { $0 != ";" && $0 != " " && $0 != "\t" }
                if identifier == name { isKnown = true }
            }
        }
        let hops = max(viaHops, loopHops)
        return isKnown || hops > Self.hopsMax && !Mutant.countsNoHops.isOn
    }
}
