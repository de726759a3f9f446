import CacheTestSupport
import RESP
import Testing

@Suite struct RESPCommandTests {
    @Test(arguments: [
        (RESPCommand("PING"), "*1\r\n$4\r\nPING\r\n"),
        (RESPCommand("GET", key: "k"), "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"),
        (RESPCommand("SET", key: "", "ä"), "*3\r\n$3\r\nSET\r\n$0\r\n\r\n$2\r\nä\r\n"),
    ])
    func commandIsAnArrayOfBulkStrings(command: RESPCommand, text: String) {
        #expect(String(decoding: command.encoded, as: UTF8.self) == text)
        #expect(command.encodedBytes == text.utf8.count)
    }

    @Test(arguments: [0, 1, 9, 10, -1, -10, 1_000_000, Int.max, Int.min])
    func numberIsWrittenInDigits(number: Int) {
        var command = RESPCommand("EXPIRE")
        command.add(number)
        let digits = String(number)
        let text = "*2\r\n$6\r\nEXPIRE\r\n$\(digits.utf8.count)\r\n\(digits)\r\n"
        #expect(String(decoding: command.encoded, as: UTF8.self) == text)
        #expect(command.encodedBytes == text.utf8.count)
    }

    @Test(arguments: 0..<32)
    func parserReadsWhatACommandWrites(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var command = RESPCommand("X")
        var words: [RESPValue] = [.bulk([0x58])]
        var buffer: [UInt8] = []
        for _ in 0..<Int.random(in: 0..<20, using: &random) {
            let word = (0..<Int.random(in: 0..<200, using: &random)).map { _ in
                UInt8(truncatingIfNeeded: random.next())
            }
            command.add(word)
            words.append(.bulk(word))
        }
        command.append(to: &buffer)
        command.append(to: &buffer)
        let value = RESPValue.array(words)
        #expect(Reading(buffer, pieceBytes: 11) == Reading(values: [value, value]))
    }
}
