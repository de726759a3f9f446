/// How the value of a selecting field is normalised before it is compared (RFC 9111 §4.1).
///
/// A normalisation never changes the meaning of the value (decision 0063). No list loses its empty
/// members: clients do not send them, and an origin that compares the text of a value sees them.
public enum FieldNormalization: Hashable, Sendable {
    /// The lines as they are.
    case verbatim
    /// A list: joins the lines and trims the members.
    case list
    /// A list if every member is a token; any other value, such as a URL or JSON, as it is.
    case tokens
    /// A list of weighted tokens (RFC 9110 §12.4.2).
    ///
    /// Tokens are in lower case, sorted by descending weight and then by name. The weight 1 is
    /// omitted.
    case weighted
    /// The one of these values that the request accepts with the highest weight, or nothing.
    ///
    /// There are fewer variants then. It is meant for origins that offer exactly these values.
    case best(of: [String])
}

/// The normalisation of each selecting field.
public struct VariantRules: Hashable, Sendable {
    /// By lower-case field name; an override replaces the default.
    public var overrides: [String: FieldNormalization] = [:]

    public init() {}

    public static let standard = VariantRules()

    public func normalization(of lowercasedName: String) -> FieldNormalization {
        if !overrides.isEmpty, let override = overrides[lowercasedName] { return override }
        switch lowercasedName {
        case "accept-encoding", "accept-language", "accept-charset": return .weighted
        case "accept", "forwarded", "prefer": return .list
        // These fields are not lists: a comma is part of their content.
        case "authorization", "cookie", "date", "from", "host", "if-modified-since", "origin",
            "proxy-authorization", "referer", "user-agent":
            return .verbatim
        // Of other fields it is not known whether they are lists.
        default: return Mutant.takesEveryFieldForAList.isOn ? .list : .tokens
        }
    }
}

extension FieldNormalization {
    /// Control bytes, which no field value contains: different lists never give equal bytes.
    fileprivate static let memberSeparator: UInt8 = 0x01
    fileprivate static let weightSeparator: UInt8 = 0x02

    /// Stands in a variant's key, so that no form finds the variants of another.
    var code: UInt8 {
        switch self {
        case .verbatim: UInt8(ascii: "v")
        case .list: UInt8(ascii: "l")
        case .tokens: UInt8(ascii: "t")
        case .weighted: UInt8(ascii: "w")
        case .best: UInt8(ascii: "b")
        }
    }

    /// Appends the normal form of the field's value in `request`; allocates nothing else.
    func append(_ name: ByteRun, of request: FieldSection, to bytes: inout [UInt8]) {
        switch self {
        case .verbatim: Self.appendJoined(name, request, to: &bytes)
        case .list: Self.appendList(name, request, to: &bytes)
        case .tokens:
            // One line of any other value is no list of tokens: the two never have equal bytes.
            if Self.areTokens(name, request) {
                Self.appendList(name, request, to: &bytes)
            } else {
                Self.appendJoined(name, request, to: &bytes)
            }
        case .weighted:
            let isShort = WeightedToken.withAll(name, in: request) { tokens in
                for index in tokens.indices {
                    if index > 0 { bytes.append(Self.memberSeparator) }
                    tokens[index].append(to: &bytes)
                }
            }
            if !isShort { Self.appendList(name, request, to: &bytes) }
        case .best(let offered):
            let isShort = WeightedToken.withAll(name, in: request) { wanted in
                guard let best = WeightedToken.best(of: offered, accepting: wanted) else { return }
                offered[best].withByteRun { $0.appendLowercased(to: &bytes) }
            }
            // Nothing appended means that the request accepts none of the values.
            if !isShort, !Mutant.takesLongListsForNone.isOn {
                Self.appendList(name, request, to: &bytes)
            }
        }
    }

    /// The index of the one of these values that the request's field accepts with the highest weight.
    ///
    /// `nil` if it accepts none of them, or has more members than are sorted.
    package static func bestIndex(
        among offered: [String],
        in name: StaticString,
        of request: FieldSection
    ) -> Int? {
        var best: Int?
        _ = WeightedToken.withAll(ByteRun(name), in: request) { wanted in
            best = WeightedToken.best(of: offered, accepting: wanted)
        }
        return best
    }

    private static func appendJoined(
        _ name: ByteRun,
        _ request: FieldSection,
        to bytes: inout [UInt8]
    ) {
        var isFirst = true
        request.forEachValue(of: name) { value in
            if !isFirst { bytes.append(memberSeparator) }
            isFirst = false
            bytes.append(contentsOf: value.buffer)
        }
    }

    private static func appendList(
        _ name: ByteRun,
        _ request: FieldSection,
        to bytes: inout [UInt8]
    ) {
        var isFirst = true
        request.forEachValue(of: name) { value in
            var members = ListScanner(value)
            while let member = members.nextOrEmpty() {
                if member.isEmpty, Mutant.dropsEmptyMembers.isOn { continue }
                if !isFirst { bytes.append(memberSeparator) }
                isFirst = false
                bytes.append(contentsOf: member.buffer)
            }
        }
    }

