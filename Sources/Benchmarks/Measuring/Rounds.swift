/// The values of one metric over the rounds of a run.
package struct Rounds: Hashable, Sendable {
    package private(set) var values: [Double]

    package init(_ values: [Double] = []) { self.values = values }

    package mutating func append(_ value: Double) { values.append(value) }

    package var median: Double {
        guard !values.isEmpty else { return 0 }
        let sorted = values.sorted()
        let middle = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }

    /// The difference between the largest and the smallest value.
    package var distance: Double { (values.max() ?? 0) - (values.min() ?? 0) }

    /// The same as a share of the median.
    package var spread: Double {
        let (distance, middle) = (distance, median)
        if distance == 0 { return 0 }
        return middle == 0 ? .infinity : distance / abs(middle)
    }
}
