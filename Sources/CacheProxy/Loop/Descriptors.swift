import Platform

/// Closes a descriptor; for types that have a `close` of their own.
func closeDescriptor(_ descriptor: Int32) { _ = close(descriptor) }
