/// The proof that the log of a fleet has taken a purge.
public struct FleetReceipt: Hashable, Sendable {
    /// The place of the purge in the log; a later purge has a larger one.
    public let position: UInt64
    /// The replicas of the log's server that confirmed the purge.
    public let replicas: Int
    /// The replicas that were connected to the log's server when the purge was taken.
    public let connectedReplicas: Int
    /// The machines that have applied the purge; `nil` if the purge did not wait for them, or if
    /// their reports cannot be read.
    public internal(set) var reach: FleetReach?

    package init(position: UInt64, replicas: Int, connectedReplicas: Int) {
        self.position = position
        self.replicas = replicas
        self.connectedReplicas = connectedReplicas
    }

    /// Whether the purge survives the loss of the log's server, as far as its replicas go.
    ///
    /// It is also `true` if the server has no replica, because then none can be late.
    public var isReplicated: Bool { replicas > 0 || connectedReplicas == 0 }
}

/// The machines of a fleet that a purge has reached.
public struct FleetReach: Hashable, Sendable {
    /// The machines that read the log and have reported within the last ten seconds, this one
    /// included.
    public let machines: Int
    /// The machines among them that have applied the purge: they serve nothing that it covers.
    public let applied: Int

    package init(machines: Int, applied: Int) {
        self.machines = machines
        self.applied = applied
    }

    /// Whether every machine that is known has applied the purge.
    public var isComplete: Bool { machines > 0 && applied == machines }
}
