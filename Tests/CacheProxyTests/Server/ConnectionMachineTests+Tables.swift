import CacheTestSupport
import Testing

@testable import CacheProxy

/// Every arrow of the machine, one row each.
extension ConnectionMachineTests {
    static let keepAlive: [Row] = [
        Row("new", [.settled], "wait keep", readsOn: true),
        Row("idle after a hit", hit + [.settled], "wait start(idle)", readsOn: true),
        Row("head begun", [.readable, .read, .inputHeld], "start(head)", readsOn: true),
        Row("head goes on", [.inputHeld, .settled], "wait keep", readsOn: true),
        Row("answer pending", exchange, "stop", readsOn: false),
        Row("no limit on an answer", exchange + [.settled], "wait keep", readsOn: false),
        Row("next request held back", exchange + [.inputHeld], "keep", readsOn: false),
        Row(
            "held request is next",
            exchange + [.inputHeld, .answer, .responseEnded, .settled],
            "wait start(head)",
            readsOn: true
        ),
        Row("asked to close", hit.dropLast(2) + [.lastAnswer], "ends", readsOn: false),
        Row(
            "closed behind the last answer",
            hit.dropLast(2) + [.lastAnswer, .responseEnded, .settled],
            "close",
            readsOn: false
        ),
        Row(
            "lingers where input is unread",
            [.readable, .read(isShort: false), .request, .lastAnswer, .responseEnded, .settled],
            "linger start(linger)",
            readsOn: true
        ),
        Row(
            "lingering limit",
            [.readable] + refusal + [.settled, .late],
            "close",
            readsOn: false
        ),
        Row(
            "lingering reads a bounded number of bytes",
            [.readable] + refusal + [.settled, .discarded(101), .settled],
            "wait keep",
            readsOn: false
        ),
    ]

    static let draining: [Row] = [
        Row(
            "answer in a drain is the last",
            exchange + [.answer(mayPersist: true, isUnasked: false, isDraining: true)],
            "ends",
            readsOn: false
        ),
        Row(
            "idle at the end of a drain",
            hit + [.settled(endsIdle: true)],
            "close",
            readsOn: false
        ),
        Row("new at the end of a drain", [.settled(endsIdle: true)], "close", readsOn: false),
        Row(
            "answering at the end of a drain",
            exchange + [.settled(endsIdle: true)],
            "wait keep",
            readsOn: false
        ),
        Row(
            "head at the end of a drain",
            [.inputHeld, .settled(endsIdle: true)],
            "wait keep",
            readsOn: true
        ),
        Row(
            "content at the end of a drain",
            upload + [.settled(endsIdle: true)],
            "wait keep",
            readsOn: true
        ),
        Row(
            "dropped content at the end of a drain",
            upload + [.answer, .responseEnded, .settled(endsIdle: true)],
            "linger start(linger)",
            readsOn: true
        ),
    ]

    static let halfClosed: [Row] = [
        Row("ends idle", hit + [.inputEnded, .settled], "close", readsOn: false),
        Row("ends in a head", [.inputHeld, .inputEnded, .settled], "close", readsOn: false),
        Row("ends behind its request", exchange + [.inputEnded], "goOn", readsOn: false),
        Row(
            "answer behind the end is the last",
            exchange + [.inputEnded, .answer],
            "ends",
            readsOn: false
        ),
        Row(
            "answer before a held request is not the last",
            exchange + [.inputHeld, .inputEnded, .answer],
            "goesOn",
            readsOn: false
        ),
        Row("ends in its content", upload + [.inputEnded], "close", readsOn: true),
        Row(
            "nothing lingers behind the end",
            [.inputEnded] + refusal + [.settled],
            "close",
            readsOn: false
        ),
        Row(
            "ends while it lingers",
            [.readable] + refusal + [.settled, .inputEnded],
            "close",
            readsOn: true
        ),
        Row(
            "reported end keeps the socket readable",
            [.ending, .read, .request, .lastAnswer, .responseEnded, .settled],
            "linger start(linger)",
            readsOn: true
        ),
    ]

