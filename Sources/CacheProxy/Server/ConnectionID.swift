/// Names a connection of one worker: its place in the table, and which user of that place it is.
struct ConnectionID: Hashable, Sendable {
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
