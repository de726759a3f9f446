/// Names a connection of one worker: its place in the table, and the number of earlier users of it.
struct ConnectionID: Hashable, Sendable {
    /// The highest bit of a token is that of exchanges with origins.
    static let generationMax: UInt32 = .max >> 1

    let index: UInt32
    let generation: UInt32

    init(index: UInt32, generation: UInt32) {
        self.index = index
        self.generation = generation
    }

    init(token: UInt64) {
        index = UInt32(truncatingIfNeeded: token)
        generation = UInt32(truncatingIfNeeded: token >> 32)
    }

    var token: UInt64 { UInt64(generation) << 32 | UInt64(index) }
}
