import Foundation

/// The results of one run: the machine, the build and the figures.
package struct RunResult: Hashable, Codable, Sendable {
    package var machine: MachineDescription
    package var build: BuildDescription
    /// The moment of the run, as `2026-01-31T12:00:00Z`.
    package var date: String?
    package var scale: WorkloadPlan.Scale?
    package var measurements: [Measurement]

    package init(
        machine: MachineDescription = .current,
        build: BuildDescription = .current,
        date: String? = currentDate,
        scale: WorkloadPlan.Scale? = nil,
        measurements: [Measurement] = []
    ) {
        self.machine = machine
        self.build = build
        self.date = date
        self.scale = scale
        self.measurements = measurements
    }

    package static var currentDate: String { Date.now.ISO8601Format() }

    /// One line for the head of a table: machine, build, date and scale.
    package var summary: String {
        ([machine.summary, build.summary] + [date, scale?.rawValue].compactMap(\.self))
            .joined(separator: " · ")
    }

    /// The date to the minute, as `2026-01-31 12:00 UTC`.
    var minute: String? {
        date.map { "\($0.prefix(16)) UTC".replacing("T", with: " ", maxReplacements: 1) }
    }

    /// Whether the rounds were too short to decide on a small change.
    package var isShort: Bool { scale == .quick || scale == .smoke }

    private enum CodingKeys: String, CodingKey {
        case machine, build, date, scale
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
