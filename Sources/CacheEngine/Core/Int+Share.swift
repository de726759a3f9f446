extension Int {
    /// A share from 0 to 1 of this number, rounded down; all of the largest number is that number.
    func scaled(by share: Double) -> Int {
        // `Double(Int.max)` is one more than an `Int` can hold.
        Int(exactly: (Double(self) * share).rounded(.down)) ?? .max
    }
}
