/// The right to fetch a key for the whole fleet, for as long as the holder renews it.
///
/// It saves requests to the origin and promises nothing: a record that comes too late is refused.
package struct SharedLease: Hashable, Sendable {
    package let key: SharedKey
    /// Random bytes that name the holder.
    package let token: [UInt8]

    package init(key: SharedKey, token: [UInt8]) {
        self.key = key
        self.token = token
    }

    /// How a lease ended without a record.
    package enum Ending: Hashable, Sendable {
        /// The response tells nothing of the next one, as if the fetch failed, and another machine may
        /// try.
        case failed
        /// The response is for one client, so the other machines fetch for themselves at once.
        case unshareable
    }
}
