internal import RESP

/// Commands that travel to one server in one piece, and the place of each in its caller's group.
///
/// While a slot is being moved, its keys are at two servers, and only the replies tell which key is
/// where. So each redirected command goes to the server that its reply names, after ASKING if the
/// reply is ASK. The others keep their replies: at the other server, a read would miss what is
/// there still, and a write would create the key a second time.
struct CommandGroup {
    let server: NodeAddress
    private(set) var commands: [RESPCommand] = []
    /// The place of each command in the caller's group; `nil` for ASKING.
    private var places: [Int?] = []

    /// A caller's group, on its way to the server of its key.
    init(_ commands: [RESPCommand], to server: NodeAddress) {
        self.server = server
        self.commands = commands
        places = Array(commands.indices)
    }

    private init(to server: NodeAddress) { self.server = server }

    private mutating func add(_ command: RESPCommand, at place: Int?) {
        commands.append(command)
        places.append(place)
    }

    /// Puts replies at the places of their commands.
    func put(_ replies: [RESPValue], into all: inout [RESPValue]) {
        for (place, reply) in zip(places, replies) { if let place { all[place] = reply } }
    }

    /// The commands that must be sent again, in their order: a new group begins with each change of
    /// the server.
    ///
    /// A command without a key, such as WAIT, goes with the command before it.
    func redirected(
        by replies: [RESPValue],
        _ redirection: (RESPValue) -> Redirection?
    ) -> [CommandGroup] {
        assert(replies.count == commands.count, "a reply to each command")
        var groups: [CommandGroup] = []
        var current: Redirection?
        for (number, reply) in replies.enumerated() {
            guard let place = places[number] else { continue }
            let command = commands[number]
            let hasKey = command.slot != nil
            if hasKey {
                current =
                    Mutant.redirectsWholeGroups.isOn
                    ? replies.compactMap(redirection).first : redirection(reply)
            }
            guard let current else { continue }
            if groups.last?.server != current.target {
                groups.append(CommandGroup(to: current.target))
            }
            let last = groups.count - 1
            if hasKey, case .ask = current { groups[last].add(RESPCommand("ASKING"), at: nil) }
            groups[last].add(command, at: place)
        }
        return groups
    }
}
