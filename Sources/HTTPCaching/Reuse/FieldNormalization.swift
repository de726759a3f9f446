/// How the value of a selecting field is brought into one form before it is compared
/// (RFC 9111 §4.1): only in ways that do not change what it means.
package enum FieldNormalization: Hashable, Sendable {
    /// The lines joined, whitespace around them removed.
    case verbatim
    /// A list: members trimmed, empty ones dropped.
    case list
    /// A list of weighted tokens (RFC 9110 §12.4.2): in lower case, the heaviest first, equal ones
    /// by name, the weight 1 left out.
    case weighted
    /// Only the heaviest of these values that the request accepts, or nothing. Fewer variants, for
    /// origins that are known to offer exactly these.
    case best(of: [String])
}

/// Which selecting field is normalised how.
package struct VariantRules: Hashable, Sendable {
    /// By lower-case field name; takes precedence over the defaults.
    package var overrides: [String: FieldNormalization] = [:]

    package init() {}

    package static let standard = VariantRules()

    package func normalization(of lowercasedName: String) -> FieldNormalization {
        if let override = overrides[lowercasedName] { return override }
        switch lowercasedName {
        case "accept-encoding", "accept-language", "accept-charset": return .weighted
        // Not lists: a comma in these is content.
        case "authorization", "cookie", "date", "from", "host", "if-modified-since", "origin",
            "proxy-authorization", "referer", "user-agent":
            return .verbatim
        default: return .list
        }
    }
}

extension FieldNormalization {
    /// Controls that no field value can hold: two different lists never give the same bytes.
    fileprivate static let memberSeparator: UInt8 = 0x01
    fileprivate static let weightSeparator: UInt8 = 0x02

    /// Appends the normal form of the field's value in `request`.
    func append(_ name: String, of request: FieldSection, to bytes: inout [UInt8]) {
        switch self {
        case .verbatim: Self.appendJoined(name, request, to: &bytes)
        case .list: Self.appendList(name, request, to: &bytes)
        case .weighted:
            for (position, member) in WeightedToken.all(name, in: request).enumerated() {
                if position > 0 { bytes.append(Self.memberSeparator) }
                member.append(to: &bytes)
            }
        case .best(let offered):
            let wanted = WeightedToken.all(name, in: request)
            if let best = WeightedToken.best(of: offered, accepting: wanted) {
                bytes.append(contentsOf: best.utf8)
            }
        }
    }

    private static func appendJoined(
        _ name: String,
        _ request: FieldSection,
        to bytes: inout [UInt8]
    ) {
        name.withByteRun { name in
            var isFirst = true
            request.forEachValue(of: name) { value in
                if !isFirst { bytes.append(memberSeparator) }
                isFirst = false
                bytes.append(contentsOf: value.buffer)
            }
        }
    }

    private static func appendList(
        _ name: String,
        _ request: FieldSection,
        to bytes: inout [UInt8]
    ) {
        name.withByteRun { name in
            var isFirst = true
            request.forEachValue(of: name) { value in
                var members = ListScanner(value)
                while let member = members.next() {
                    if !isFirst { bytes.append(memberSeparator) }
                    isFirst = false
                    bytes.append(contentsOf: member.buffer)
                }
            }
        }
    }
}

/// One member of Accept-Encoding, Accept-Language and the like: a token and its weight.
struct WeightedToken: Hashable {
    /// More members than this are read as one text: nobody negotiates with that many.
    static let membersMax = 64

    let token: String
    /// RFC 9110 §12.4.2 `qvalue`, in thousandths.
    let permille: Int

    static func all(_ name: String, in request: FieldSection) -> [WeightedToken] {
        var tokens: [WeightedToken] = []
        name.withByteRun { name in
            request.forEachValue(of: name) { value in
                var members = ListScanner(value)
                while tokens.count < membersMax, let member = members.next() {
                    tokens.append(WeightedToken(member))
                }
                // What is over the limit still counts, as it stands.
                while let rest = members.next() {
                    tokens.append(WeightedToken(token: rest.string, permille: -1))
                }
            }
        }
        tokens.sort { ($1.permille, $0.token) < ($0.permille, $1.token) }
        return tokens
    }

    init(token: String, permille: Int) {
        self.token = token
        self.permille = permille
    }

    /// A member with any other parameter, or a weight that is none, stays one opaque text.
    init(_ member: ByteRun) {
        let parts = member.string.lowercased().split(
            separator: ";",
            omittingEmptySubsequences: false
        )
        .map { Self.trim($0) }
        if parts.count == 1 {
            self.init(token: parts[0], permille: 1_000)
        } else if parts.count == 2, parts[1].hasPrefix("q="),
            let weight = Self.weight(parts[1].dropFirst(2))
        {
            self.init(token: parts[0], permille: weight)
        } else {
            self.init(token: parts.joined(separator: ";"), permille: 1_000)
        }
    }

    func append(to bytes: inout [UInt8]) {
        bytes.append(contentsOf: token.utf8)
        guard permille != 1_000 else { return }
        bytes.append(FieldNormalization.weightSeparator)
        bytes.append(contentsOf: String(permille).utf8)
    }

    /// The offered value of the highest weight; of equals, the one offered first.
    static func best(of offered: [String], accepting wanted: [WeightedToken]) -> String? {
        var best: (value: String, permille: Int)?
        let anyWeight = wanted.first { $0.token == "*" }?.permille ?? 0
        for value in offered {
            let lowered = value.lowercased()
            let weight = wanted.first { $0.token == lowered }?.permille ?? anyWeight
            if weight > (best?.permille ?? 0) { best = (lowered, weight) }
        }
        return best?.value
    }

    private static func trim(_ text: Substring) -> String {
        let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        let head = text.drop(while: isBlank)
        let tail = head.reversed().drop(while: isBlank).count
        return String(head.prefix(tail))
    }

    /// `0` to `1` with up to three decimals.
    private static func weight(_ text: Substring) -> Int? {
        let bytes = Array(text.utf8)
        guard let first = bytes.first, first == .zero || first == .zero + 1, bytes.count <= 5,
            bytes.count == 1 || bytes[1] == .dot
        else { return nil }
        var permille = Int(first - .zero) * 1_000
        var unit = 100
        for byte in bytes.dropFirst(2) {
            guard byte.isDigit else { return nil }
            permille += Int(byte - .zero) * unit
            unit /= 10
        }
        return permille <= 1_000 ? permille : nil
    }
}
