/// The results of one run: the machine, the build and the figures.
package struct RunResult: Hashable, Sendable {
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

    package var json: JSONValue {
        .object(of: [
            ("machine", machine.json),
            ("build", build.json),
            ("results", .array(measurements.map(\.json))),
        ])
    }

    package init?(_ json: JSONValue) {
        guard let rows = json["results"]?.elements else { return nil }
        let measurements = rows.compactMap(Measurement.init)
        guard measurements.count == rows.count else { return nil }
        self.init(
            machine: MachineDescription(json["machine"] ?? .null),
            build: BuildDescription(json["build"] ?? .null),
            measurements: measurements
        )
    }

    /// Reads a file written by `--json`.
    package static func read(_ path: String) throws -> RunResult {
        let text = try TextFile.read(path)
        do {
            if let result = RunResult(try JSONValue(parsing: text)) { return result }
        } catch let error as JSONError {
            throw UsageError("\(path): \(error)")
        }
        throw UsageError("\(path): the file has no results; give one that --json wrote")
    }
}
