import Platform

/// The machine of a run, as far as the system describes it.
package struct MachineDescription: Hashable, Codable, Sendable {
    package var processor: String
    package var cores: Int
    package var memoryBytes: Int
    package var system: String
    package var kernel: String

    package static let current = MachineDescription(
        processor: processorName(),
        cores: coreCount,
        memoryBytes: Machine.memoryBytes,
        system: systemName(),
        kernel: kernelName()
    )

    /// The number of threads that can run at once.
    package static let coreCount = Machine.processorCount

    private enum CodingKeys: String, CodingKey {
        case processor, cores, system, kernel
        case memoryBytes = "memory_bytes"
    }

    /// One line for the head of a table.
    package var summary: String {
        "\(processor), \(cores) cores, \(Unit.bytes.readable(Double(memoryBytes))), "
            + "\(system), kernel \(kernel)"
    }

    private static func processorName() -> String {
        let lines = (try? TextFile.read("/proc/cpuinfo"))?.split(separator: "\n") ?? []
        let line = lines.first { $0.hasPrefix("model name") }
        guard let line, let colon = line.firstIndex(of: ":") else { return machineField(\.machine) }
        return String(line[line.index(after: colon)...].drop { $0 == " " })
    }

    private static func systemName() -> String {
        let lines = (try? TextFile.read("/etc/os-release"))?.split(separator: "\n") ?? []
        guard let line = lines.first(where: { $0.hasPrefix("PRETTY_NAME=") }) else {
            return machineField(\.sysname)
        }
        return line.dropFirst("PRETTY_NAME=".count).filter { $0 != "\"" }
    }

    private static func kernelName() -> String { machineField(\.release) }

    private static func machineField<Field>(_ field: KeyPath<utsname, Field>) -> String {
        var name = utsname()
        uname(&name)
        return withUnsafeBytes(of: name[keyPath: field]) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
    }
}

extension MachineDescription {
    /// Reads the description; other tools leave members out.
    package init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        func text(_ key: CodingKeys) throws -> String {
            try members.decodeIfPresent(String.self, forKey: key) ?? "unknown"
        }
        self.init(
            processor: try text(.processor),
            cores: try members.decodeIfPresent(Int.self, forKey: .cores) ?? 0,
            memoryBytes: try members.decodeIfPresent(Int.self, forKey: .memoryBytes) ?? 0,
            system: try text(.system),
            kernel: try text(.kernel)
        )
    }
}
