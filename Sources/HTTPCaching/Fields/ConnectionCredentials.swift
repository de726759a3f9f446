extension FieldSection {
    /// Whether `Authorization` has a scheme that authenticates the connection, and not the request.
    ///
    /// An origin may take every later request on that connection for one of the same user (RFC 4559
    /// §6).
    public var authenticatesConnection: Bool {
        var isFound = false
        forEachValue(of: "authorization") { credentials in
            isFound =
                isFound || credentials.hasPrefix(lowercased: "ntlm")
                || credentials.hasPrefix(lowercased: "nego")
                || credentials.hasPrefix(lowercased: "kerberos")
        }
        return isFound
    }
}
