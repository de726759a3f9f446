import Platform

/// Maps the values of one axis to positions from 0 to 1, and selects the labelled values.
struct PlotScale {
    /// The spacing of values on an axis.
    enum Kind {
        case linear
        case logarithmic
    }

    /// One labelled position.
    struct Tick {
        let value: Double
        let label: String
    }

    let kind: Kind
    let low: Double
    let high: Double
    let ticks: [Tick]

    /// Creates a scale around `values`, widened to round numbers.
    init(_ kind: Kind, around values: [Double], label: (Double) -> String) {
        self.kind = kind
        let usable = values.filter { $0.isFinite && (kind == .linear || $0 > 0) }
        var low = usable.min() ?? 0
        var high = usable.max() ?? 1
        let positions: [Double]
        switch kind {
        case .linear:
            // A linear axis starts at zero; otherwise the plot would exaggerate differences.
            low = min(0, low)
            if high <= low { high = low + 1 }
            let step = Self.roundStep((high - low) / 5)
            high = (high / step - 1e-9).rounded(.up) * step
            positions = Array(stride(from: low, through: high + step / 2, by: step))
        case .logarithmic:
            if usable.isEmpty { (low, high) = (1, 10) }
            (low, high) = Self.decadeParts(low, high)
            positions = Self.logarithmicTicks(low, high)
        }
        self.low = low
        self.high = high
        ticks = positions.map { Tick(value: $0, label: label($0)) }
    }

    /// Creates a scale with the given ends and labels.
    init(_ kind: Kind, from low: Double, to high: Double, ticks: [Tick]) {
        self.kind = kind
        self.low = low
        self.high = high
        self.ticks = ticks
    }

    func position(_ value: Double) -> Double {
        switch kind {
        case .linear: (value - low) / (high - low)
        case .logarithmic:
            log(max(value, Double.leastNormalMagnitude) / low) / log(high / low)
        }
    }

    /// Returns the smallest step of 1, 2, 2.5 or 5 times a power of ten that is not below `step`.
    private static func roundStep(_ step: Double) -> Double {
        let decade = pow(10, floor(log10(step)))
        let factor = [1, 2, 2.5, 5, 10].first { $0 * decade >= step * 0.999 } ?? 10
        return factor * decade
    }

    /// Widens both ends to the nearest 1, 2 or 5 times a power of ten.
    private static func decadeParts(_ low: Double, _ high: Double) -> (Double, Double) {
        func parts(_ value: Double) -> [Double] {
            let decade = pow(10, floor(log10(value) + 1e-9))
            return [1, 2, 5, 10].map { $0 * decade }
        }
        let bottom = parts(low).last { $0 <= low * 1.001 } ?? low
        var top = parts(high).first { $0 >= high * 0.999 } ?? high
        if top <= bottom * 1.9 { top = bottom * 10 }
        return (bottom, top)
    }

    private static func logarithmicTicks(_ low: Double, _ high: Double) -> [Double] {
        let decades = log10(high / low)
        let factors: [Double] = decades > 3.2 ? [1] : decades > 1.6 ? [1, 3] : [1, 2, 5]
        var ticks: [Double] = []
        var decade = pow(10, floor(log10(low) + 1e-9))
        while decade <= high * 1.001 {
            ticks += factors.map { $0 * decade }
                .filter { $0 >= low * 0.999 && $0 <= high * 1.001 }
            decade *= 10
        }
        return ticks
    }
}
