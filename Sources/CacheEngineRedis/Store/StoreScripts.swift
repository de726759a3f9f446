/// The scripts of the shared store; each works on the record and the lease of one entry.
extension FleetScript {
    /// Writes a record and ends its lease; returns 1, or 0 if the record is not wanted.
    ///
    /// The holder of the lease may write. A former holder may write only if there is neither record
    /// nor lease, so that a response that took too long replaces nothing newer. A machine that never
    /// asked for the lease may write unless the key was given up for a while, and may replace a
    /// record if it says so. Words: the token, or nothing; the record; its lifetime in milliseconds;
    /// 1 to replace a record.
    package static let publish = FleetScript(
        text: """
            local lease = redis.call('GET', KEYS[2])
            local mayWrite
            if ARGV[1] == '' then
                mayWrite = lease ~= '!'
                    and (ARGV[4] == '1' or redis.call('EXISTS', KEYS[1]) == 0)
            else
                mayWrite = lease == ARGV[1] or (not lease and redis.call('EXISTS', KEYS[1]) == 0)
            end
            if not mayWrite then return 0 end
            redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
            if lease == ARGV[1] then redis.call('DEL', KEYS[2]) end
            return 1
            """,
        digest: "c089f2487a000dba536c8a1df66c8d6809615d06"
    )

    /// Removes a record, and gives its key up for a while.
    ///
    /// Word: that time in milliseconds.
    package static let forget = FleetScript(
        text: """
            redis.call('DEL', KEYS[1])
            redis.call('SET', KEYS[2], '!', 'PX', ARGV[1])
            return 1
            """,
        digest: "aa3173c812ed7470d7722d13e22afb971386d94b"
    )

    /// Prolongs a lease or ends it, if it is still the caller's; returns 1 if it is.
    ///
    /// Words: the token; `keep`, `free` or `skip`; a time in milliseconds. `skip` removes the record and gives the key up.
    package static let lease = FleetScript(
        text: """
            if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
            if ARGV[2] == 'keep' then
                redis.call('PEXPIRE', KEYS[2], ARGV[3])
            elseif ARGV[2] == 'skip' then
                redis.call('DEL', KEYS[1])
                redis.call('SET', KEYS[2], '!', 'PX', ARGV[3])
            else
                redis.call('DEL', KEYS[2])
            end
            return 1
            """,
        digest: "895cbff8a1d05faa9098ed00c3959677996dd071"
    )
}
