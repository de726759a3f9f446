import Platform

/// Repeats a step until it returns `true`, for at most 20 seconds; returns whether it did.
package func eventually(seconds: UInt64 = 20, _ step: () async -> Bool) async -> Bool {
    let end = monotonicNanoseconds() + seconds * 1_000_000_000
    while monotonicNanoseconds() < end {
        if await step() { return true }
        await pause(milliseconds: 5)
    }
    // The thread may have been stopped for longer than that.
    return await step()
}

/// Waits on a thread of its own, because a test may have only one or two threads for its tasks.
package func pause(milliseconds: Int32) async {
    await PlainThread.run { _ = poll(nil, 0, milliseconds) }
}
