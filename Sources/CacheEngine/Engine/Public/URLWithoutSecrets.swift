extension CacheRequest {
    /// The URL without its user, password, query and fragment, which may hold secrets.
    ///
    /// For logs, traces and whatever else leaves the process.
    public var urlWithoutSecrets: String { PlainText.withoutSecrets(url: url) }
}

extension OriginRequest {
    /// The URL without its user, password, query and fragment, which may hold secrets.
    ///
    /// For logs, traces and whatever else leaves the process.
    public var urlWithoutSecrets: String { PlainText.withoutSecrets(url: url) }
}

extension PlainText {
    /// The start of the URL as an error may quote it: without secrets, escaped.
    package static func excerpt(url: String) -> String { excerpt(withoutSecrets(url: url)) }

    /// The URL is cut by bytes: a combining mark would join the sign before it.
    fileprivate static func withoutSecrets(url: String) -> String {
        let shown = url.utf8.prefix { !"?#".utf8.contains($0) }
        let slashes = Array("//".utf8)
        let scheme = shown.prefix { $0 != UInt8(ascii: "/") }
        let rest = shown[scheme.endIndex...]
        guard rest.starts(with: slashes) else { return withoutUser(scheme) + text(rest) }
        let authorityStart = rest.index(rest.startIndex, offsetBy: slashes.count)
        let authority = rest[authorityStart...].prefix { !#"/\"#.utf8.contains($0) }
        return text(shown[..<authorityStart]) + withoutUser(authority)
            + text(shown[authority.endIndex...])
    }

    private static func withoutUser(_ authority: Substring.UTF8View) -> String {
        guard let at = authority.lastIndex(of: UInt8(ascii: "@")) else { return text(authority) }
        return text(authority[authority.index(after: at)...])
    }

    private static func text(_ bytes: Substring.UTF8View) -> String { String(Substring(bytes)) }
}
