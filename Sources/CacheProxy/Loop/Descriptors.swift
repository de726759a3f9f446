import Platform

/// Closes a descriptor; for types that have a `close` of their own.
func closeDescriptor(_ descriptor: Int32) { _ = close(descriptor) }

/// Bytes that a pipe takes without waiting if it takes any: PIPE_BUF.
#if os(Linux)
    let pipeBytes = 4_096
#else
    let pipeBytes = 512
#endif

/// Writes as much as a pipe, a socket or a terminal takes at once.
///
/// The flag O_NONBLOCK would do the same, but other processes share the pipes of standard output and
/// standard error.
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
