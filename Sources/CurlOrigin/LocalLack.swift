package import CacheEngine

/// No socket could be opened or connected, or no name looked up, for want of a file, a port or
/// memory: a fault of this machine, which counts against no origin.
///
/// The cache sees the code `originFailed`, as for every error of an origin that has no code.
package struct LocalLack: Error, CustomStringConvertible {
    package let shown: CacheError

    package init(shown: CacheError) { self.shown = shown }

    package var description: String { shown.detail }
}
