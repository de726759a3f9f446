import Testing

@testable import CacheProxy

/// What the events of a connection to an origin mean, row by row.
@Suite struct UpstreamMachineTests {
    /// A connection in the middle of its exchange, which may be its second.
    private func machine(isKept: Bool, _ events: [Event]) -> UpstreamMachine {
        var machine = UpstreamMachine()
        machine.connected()
        if isKept { for event in Event.wholeExchange { apply(event, to: &machine) } }
        for event in events { apply(event, to: &machine) }
        return machine
    }

    enum Event: Sendable, CaseIterable {
        case begin, sent, byte, head, lastHead, body, bodyAndMore, inputEnds

        static let wholeExchange: [Event] = [.begin, .sent, .byte, .head, .body]
    }

    private func apply(_ event: Event, to machine: inout UpstreamMachine) {
        switch event {
        case .begin: machine.exchangeBegan()
        case .sent: machine.sentAll()
        case .byte: machine.received()
        case .head: machine.headCame(mayPersist: true)
        case .lastHead: machine.headCame(mayPersist: false)
        case .body: _ = machine.bodyEnded(isInputLeft: false)
        case .bodyAndMore: _ = machine.bodyEnded(isInputLeft: true)
        case .inputEnds: machine.inputEnds()
        }
    }

    @Test(arguments: [
        ([Event.begin, .sent, .byte, .head, .body], true),
        // The origin answered before the content was sent.
        ([.begin, .byte, .head, .body], false),
        ([.begin, .sent, .byte, .lastHead, .body], false),
        ([.begin, .sent, .byte, .head, .bodyAndMore], false),
        ([.begin, .sent, .byte, .inputEnds, .head, .body], false),
        ([.begin, .sent, .byte, .head, .inputEnds, .body], false),
    ])
    func connectionIsKeptAfterAWholeExchangeOnly(events: [Event], isKept: Bool) {
        let machine = machine(isKept: false, events)
        #expect(machine.phase == (isKept ? .idle : .closed))
    }

    @Test(arguments: [
        (false, [Event](), UpstreamMachine.Loss.nothing),
        (false, [.begin], .unanswered),
        (false, [.begin, .sent], .unanswered),
        (false, [.begin, .sent, .byte], .withinHead),
        (false, [.begin, .sent, .byte, .head], .withinBody),
        (false, [.begin, .sent, .byte, .head, .body], .nothing),
        (true, [], .nothing),
        (true, [.begin], .unansweredOnKept),
        (true, [.begin, .sent], .unansweredOnKept),
        (true, [.begin, .sent, .byte], .withinHead),
        (true, [.begin, .sent, .byte, .head], .withinBody),
    ])
    func lossMeansWhatHadArrived(
        isKept: Bool,
        events: [Event],
        loss: UpstreamMachine.Loss
    ) {
        var machine = machine(isKept: isKept, events)
        #expect(machine.lost() == loss)
        #expect(machine.isClosed)
    }

    @Test func lossBeforeTheConnectionWasMadeMeansUnreached() {
        var machine = UpstreamMachine()
        #expect(machine.lost() == .unreached)
    }

    @Test func secondExchangeBeginsWithNothingReceivedOrSent() {
        let machine = machine(isKept: true, [.begin])
        #expect(machine.isKept && !machine.hasReceived && !machine.hasSentAll && machine.isBusy)
    }
}
