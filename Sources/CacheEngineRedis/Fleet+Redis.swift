public import CacheEngine
import Platform
import RedisClient

extension Fleet {
    /// A fleet whose log of purges is a stream in Redis, or in a server that speaks its protocol.
    ///
    /// ```swift
    /// let cache = try await HTTPCache(
    ///     configuration: configuration,
    ///     origin: origin,
    ///     fleet: .redis("redis://10.0.0.5:6379/shop")
    /// )
    /// ```
    ///
    /// All caches with the same servers and namespace are one fleet. The forms of the URL are
    /// `redis://[user:password@]host[:port][,host[:port]…][/namespace]`, where several hosts are the
    /// seeds of a cluster, and `redis-sentinel://host[:port],…[/namespace]#master`. Nothing is
    /// connected before a cache is opened, and a cache opens also if the servers are down.
    ///
    /// - Throws: `CacheError` with the code `.configurationInvalid` if the URL or an option is
    ///   invalid.
    public static func redis(
        _ url: String,
        options: RedisFleetOptions = RedisFleetOptions()
    ) throws -> Fleet {
        let parsed: RedisURL
        do throws(RedisError) { parsed = try RedisURL(url) } catch {
            throw CacheError(.configurationInvalid, detail: error.detail)
        }
        guard options.maximumLag >= .milliseconds(1) else {
            throw CacheError(
                .configurationInvalid,
                detail: "maximumLag is \(options.maximumLag); give at least a millisecond"
            )
        }
        return Fleet(sharesEntries: options.shares == .entries) {
            do throws(RedisError) { return try RedisFleet(parsed, options) } catch {
                throw CacheError(.fleetFailed, detail: error.detail)
            }
        }
    }
}

/// The options of a fleet whose log is in Redis.
public struct RedisFleetOptions: Hashable, Sendable {
    /// The behaviour of a machine that cannot read the log.
    public enum CutOff: String, Hashable, Sendable, CaseIterable {
        /// It answers as before, and applies the missed purges once it can read the log.
        case serve
        /// It lets the origin confirm each entry before its next use, anew after each
        /// `maximumLag`.
        case revalidate
    }

    /// The things that the machines of a fleet share.
    public enum Sharing: String, Hashable, Sendable, CaseIterable {
        /// Purges: each machine fetches for itself.
        case purges
        /// Purges and entries: what one machine has fetched, the others read from Redis, and a
        /// response that all of them miss is one request to the origin.
        case entries
    }

    /// The things that the machines share; all machines of a fleet should share the same.
    public var shares = Sharing.purges
    /// The time without the log after which a machine counts as cut off.
    public var maximumLag = Duration.seconds(10)
    /// The behaviour of a machine that is cut off.
    public var whenCutOff = CutOff.serve

    /// Creates the default options.
    public init() {}

    /// The lag as a time that may be added to any moment.
    var lagNanoseconds: UInt64 { maximumLag.nanoseconds }
}
