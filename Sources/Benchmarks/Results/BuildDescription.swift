/// The compiler and the configuration of the measured program.
package struct BuildDescription: Hashable, Sendable {
    package var compiler: String
    package var configuration: String
    package var invariantsChecked: Bool
    package var revision: String?

    package static let current = BuildDescription(
        compiler: compilerVersion,
        configuration: configurationName,
        invariantsChecked: areInvariantsChecked,
        revision: Subprocess.firstLine(of: ["git", "rev-parse", "--short", "HEAD"])
    )

    package var json: JSONValue {
        .object(of: [
            ("compiler", .string(compiler)),
            ("configuration", .string(configuration)),
            ("invariants_checked", .bool(invariantsChecked)),
            ("revision", revision.map { .string($0) }),
        ])
    }

    /// One line for the head of a table.
    package var summary: String {
        "\(compiler), \(configuration) build" + (revision.map { ", revision \($0)" } ?? "")
            + (invariantsChecked ? ", INVARIANTS CHECKED" : "")
    }

    /// Whether timings of this build are meaningful.
    package var isMeaningful: Bool { configuration == "release" && !invariantsChecked }

    private static var configurationName: String {
        #if DEBUG
            "debug"
        #else
            "release"
        #endif
    }

    private static var areInvariantsChecked: Bool {
        #if ENGINE_CHECKS
            true
        #else
            false
        #endif
    }

    /// The compiler's version, found by a check for each possible one, as Swift does not name it.
    private static var compilerVersion: String {
        #if compiler(>=6.4)
            "Swift 6.4 or later"
        #elseif compiler(>=6.3.2)
            "Swift 6.3.2 or later"
        #elseif compiler(>=6.3.1)
            "Swift 6.3.1"
        #elseif compiler(>=6.3)
            "Swift 6.3"
        #else
            "Swift 6.2"
        #endif
    }
}

extension BuildDescription {
    init(_ json: JSONValue) {
        self.init(
            compiler: json["compiler"]?.text ?? "unknown",
            configuration: json["configuration"]?.text ?? "unknown",
            invariantsChecked: json["invariants_checked"] == .bool(true),
            revision: json["revision"]?.text
        )
    }
}
