/// The results of one run: the machine, the build and the figures.
package struct RunResult: Hashable, Codable, Sendable {
    package var machine: MachineDescription
    package var build: BuildDescription
    package var measurements: [Measurement]

    package init(
        machine: MachineDescription = .current,
        build: BuildDescription = .current,
        measurements: [Measurement] = []
    ) {
        self.machine = machine
        self.build = build
        self.measurements = measurements
    }

    private enum CodingKeys: String, CodingKey {
        case machine, build
        case measurements = "results"
    }

    /// Reads a file written by `--json`.
    package static func read(_ path: String) throws -> RunResult {
        do {
            return try JSONText.decode(from: try TextFile.read(path))
        } catch let error as JSONError {
            throw UsageError("\(path): \(error); give a file that --json wrote")
        }
    }
}
