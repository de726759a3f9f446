/// One question about the engine's speed, asked of several cases.
package struct Workload: Sendable {
    package let name: String
    /// What the workload finds out, in one line.
    package let question: String
    private let makeCases: @Sendable (WorkloadPlan) throws -> [any WorkloadCase]

    package init(
        name: String,
        question: String,
        cases: @escaping @Sendable (WorkloadPlan) throws -> [any WorkloadCase]
    ) {
        self.name = name
        self.question = question
        makeCases = cases
    }

    package func cases(_ plan: WorkloadPlan) throws -> [any WorkloadCase] { try makeCases(plan) }
}

/// One setting of a workload: made ready once, measured in rounds.
package protocol WorkloadCase: AnyObject {
    var parameters: [Measurement.Parameter] { get }
    /// Builds what is measured, and warms it up.
    func prepare() async throws
    /// Does the work once; the same work every time.
    func round() async throws -> [Sample]
    /// Gives back what `prepare` took.
    func finish() async throws
}

extension WorkloadCase {
    func finish() async throws {}
}

/// What one round found for one quantity.
package struct Sample: Sendable {
    /// The same work done by another in the same round.
    package struct Reference: Sendable {
        let peer: String
        let value: Double
    }

    package let quantity: String
    package let unit: Unit
    package let better: Measurement.Direction
    package let value: Double
    package var histogram: Histogram?
    package var reference: Reference?
    package var parameters: [Measurement.Parameter] = []

    /// Nanoseconds for one operation.
    static func time(
        _ quantity: String,
        _ nanoseconds: Double,
        _ histogram: Histogram? = nil,
        floor: Double? = nil
    ) -> Sample {
        Sample(
            quantity: quantity,
            unit: .nanoseconds,
            better: .lower,
            value: nanoseconds,
            histogram: histogram,
            reference: floor.map { Reference(peer: "floor", value: $0) }
        )
    }

    /// Something there should be little of.
    package static func lowerIsBetter(_ quantity: String, _ value: Double, _ unit: Unit) -> Sample {
        Sample(quantity: quantity, unit: unit, better: .lower, value: value)
    }

    /// Something there should be much of.
    package static func higherIsBetter(_ quantity: String, _ value: Double, _ unit: Unit) -> Sample
    {
        Sample(quantity: quantity, unit: unit, better: .higher, value: value)
    }

    static func allocations(_ counted: UInt64, operations: Int) -> Sample {
        lowerIsBetter(
            "allocations",
            Double(counted) / Double(max(1, operations)),
            .allocations
        )
    }
}

/// The work was not done as it should have been: figures of it would be lies.
package struct WorkloadFailure: Error, Hashable, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }

    /// Fails unless what the work added up to is what it must.
    static func require(_ condition: Bool, _ what: @autoclosure () -> String) throws {
        guard condition else { throw WorkloadFailure(what()) }
    }
}
