/// An optional number in the size of the number; one value represents `nil`.
///
/// A value out of range is clamped to the nearest representable number.
struct OptionalNumber<Number: FixedWidthInteger & Sendable>: Hashable, Sendable {
    private var raw: Number

    private static var nothing: Number { Number.isSigned ? .min : .max }

    init(_ value: Int?) {
        guard let value else {
            raw = Self.nothing
            return
        }
        raw = Number(clamping: value)
        if raw == Self.nothing { raw ^= 1 }
    }

    var value: Int? {
        get { raw == Self.nothing ? nil : Int(raw) }
        set { self = Self(newValue) }
    }
}
