import RESP
import Testing

/// Every limit: its last permitted value, and the first refused one.
@Suite struct RESPLimitsTests {
    private let limits = RESPLimits(
        lineBytesMax: 30,
        bulkBytesMax: 100,
        arrayCountMax: 5,
        depthMax: 3,
        totalBytesMax: 250
    )

    /// The fault is reported with the last byte of `text`: before the announced bytes arrive.
    @Test(
        arguments: [
            ("+" + String(repeating: "x", count: 31), .lineTooLong(bytesMax: 30)),
            ("-" + String(repeating: "x", count: 31), .lineTooLong(bytesMax: 30)),
            ("$101\r\n", .bulkTooLarge(bytes: 101, bytesMax: 100)),
            ("$1073741824\r\n", .bulkTooLarge(bytes: 1 << 30, bytesMax: 100)),
            ("$9223372036854775807\r\n", .bulkTooLarge(bytes: .max, bytesMax: 100)),
            ("*6\r\n", .arrayTooLong(count: 6, countMax: 5)),
            ("*9223372036854775807\r\n", .arrayTooLong(count: .max, countMax: 5)),
            ("*1\r\n*1\r\n*1\r\n*1\r\n", .nestedTooDeep(depthMax: 3)),
            (
                "*2\r\n$100\r\n" + String(repeating: "b", count: 100) + "\r\n$87\r\n",
                .replyTooLarge(bytes: 251, bytesMax: 250)
            ),
            ("*5\r\n*3\r\n", .replyTooLarge(bytes: 256, bytesMax: 250)),
        ] as [(String, RESPFault)]
    )
    func firstValueBeyondALimitIsRefused(text: String, fault: RESPFault) {
        for pieceBytes in [1, 3, text.utf8.count] {
            #expect(Reading(text, pieceBytes: pieceBytes, limits).fault == fault)
            #expect(Reading(String(text.dropLast()), pieceBytes: pieceBytes, limits).fault == nil)
        }
    }

    @Test(arguments: [
        "+" + String(repeating: "x", count: 30) + "\r\n",
        "$100\r\n" + String(repeating: "b", count: 100) + "\r\n",
        "*5\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n", "*1\r\n*1\r\n*1\r\n*0\r\n",
        "*2\r\n$100\r\n" + String(repeating: "b", count: 100) + "\r\n$86\r\n"
            + String(repeating: "b", count: 86) + "\r\n",
    ])
    func lastPermittedValueIsRead(text: String) {
        for pieceBytes in [1, 3, text.utf8.count] {
            let reading = Reading(text, pieceBytes: pieceBytes, limits)
            #expect(reading.fault == nil)
            #expect(reading.values.count == 1)
        }
    }

    @Test func totalIsThatOfOneReply() {
        let text = String(
            repeating: "$100\r\n" + String(repeating: "b", count: 100) + "\r\n",
            count: 9
        )
        #expect(Reading(text, pieceBytes: 7, limits).values.count == 9)
    }

    @Test(
        arguments: [
            (.unknownType(0x48), "a value begins with 'H'; the server does not speak RESP2"),
            (.unknownType(0), "a value begins with byte 0; the server does not speak RESP2"),
            (
                .bulkTooLarge(bytes: 1 << 30, bytesMax: 100),
                "a bulk string has 1073741824 bytes; the limit is 100"
            ),
            (.malformedNumber(type: 0x24), "the text behind '$' is not a number"),
        ] as [(RESPFault, String)]
    )
    func faultNamesTheValueAndTheLimit(fault: RESPFault, text: String) {
        #expect(fault.description == text)
    }
}
