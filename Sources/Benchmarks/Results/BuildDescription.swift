import Foundation

/// The compiler and the configuration of the measured program.
package struct BuildDescription: Hashable, Codable, Sendable {
    package var compiler: String
    package var configuration: String
    package var checksInvariants: Bool
    package var revision: String?

    package static let current = BuildDescription(
        compiler: compilerVersion,
        configuration: configurationName,
        checksInvariants: areInvariantsChecked,
        revision: Bundle.main.executablePath.flatMap { Self.revision(of: $0) }
    )

    private enum CodingKeys: String, CodingKey {
        case compiler, configuration, revision
        case checksInvariants = "invariants_checked"
    }

    /// One line for the head of a table.
    package var summary: String {
        "\(compiler), \(configuration) build" + (revision.map { ", revision \($0)" } ?? "")
            + (checksInvariants ? ", INVARIANTS CHECKED" : "")
    }

    /// Whether timings of this build are meaningful.
    package var isMeaningful: Bool { configuration == "release" && !checksInvariants }

    /// The commit that is checked out around the program's file.
    ///
    /// `nil` if there is no checkout, or if its commit is newer than the file.
    static func revision(of program: String) -> String? {
        let folder = URL(filePath: program).deletingLastPathComponent().path()
        let command = ["git", "-C", folder, "log", "-1", "--format=%h %ct"]
        let words = Subprocess.firstLine(of: command)?.split(separator: " ") ?? []
        let attributes = try? FileManager.default.attributesOfItem(atPath: program)
        guard words.count == 2, let committed = Double(words[1]),
            let built = attributes?[.modificationDate] as? Date,
            built.timeIntervalSince1970 >= committed
        else { return nil }
        return String(words[0])
    }

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
    /// Reads the description; other tools leave members out.
    package init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        let isChecked = try members.decodeIfPresent(Bool.self, forKey: .checksInvariants)
        self.init(
            compiler: try members.decodeIfPresent(String.self, forKey: .compiler) ?? "unknown",
            configuration: try members.decodeIfPresent(String.self, forKey: .configuration)
                ?? "unknown",
            checksInvariants: isChecked ?? false,
            revision: try members.decodeIfPresent(String.self, forKey: .revision)
        )
    }
}
