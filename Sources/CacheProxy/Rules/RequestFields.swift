import CacheEngine
import HTTPCaching

/// The fields of a request for the cache and the origin: without the fields of the client's
/// connection and of its framing, and without names that two programs may read differently.
enum RequestFields {
    static func make(
        _ head: RequestHead,
        _ bytes: UnsafeRawBufferPointer,
        hostOverride: String?,
        names: ProxyConfiguration.FieldNames
    ) -> HeaderFields {
        var section = FieldSection()
        section.reserveCapacity(sizeBytes(head) + (hostOverride?.utf8.count ?? 0))
        if let hostOverride { section.append("Host", hostOverride) }
        let dropsHost = hostOverride != nil
        let mayDrop =
            dropsHost
            || !head.flags.isDisjoint(with: [
                .hasConnectionFields, .hasContentLength, .expectsContinue, .expectsElse,
            ])
        let dropsOddNames =
            names == .plain && head.flags.contains(.hasOddNames)
            && !Mutant.forwardsOddNames.isOn
        for place in head.fields {
            let name = UnsafeRawBufferPointer(rebasing: bytes[place.name])
            if mayDrop, isDropped(name, dropsHost: dropsHost, keepsList: head.flags) { continue }
            if dropsOddNames, !name.allSatisfy(ByteClass.isPlainName) { continue }
            section.append(
                nameBytes: name,
                valueBytes: UnsafeRawBufferPointer(rebasing: bytes[place.value])
            )
        }
        if head.flags.contains(.listsFields) {
            section = HopByHop.strip(section, for: .forwardingRequest)
        }
        return HeaderFields(section)
    }

    private static func sizeBytes(_ head: RequestHead) -> Int {
        head.fields.reduce(0) {
            $0 + $1.name.count + $1.value.count + FieldCursor.lineHeaderBytes
        }
    }

    private static func isDropped(
        _ name: UnsafeRawBufferPointer,
        dropsHost: Bool,
        keepsList flags: RequestHead.Flags
    ) -> Bool {
        switch name.count {
        case 2: RequestParser.equals(name, "te")
        case 4: dropsHost && RequestParser.equals(name, "host")
        case 6: RequestParser.equals(name, "expect")
        case 7: RequestParser.equals(name, "trailer") || RequestParser.equals(name, "upgrade")
        case 10:
            // A Connection field that lists other fields is needed until those are removed.
            RequestParser.equals(name, "keep-alive")
                || (!flags.contains(.listsFields) && RequestParser.equals(name, "connection"))
        case 14:
            RequestParser.equals(name, "content-length")
                || RequestParser.equals(name, "http2-settings")
        case 16: RequestParser.equals(name, "proxy-connection")
        case 17: RequestParser.equals(name, "transfer-encoding")
        case 19 where Mutant.forwardsProxyCredentials.isOn: false
        case 19: RequestParser.equals(name, "proxy-authorization")
        default: false
        }
    }
}
