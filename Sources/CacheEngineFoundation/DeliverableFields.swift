internal import CacheEngine

/// What an answer must look like for URLSession on Linux to take it from a cache.
///
/// There, URLSession looks at a cached answer's own fields and drops it, and asks the origin
/// itself, when it holds `Vary`, `no-cache`, `no-store`, an `Expires` without `max-age`, or a
/// `max-age` that has passed. Whether the answer may be used has been decided before, by HTTP's
/// whole rules; so what would mislead URLSession is moved to a field of the same name with
/// `Origin-` in front, where the program can still read it.
enum DeliverableFields {
    /// The statuses URLSession on Linux takes from a cache.
    static let statuses: Set<Int> = [200, 203, 204, 206, 300, 301, 404, 405, 410, 414, 501]

    static func isDeliverable(status: Int, fields: HeaderFields) -> Bool {
        statuses.contains(status) && !fields.contains("WWW-Authenticate")
            && !fields.contains("Proxy-Authenticate")
    }

    static func shaped(_ fields: HeaderFields) -> HeaderFields {
        var fields = fields
        if fields.contains("Vary") { move("Vary", in: &fields) }
        let control = fields["Cache-Control"] ?? ""
        guard isMisleading(control) || fields.contains("Expires") else { return fields }
        move("Cache-Control", in: &fields)
        move("Expires", in: &fields)
        fields["Cache-Control"] = "max-age=\(longLifetimeSeconds)"
        return fields
    }

    /// Beyond the age of anything a cache holds, and far from overflowing a date.
    private static let longLifetimeSeconds = 10 * 365 * 86_400

    /// Any of these may make URLSession drop the answer, now or with an older `Date`.
    private static func isMisleading(_ control: String) -> Bool {
        control.lowercased().split(separator: ",").contains { part in
            let directive = part.drop { $0 == " " }
            return directive.hasPrefix("no-") || directive.hasPrefix("max-age")
        }
    }

    private static func move(_ name: String, in fields: inout HeaderFields) {
        guard let value = fields[name] else { return }
        fields.remove(name)
        fields["Origin-" + name] = value
    }
}
