import Testing

@testable import CacheEngine

@Suite struct OptionalNumberTests {
    private static func kept<Number: FixedWidthInteger & Sendable>(
        _ value: Int?,
        as number: Number.Type
    ) -> Int? {
        OptionalNumber<Number>(value).value
    }

    @Test func numberThatFitsIsKept() {
        for value in [nil, 0, 1, 599, 65_534] {
            #expect(Self.kept(value, as: UInt16.self) == value)
            #expect(Self.kept(value, as: UInt32.self) == value)
            #expect(Self.kept(value, as: Int.self) == value)
        }
        for value in [-1, Int.max, Int.min + 1] { #expect(Self.kept(value, as: Int.self) == value) }
    }

    @Test func numberOutOfRangeIsClampedAndNeverNil() {
        #expect(Self.kept(65_535, as: UInt16.self) == 65_534)
        #expect(Self.kept(.max, as: UInt32.self) == 4_294_967_294)
        #expect(Self.kept(-1, as: UInt32.self) == 0)
        #expect(Self.kept(.min, as: Int.self) == .min + 1)
    }

    @Test func optionalNumberIsAsSmallAsItsNumber() {
        #expect(MemoryLayout<OptionalNumber<UInt16>>.size == 2)
        #expect(MemoryLayout<OptionalNumber<Int>>.size == MemoryLayout<Int>.size)
    }
}
