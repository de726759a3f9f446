import Testing

@testable import HTTPCaching

@Suite("The proxies that a request may still pass, RFC 9110 §7.6.2")
struct MaxForwardsTests {
    static let rows: [([String], MaxForwards)] = [
        ([], .unlimited), (["0"], .exhausted), (["000"], .exhausted), (["1"], .next(0)),
        (["10"], .next(9)), (["256"], .next(255)), (["257"], .next(255)),
        (["99999999999999999999999"], .next(255)), ([""], .unlimited), (["-1"], .unlimited),
        (["+1"], .unlimited), (["1.0"], .unlimited), (["x"], .unlimited), (["1, 0"], .unlimited),
        (["5", "3"], .next(2)), (["5", "0"], .exhausted), (["x", "3"], .next(2)),
    ]

    @Test("A number goes on one lower, and 0 ends the way", arguments: rows)
    func numbers(_ row: ([String], MaxForwards)) {
        let fields = FieldSection(row.0.map { ("Max-Forwards", $0) })
        #expect(MaxForwards(fields) == row.1)
    }
}
