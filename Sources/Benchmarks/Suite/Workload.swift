/// One question about the engine's speed, measured in several cases.
package struct Workload: Sendable {
    package let name: String
    /// The question that the workload answers, in one line.
    package let question: String
    /// The largest number of rounds; a round that takes many seconds is not repeated.
    package let roundsMax: Int
    private let makeCases: @Sendable (WorkloadPlan) throws -> [any WorkloadCase]

    package init(
        name: String,
        question: String,
        roundsMax: Int = .max,
        cases: @escaping @Sendable (WorkloadPlan) throws -> [any WorkloadCase]
    ) {
        self.name = name
        self.question = question
        self.roundsMax = roundsMax
        makeCases = cases
    }

    package func cases(_ plan: WorkloadPlan) throws -> [any WorkloadCase] { try makeCases(plan) }
}

/// One setting of a workload: prepared once, measured in rounds.
package protocol WorkloadCase: AnyObject {
    var parameters: [Measurement.Parameter] { get }
    /// Builds the measured objects and warms them up.
    func prepare() async throws
    /// Does the work once, the same work every time.
    func round() async throws -> [Sample]
    /// Releases the resources that `prepare` acquired.
    func finish() async throws
}

extension WorkloadCase {
    func finish() async throws {}
}

/// The result of one round for one quantity.
package struct Sample: Sendable {
    /// The result of a peer that did the same work in the same round.
    package struct Reference: Sendable {
        let peer: String
        let value: Double
    }

    package let quantity: String
    package let unit: Unit
    package let better: Measurement.Direction
    package let value: Double
    /// The times of the operations that the value is about; a row needs at least one.
    package var histogram: Histogram?
    package var reference: Reference?
    package var parameters: [Measurement.Parameter] = []

    /// A sample of the nanoseconds that one operation takes.
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

    /// A sample that improves as it falls.
    package static func lowerIsBetter(_ quantity: String, _ value: Double, _ unit: Unit) -> Sample {
        Sample(quantity: quantity, unit: unit, better: .lower, value: value)
    }

    /// A sample that improves as it rises.
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

/// The work of a round went wrong, so its figures would be false.
package struct WorkloadFailure: Error, Hashable, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }

    /// A round began before `prepare`.
    static let notPrepared = WorkloadFailure("The workload was not prepared")

    /// Throws unless the check of the work's result succeeds.
    static func require(_ condition: Bool, _ what: @autoclosure () -> String) throws {
        guard condition else { throw WorkloadFailure(what()) }
    }
}
