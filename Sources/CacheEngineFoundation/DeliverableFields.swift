internal import CacheEngine

/// The form that a response must have for URLSession on Linux to accept it from a cache.
///
/// URLSession on Linux examines the fields of a cached response. It drops the response and loads
/// from the origin if it finds `Vary`, `no-cache`, `no-store`, an `Expires` without `max-age`, or
/// an expired `max-age`. The engine has already decided by all rules of HTTP that the response may
/// be used. The fields that would mislead URLSession are therefore renamed with the prefix
/// `Origin-`, where the program can still read them.
enum DeliverableFields {
    /// The statuses that URLSession on Linux accepts from a cache.
    static let statuses: Set<Int> = [200, 203, 204, 206, 300, 301, 404, 405, 410, 414, 501]

    static func isDeliverable(status: Int, fields: HeaderFields) -> Bool {
        statuses.contains(status) && !fields.contains("WWW-Authenticate")
            && !fields.contains("Proxy-Authenticate")
    }

    static func shaped(_ fields: HeaderFields) -> HeaderFields {
        var fields = fields
        move("Vary", to: prefix + "Vary", in: &fields)
        let control = fields["Cache-Control"] ?? ""
        guard isMisleading(control) || fields.contains("Expires") else { return fields }
        move("Cache-Control", to: prefix + "Cache-Control", in: &fields)
        move("Expires", to: prefix + "Expires", in: &fields)
        fields["Cache-Control"] = longLifetime
        return fields
    }

    /// The fields as they were before `shaped`; those that `shaped` has not changed stay.
    ///
    /// A field that the program itself has set stays too.
    static func restored(_ fields: HeaderFields) -> HeaderFields {
        var fields = fields
        // The long lifetime never stands without one of these two.
        let hasMovedLifetime =
            fields.contains(prefix + "Cache-Control") || fields.contains(prefix + "Expires")
        if hasMovedLifetime, fields["Cache-Control"] == longLifetime {
            fields.remove("Cache-Control")
        }
        for name in ["Cache-Control", "Expires", "Vary"] where !fields.contains(name) {
            move(prefix + name, to: name, in: &fields)
        }
        return fields
    }

    private static let prefix = "Origin-"
    private static let longLifetime = "max-age=\(longLifetimeSeconds)"
    /// Longer than any cache keeps a response, and too short to overflow a date.
    private static let longLifetimeSeconds = 10 * 365 * 86_400

    /// Whether URLSession may drop the response, now or with an older `Date`.
    private static func isMisleading(_ control: String) -> Bool {
        let control = control.lowercased()
        // Wherever it stands: URLSession trims more kinds of whitespace than HTTP has, and a field that
        // is renamed without need misleads nobody.
        return control.contains("no-") || control.contains("max-age")
    }

    private static func move(_ name: String, to other: String, in fields: inout HeaderFields) {
        guard let value = fields[name] else { return }
        fields.remove(name)
        fields[other] = value
    }
}
