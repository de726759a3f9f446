package import RESP

/// A script that runs on a server of the fleet: its steps happen at once, for every client.
///
/// Numbers are compared as numbers, and written without an exponent. Texts are compared for equality
/// only, because the order of texts depends on the server's environment.
package struct FleetScript: Sendable {
    package let text: StaticString
    /// The SHA-1 of the text, by which the server knows a script that it has run before.
    package let digest: StaticString

    /// The command that runs the script by its digest, or with its text if `isWhole`.
    package func command(_ keys: [[UInt8]], isWhole: Bool, _ words: [[UInt8]]) -> RESPCommand {
        let bytes = words.reduce(isWhole ? 2_048 : 256) { $0 + $1.count + 16 }
        var command = RESPCommand(isWhole ? "EVAL" : "EVALSHA", capacity: bytes)
        command.add(isWhole ? text : digest)
        command.add(keys.count)
        for key in keys { command.add(key: key) }
        for word in words { command.add(word) }
        return command
    }
}
