import Platform

/// Closes a descriptor; for types that have a `close` of their own.
func closeDescriptor(_ descriptor: Int32) { _ = close(descriptor) }

/// Bytes that a pipe takes without waiting if it takes any: PIPE_BUF.
#if os(Linux)
    let pipeBytes = 4_096
#else
    let pipeBytes = 512
#endif

/// A descriptor of this process alone for what `shared` writes to, if that is a terminal; else
/// `shared` itself.
///
/// A terminal that is ready may take less than `pipeBytes`, and a write would wait for the rest. It
/// is opened once more, without waiting: the flag O_NONBLOCK then concerns no other program.
func ownDescriptor(of shared: Int32) -> Int32 {
    var name = [CChar](repeating: 0, count: 1_024)
    guard !Mutant.sharesTheTerminal.isOn, isatty(shared) == 1,
        ttyname_r(shared, &name, name.count) == 0
    else { return shared }
    let own = Platform.open(name, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
    return own >= 0 ? own : shared
}

/// Writes as much as a pipe, a socket or a terminal takes at once.
///
/// The flag O_NONBLOCK would do the same, but other processes share the pipes of standard output and
/// standard error. A terminal comes from `ownDescriptor`.
///
/// - Returns: The number of bytes, and 0 or the error number for the rest.
func writeWithoutWaiting(
    _ descriptor: Int32,
    _ bytes: UnsafeRawBufferPointer,
    pieceBytesMax: Int = pipeBytes
) -> (count: Int, code: Int32) {
    var count = 0
    while count < bytes.count, let base = bytes.baseAddress {
        var watched = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        guard poll(&watched, 1, 0) > 0 || Mutant.waitsForTheLog.isOn else {
            return (count, EAGAIN)
        }
        let written = write(descriptor, base + count, min(pieceBytesMax, bytes.count - count))
        if written < 0, errno == EINTR { continue }
        guard written > 0 else { return (count, written < 0 ? errno : EIO) }
        count += written
    }
    return (count, 0)
}
