extension HTTPCache.Statistics {
    /// One metric of the statistics, for a system that collects metrics.
    public struct Metric: Sendable {
        /// The kind of a metric.
        public enum Kind: String, Hashable, Sendable {
            /// A count that only grows.
            case counter
            /// A value that rises and falls.
            case gauge
        }

        /// A value of a metric.
        public struct Sample: Hashable, Sendable {
            /// The value of the metric's label; `""` if the metric has no label.
            public let label: String
            /// The count, or the value.
            public let value: Int
        }

        /// The name in the Prometheus text, without a prefix.
        public let name: String
        /// The kind.
        public let kind: Kind
        /// One sentence about the metric.
        public let help: String
        /// The name of the label that tells the samples apart; `nil` for a metric of one sample.
        public let label: String?
        /// The samples in the order of their labels.
        public let samples: [Sample]
    }
}
