import Testing

@testable import HTTPCaching

@Suite struct FieldSectionTests {
    @Test func emptySectionHasNoBytes() {
        #expect(FieldSection().bytes.isEmpty)
    }
}
