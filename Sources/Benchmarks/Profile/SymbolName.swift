import Platform

/// The names of functions in a profile.
enum SymbolName {
    /// The name as it stands in the source, if `symbol` is one of Swift's; otherwise `symbol`.
    static func readable(_ symbol: String) -> String {
        guard symbol.hasPrefix("$s") || symbol.hasPrefix("$S"), let demangle,
            let name = demangle(symbol, strlen(symbol), nil, nil, 0)
        else { return symbol }
        defer { free(name) }
        return String(cString: name)
    }

    /// The runtime's own function; its C declaration is in no module.
    private typealias Demangle =
        @convention(c) (
            UnsafePointer<CChar>, Int, UnsafeMutablePointer<CChar>?, UnsafeMutablePointer<Int>?,
            UInt32
        ) -> UnsafeMutablePointer<CChar>?

    private static let demangle: Demangle? = {
        guard let program = dlopen(nil, RTLD_NOW), let symbol = dlsym(program, "swift_demangle")
        else { return nil }
        return unsafeBitCast(symbol, to: Demangle.self)
    }()
}
