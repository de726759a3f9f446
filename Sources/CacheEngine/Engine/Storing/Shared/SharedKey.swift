/// The name of an entry in the shared store.
package struct SharedKey: Hashable, Sendable {
    /// The key of the entry.
    package let bytes: [UInt8]
    /// The key of its resource, which is another one if the entry is a variant.
    package let resource: [UInt8]

    package init(bytes: [UInt8], resource: [UInt8]) {
        self.bytes = bytes
        self.resource = resource
    }
}

extension RequestKey {
    /// The name of the entry for other machines.
    var shared: SharedKey { SharedKey(bytes: bytes, resource: resource ?? bytes) }

    /// The key of the resource, if this is the key of a variant.
    var resource: [UInt8]? {
        bytes.withUnsafeBytes { ResourceTag.resource(in: $0).map { [UInt8]($0) } }
    }
}
