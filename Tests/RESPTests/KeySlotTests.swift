import RESP
import Testing

@Suite struct KeySlotTests {
    /// The slots that `CLUSTER KEYSLOT` of redis 7.0.15 prints.
    @Test(arguments: [
        ("", 0), ("123456789", 12739), ("foo", 12182), ("{user1000}.following", 3443),
        ("{user1000}.followers", 3443), ("user1000", 3443), ("foo{}{bar}", 8363),
        ("foo{{bar}}zap", 4015), ("{bar", 4015), ("foo{bar}{zap}", 5061), ("bar", 5061),
    ])
    func slotIsThatOfTheServer(key: String, slot: UInt16) {
        #expect(KeySlot.slot(of: Array(key.utf8)) == slot)
    }

    @Test func firstKeyDecidesTheSlotOfACommand() {
        var command = RESPCommand("MGET", key: "{a}1")
        command.add(key: "b")
        #expect(command.slot == KeySlot.slot(of: Array("a".utf8)))
        #expect(RESPCommand("PING").slot == nil)
    }
}