    static let content: [Row] = [
        Row("content limit", upload, "start(content)", readsOn: true),
        Row("waits for 100", exchange + [.content(isAwaited: false)], "stop", readsOn: false),
        Row(
            "100 was sent",
            exchange + [.content(isAwaited: false), .contentWanted],
            "start(content)",
            readsOn: true
        ),
        Row("reader is full", upload + [.contentFilled], "stop", readsOn: false),
        Row(
            "reader has room again",
            upload + [.contentFilled, .contentWanted],
            "start(content)",
            readsOn: true
        ),
        Row("wanted after its end", exchange + [.contentWanted], "keep", readsOn: false),
        Row("content ended", upload + [.contentEnded], "stop", readsOn: false),
        Row(
            "rest of the content is dropped",
            upload + [.contentFilled, .answer, .responseEnded],
            "start(content)",
            readsOn: true
        ),
        Row(
            "dropped content begins its limit anew",
            upload + [.answer, .responseEnded, .contentCame],
            "start(content)",
            readsOn: true
        ),
        Row(
            "too much to drop",
            upload + [.answer, .responseEnded, .discarded(101), .settled],
            "linger start(linger)",
            readsOn: true
        ),
        Row(
            "dropped content saves the connection",
            upload + [.answer, .responseEnded, .discarded(100), .contentEnded, .settled],
            "wait start(idle)",
            readsOn: true
        ),
        Row(
            "answer with no more content left than is dropped",
            upload + [
                .answer(mayPersist: true, isUnasked: false, isDraining: false, contentRest: 100)
            ],
            "goesOn",
            readsOn: true
        ),
        Row(
            "answer with more content left than is dropped",
            upload + [
                .answer(mayPersist: true, isUnasked: false, isDraining: false, contentRest: 101)
            ],
            "ends",
            readsOn: true
        ),
        Row(
            "answer to content nobody asked for",
            exchange + [
                .content(isAwaited: false),
                .answer(mayPersist: true, isUnasked: true, isDraining: false),
            ],
            "ends",
            readsOn: false
        ),
        Row(
            "malformed before the answer",
            upload + [.contentFailed(hasResponseBegun: false)],
            "refuse",
            readsOn: false
        ),
        Row(
            "malformed behind the answer",
            upload + [
                .answer, .contentFailed(hasResponseBegun: true), .responseEnded, .settled,
            ],
            "linger start(linger)",
            readsOn: true
        ),
    ]

    static let output: [Row] = [
        Row("write limit", hit + [.queued], "start(write)", readsOn: true),
        Row("more is queued", hit + [.queued, .queued], "keep", readsOn: true),
        Row("progress", hit + [.queued, .sent(hasMore: true)], "start(write)", readsOn: true),
        Row(
            "client is up to date",
            exchange + [.answer, .queued, .sent(hasMore: false)],
            "stop",
            readsOn: false
        ),
        Row(
            "client is up to date, and its content goes on",
            upload + [.answer, .queued, .sent(hasMore: false)],
            "start(content)",
            readsOn: true
        ),
        Row(
            "client is up to date, and its content waits for the reader",
            upload + [.answer, .contentFilled, .queued, .sent(hasMore: false)],
            "stop",
            readsOn: false
        ),
        Row(
            "content buys a client that takes nothing no time",
            upload + [.answer, .queued, .contentCame],
            "keep",
            readsOn: true
        ),
        Row(
            "a request behind it buys none",
            hit + [.queued, .request, .pending, .content(isAwaited: true), .contentCame, .settled],
            "wait keep",
            readsOn: true
        ),
        Row("half a request buys none", hit + [.queued, .inputHeld], "keep", readsOn: true),
        Row(
            "a full reader buys none",
            upload + [.answer, .queued, .contentFilled],
            "keep",
            readsOn: false
        ),
        Row(
            "a reader that has room again buys none",
            upload + [.answer, .queued, .contentFilled, .contentWanted],
            "keep",
            readsOn: true
        ),
        Row(
            "the end of the content buys none",
            upload + [.answer, .queued, .contentEnded],
            "keep",
            readsOn: false
        ),
        Row(
            "half a request has its time once all is taken",
            hit + [.queued, .inputHeld, .sent(hasMore: false), .settled],
            "wait start(head)",
            readsOn: true
        ),
        Row(
            "queued behind a pending answer",
            hit + [.queued, .request, .pending, .settled],
            "wait keep",
            readsOn: false
        ),
        Row(
            "queue is sent before the close",
            exchange + [.lastAnswer, .queued, .responseEnded, .settled],
            "wait keep",
            readsOn: false
        ),
        Row(
            "broken answer",
            exchange + [.answer, .responseBroken, .responseEnded, .settled],
            "close",
            readsOn: false
        ),
    ]

    static let late: [Row] = [
        Row("new", [.late], "close", readsOn: true),
        Row("head", [.readable, .read, .inputHeld, .late], "refuse", readsOn: true),
        Row("idle", hit + [.settled, .late], "close", readsOn: true),
        Row("content before the answer", upload + [.late], "close", readsOn: true),
        Row(
            "content behind the answer",
            upload + [.answer, .late(isResponseRunning: true)],
            "ignoreContent",
            readsOn: false
        ),
        Row(
            "client takes nothing",
            upload + [.answer, .queued, .late(isResponseRunning: true)],
            "close",
            readsOn: true
        ),
        Row(
            "client takes what the system holds",
            hit + [.queued, .late(isResponseRunning: false, takesOutput: true)],
            "wait(start(write))",
            readsOn: true
        ),
        Row(
            "client takes what the system holds, then nothing",
            hit + [.queued, .late(isResponseRunning: false, takesOutput: true), .late],
            "close",
            readsOn: true
        ),
        Row(
            "client that sends nothing has taken all",
            upload + [.late(isResponseRunning: false, takesOutput: true)],
            "close",
            readsOn: true
        ),
    ]
}
