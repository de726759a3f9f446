/// A number or nothing, in the room of the number: the smallest one stands for nothing.
struct OptionalNumber: Hashable, Sendable {
    private var raw: Int

    init(_ value: Int?) { raw = value ?? Int.min }

    var value: Int? {
        get { raw == Int.min ? nil : raw }
        set { self = Self(newValue) }
    }
}
