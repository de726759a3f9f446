import Testing

/// `Examples/Containerfile`, which the check does not build, copies what the build needs.
@Suite struct ContainerTests {
    @Test func everyTargetIsCopiedIntoTheImage() throws {
        let manifest = try SourceFile.read("Package.swift")
        let paths = manifest.matches(of: /path: "([^"]+)"/).map { String($0.1) }
        #expect(paths.count > 5)
        let copied = Self.copiedPaths(try SourceFile.read("Examples/Containerfile"))
        // Targets without a path are in the two folders that SwiftPM searches.
        for path in paths + ["Package.swift", "Sources", "Tests"] {
            let isCopied = copied.contains { path == $0 || path.hasPrefix($0 + "/") }
            #expect(isCopied, "No COPY of Examples/Containerfile has \(path)")
        }
    }

    @Test func onlyCopiesToTheSamePlaceCount() {
        let text = """
            COPY Package.swift ./
            COPY Sources Sources
            COPY Tests Elsewhere
            # COPY docs docs
            COPY --from=build /cache-proxy /usr/local/bin/cache-proxy
            """
        #expect(Self.copiedPaths(text) == ["Package.swift", "Sources"])
    }

    /// The paths that keep their place in the image's folder of the package.
    private static func copiedPaths(_ text: String) -> [String] {
        text.matches(of: /(?m)^COPY ([\w.\/-]+) ([\w.\/-]+)$/).compactMap { match in
            match.2 == match.1 || match.2 == "./" ? String(match.1) : nil
        }
    }
}
