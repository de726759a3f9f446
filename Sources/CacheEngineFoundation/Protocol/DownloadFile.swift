#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking

    /// The file that a download task hands to its delegate or completion handler.
    ///
    /// URLSession on Linux finds the file in a property of the task's `URLProtocol` that has no
    /// public access, and traps if a protocol of another module has not set it. `handOver` sets it
    /// in place.
    final class DownloadFile: Sendable {
        let url: URL
        private let handle: FileHandle

        init() throws {
            let path = NSTemporaryDirectory() + "/CFNetworkDownload_" + UUID().uuidString + ".tmp"
            guard
                FileManager.default.createFile(
                    atPath: path,
                    contents: nil,
                    attributes: [.posixPermissions: 0o600]
                )
            else { throw URLError(.cannotCreateFile) }
            url = URL(fileURLWithPath: path)
            do {
                handle = try FileHandle(forWritingTo: url)
            } catch {
                throw URLError(.cannotOpenFile)
            }
        }

        func append(_ data: Data) throws {
            do { try handle.write(contentsOf: data) } catch { throw URLError(.cannotWriteToFile) }
        }

        func close() throws {
            do { try handle.close() } catch { throw URLError(.cannotCloseFile) }
        }

        func remove() { try? FileManager.default.removeItem(at: url) }

        // MARK: - Handing over

        /// Whether the property is where `handOver` writes.
        static let canBeHandedOver = canWrite()

        private static func canWrite() -> Bool {
            guard let url = URL(string: "http://localhost/") else { return false }
            let probe = CachingURLProtocol(
                request: URLRequest(url: url),
                cachedResponse: nil,
                client: nil
            )
            return write(url, to: probe)
                && (properties(of: probe) as? any PropertyTable)?.value(key) as? URL == url
        }

        /// Tells URLSession where the file is; to be called on the task's work queue.
        func handOver(to urlProtocol: CachingURLProtocol) { _ = Self.write(url, to: urlProtocol) }

        private static let key = "temporaryFileURL"

        private static func properties(of urlProtocol: CachingURLProtocol) -> Any? {
            var mirror: Mirror? = Mirror(reflecting: urlProtocol)
            while let current = mirror {
                if current.subjectType == URLProtocol.self {
                    return current.children.first { $0.label == "properties" }?.value
                }
                mirror = current.superclassMirror
            }
            return nil
        }

        /// Sets the property.
        ///
        /// The proof for the pointer: `properties` is the first stored property of `URLProtocol`,
        /// whose superclass has none, so it lies behind the two words of an object's header. Nothing
        /// is written unless the word there is the dictionary that reflection finds under that name;
        /// every `CachingURLProtocol` has more words behind it. The caller is on the work queue, on
        /// which alone URLSession reads and writes the dictionary.
        private static func write(_ url: URL, to urlProtocol: CachingURLProtocol) -> Bool {
            guard var table = properties(of: urlProtocol) as? any PropertyTable else {
                return false
            }
            let place = Unmanaged.passUnretained(urlProtocol).toOpaque() + headerBytes
            return withExtendedLifetime(urlProtocol) {
                guard place.load(as: UInt.self) == table.word, table.set(key, to: url) else {
                    return false
                }
                table.store(at: place)
                return true
            }
        }

        private static let headerBytes = 2 * MemoryLayout<UInt>.size
    }

    /// The dictionary of a `URLProtocol`, whose keys have a type without public access.
    private protocol PropertyTable {
        /// The reference to the dictionary's storage, its only word.
        var word: UInt { get }
        func value(_ name: String) -> Any?
        mutating func set(_ name: String, to value: Any) -> Bool
        /// Replaces the dictionary at `place`.
        func store(at place: UnsafeMutableRawPointer)
    }

    extension Dictionary: PropertyTable
    where Key: RawRepresentable, Key.RawValue == String, Value == Any {
        fileprivate var word: UInt { unsafeBitCast(self, to: UInt.self) }

        fileprivate func value(_ name: String) -> Any? { Key(rawValue: name).flatMap { self[$0] } }

        fileprivate mutating func set(_ name: String, to value: Any) -> Bool {
            guard let key = Key(rawValue: name) else { return false }
            self[key] = value
            return true
        }

        fileprivate func store(at place: UnsafeMutableRawPointer) {
            place.assumingMemoryBound(to: Self.self).pointee = self
        }
    }
#endif
