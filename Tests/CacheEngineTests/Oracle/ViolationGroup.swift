/// Violations that probably share one cause.
struct ViolationGroup: CustomStringConvertible {
    private let first: OracleRun.Violation
    private var conducts: [OracleOrigin.Conduct]
    private var count = 1

    /// Groups violations by their simplest cause.
    ///
    /// A pair of wishes belongs to the single wish that fails alone. Violations that differ only in
    /// the origin's conduct belong together.
    static func made(of violations: [OracleRun.Violation]) -> [Self] {
        var groups: [Self] = []
        for violation in violations.sorted(by: { $0.wishes.count < $1.wishes.count }) {
            if let index = groups.firstIndex(where: { $0.explains(violation) }) {
                groups[index].add(violation)
            } else {
                groups.append(Self(first: violation, conducts: [violation.conduct]))
            }
        }
        return groups
    }

    private func explains(_ violation: OracleRun.Violation) -> Bool {
        guard first.scene == violation.scene, first.step == violation.step,
            first.wishes.allSatisfy(violation.wishes.contains)
        else { return false }
        return conducts.contains(violation.conduct) || first.wishes.count == violation.wishes.count
    }

    private mutating func add(_ violation: OracleRun.Violation) {
        count += 1
        if !conducts.contains(violation.conduct) { conducts.append(violation.conduct) }
    }

    var description: String {
        let wishes = first.wishes.map(\.description).joined(separator: ", ")
        let conducts = conducts.map(\.rawValue).joined(separator: " ")
        return "\(count) × \(first.scene) [\(wishes)] origin: \(conducts); \(first.step): "
            + "with \(first.conduct): \(first.fault)"
    }
}
