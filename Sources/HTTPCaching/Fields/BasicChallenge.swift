/// The first challenge of the scheme Basic in `WWW-Authenticate` (RFC 7617 §2).
///
///     WWW-Authenticate: Negotiate, Basic charset="UTF-8", realm="here"
///
/// A member of the list begins a challenge if it has a scheme, and is a further parameter of the
/// challenge before it otherwise (RFC 9110 §11.6.1).
public struct BasicChallenge: Hashable, Sendable {
    /// The realm without its quotes and escapes; `nil` if the challenge states none.
    public private(set) var realm: String?

    /// Reads the lines in order; `nil` if no member is such a challenge.
    public init?(in lines: [String]) {
        var isFound = false
        for line in lines {
            let isOver = line.withByteRun { line in
                var members = ListScanner(line)
                while let member = members.next() {
                    let (scheme, parameter) = Self.split(member)
                    if let scheme {
                        guard !isFound else { return true }
                        isFound = scheme.equals(lowercased: "basic")
                    }
                    if isFound, realm == nil { realm = Self.realm(in: parameter) }
                }
                return false
            }
            if isOver { return }
        }
        if !isFound { return nil }
    }

    /// The scheme that a member begins with, if it does, and the rest of the member.
    private static func split(_ member: ByteRun) -> (scheme: ByteRun?, rest: ByteRun) {
        var end = 0
        while end < member.count, member[end].isToken { end += 1 }
        let rest = member[end..<member.count].trimmed
        if !rest.isEmpty, rest[0] == .equalsSign { return (nil, member) }
        return (member[0..<end], rest)
    }

    /// The value of a parameter that is the realm: a token or a quoted string.
    private static func realm(in parameter: ByteRun) -> String? {
        var end = 0
        while end < parameter.count, parameter[end].isToken { end += 1 }
        guard parameter[0..<end].equals(lowercased: "realm") else { return nil }
        let rest = parameter[end..<parameter.count].trimmed
        guard !rest.isEmpty, rest[0] == .equalsSign else { return nil }
        let value = rest[1..<rest.count].trimmed
        guard !value.isEmpty, value[0] == .quote else { return value.string }
        var text: [UInt8] = []
        var index = 1
        while index < value.count, value[index] != .quote {
            if value[index] == .backslash, index + 1 < value.count { index += 1 }
            text.append(value[index])
            index += 1
        }
        return String(decoding: text, as: UTF8.self)
    }
}