    private static func areTokens(_ name: ByteRun, _ request: FieldSection) -> Bool {
        var areTokens = true
        request.forEachValue(of: name) { value in
            var members = ListScanner(value)
            while areTokens, let member = members.nextOrEmpty() {
                // The name of a field is a token (RFC 9110 §5.1).
                areTokens = FieldSection.isValidName(member)
            }
        }
        return areTokens
    }
}

/// One member of Accept-Encoding, Accept-Language and similar fields: a borrowed token, its weight.
struct WeightedToken {
    /// The most members that are sorted; a longer list is compared as it is.
    static let membersMax = 32

    let token: ByteRun
    /// RFC 9110 §12.4.2 `qvalue`, in thousandths.
    let permille: UInt16

    /// Lends the members of the field to `body`, by descending weight and then by name.
    ///
    /// Returns `false` without calling `body` if there are more than `membersMax`.
    static func withAll(
        _ name: ByteRun,
        in request: FieldSection,
        _ body: (UnsafeBufferPointer<WeightedToken>) -> Void
    ) -> Bool {
        withUnsafeTemporaryAllocation(of: WeightedToken.self, capacity: membersMax) { slots in
            request.withUnsafeBytes { buffer in
                var count = 0
                var cursor = FieldCursor(buffer)
                while let line = cursor.next() {
                    guard line.name.equalsIgnoringCase(name) else { continue }
                    var members = ListScanner(line.value)
                    while let member = members.nextOrEmpty() {
                        guard count < membersMax else { return false }
                        insert(WeightedToken(member), into: slots, count: count)
                        count += 1
                    }
                }
                body(UnsafeBufferPointer(rebasing: slots[0..<count]))
                return true
            }
        }
    }

    /// Inserts the token, keeping the first `count` slots sorted.
    ///
    /// The type is trivial, so slots need no deinitialisation.
    private static func insert(
        _ token: WeightedToken,
        into slots: UnsafeMutableBufferPointer<WeightedToken>,
        count: Int
    ) {
        precondition(count < slots.count)
        var place = count
        slots.initializeElement(at: count, to: token)
        while place > 0, token.precedes(slots[place - 1]) {
            slots[place] = slots[place - 1]
            slots[place - 1] = token
            place -= 1
        }
    }

    /// A member with another parameter or an invalid weight becomes one opaque token.
    private init(_ member: ByteRun) {
        guard let semicolon = member.index(of: .semicolon),
            let weight = Self.weight(member[(semicolon + 1)..<member.count].trimmed)
        else {
            token = member
            permille = 1_000
            return
        }
        token = member[0..<semicolon].trimmed
        permille = weight
    }

    private func precedes(_ other: WeightedToken) -> Bool {
        if permille != other.permille { return permille > other.permille }
        for index in 0..<min(token.count, other.token.count) {
            let (mine, theirs) = (token[index].lowercased, other.token[index].lowercased)
            if mine != theirs { return mine < theirs }
        }
        return token.count < other.token.count
    }

    func append(to bytes: inout [UInt8]) {
        token.appendLowercased(to: &bytes)
        guard permille != 1_000 else { return }
        bytes.append(FieldNormalization.weightSeparator)
        bytes.append(UInt8(permille >> 8))
        bytes.append(UInt8(permille & 0xFF))
    }

    /// The index of the offered value with the highest weight; the first one wins a tie.
    static func best(
        of offered: [String],
        accepting wanted: UnsafeBufferPointer<WeightedToken>
    ) -> Int? {
        var best: Int?
        var bestWeight: UInt16 = 0
        let anyWeight = wanted.first { $0.token.equals(exactly: "*") }?.permille ?? 0
        for index in offered.indices {
            let weight = offered[index].withByteRun { value in
                wanted.first { $0.token.equalsIgnoringCase(value) }?.permille ?? anyWeight
            }
            guard weight > bestWeight else { continue }
            best = index
            bestWeight = weight
        }
        return best
    }

    /// Parses `q=` and a number from 0 to 1 with at most three decimals; otherwise returns `nil`.
    private static func weight(_ text: ByteRun) -> UInt16? {
        guard text.count >= 3, text.count <= 7, text[0].lowercased == 0x71,
            text[1] == .equalsSign, text[2] == .zero || text[2] == .zero + 1,
            text.count == 3 || text[3] == .dot
        else { return nil }
        var permille = UInt16(text[2] - .zero) * 1_000
        var unit: UInt16 = 100
        for index in min(4, text.count)..<text.count {
            guard text[index].isDigit else { return nil }
            permille += UInt16(text[index] - .zero) * unit
            unit /= 10
        }
        return permille <= 1_000 ? permille : nil
    }
}

extension ByteRun {
    fileprivate func appendLowercased(to bytes: inout [UInt8]) {
        for index in 0..<count { bytes.append(self[index].lowercased) }
    }
}
