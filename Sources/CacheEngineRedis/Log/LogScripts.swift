/// The scripts of the log.
extension FleetScript {
    /// Returns incarnation, last position and its purge, the purge at a position, the last position
    /// that is gone, and the number of replicas; creates the log if it is missing.
    ///
    /// Words: an incarnation to begin with, and the position, or nothing.
    package static let open = FleetScript(
        text: """
            local m = redis.call('HMGET', KEYS[1], 'inc', 'last', 'lastid')
            if not m[1] then
                local top = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)
                m = {ARGV[1], top[1] and top[1][1] or '0-0', ''}
                redis.call('HSET', KEYS[1], 'inc', m[1], 'last', m[2], 'lastid', '')
            end
            local function field(entry, name)
                for i = 1, #entry[2], 2 do
                    if entry[2][i] == name then return entry[2][i + 1] end
                end
            end
            local found = ''
            if ARGV[2] ~= '' then
                local at = redis.call('XRANGE', KEYS[2], ARGV[2], ARGV[2])
                if at[1] then found = field(at[1], 'i') or '?' end
            end
            local floor = m[2]
            local first = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)
            if first[1] then floor = field(first[1], 'p') or first[1][1] end
            local info = redis.pcall('INFO', 'replication')
            local replicas = type(info) == 'string' and string.match(info, 'connected_slaves:(%d+)')
            return {m[1], m[2], m[3] or '', found, floor, tonumber(replicas or '0')}
            """,
        digest: "24d6a09ab6a586c20d7165fa097afa94b0234852"
    )

    /// Appends one purge; returns its position and the number of replicas.
    ///
    /// The epoch rises if the server has another run ID than at the last append: it was restarted,
    /// or another server has taken over, and either may have lost the end of the log. It also rises
    /// with the replication ID, which each promotion draws anew: the server of before may have been
    /// replaced, and have come back without the end. Words: an incarnation to begin with, the largest
    /// epoch that the client has seen, the length of the stream, and the purge.
    package static let append = FleetScript(
        text: """
            local m = redis.call('HMGET', KEYS[1], 'inc', 'epoch', 'seq', 'run', 'last', 'repl')
            local inc, last = m[1] or ARGV[1], m[5]
            if not last then
                local top = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)
                last = top[1] and top[1][1] or '0-0'
            end
            local info = redis.pcall('INFO', 'server')
            local run = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
            info = redis.pcall('INFO', 'replication')
            if type(info) ~= 'string' then info = '' end
            local repl = string.match(info, 'master_replid:(%x+)') or ''
            local epoch = tonumber(m[2] or string.match(last, '^%d+'))
            local seq, seen = tonumber(m[3] or '0'), tonumber(ARGV[2])
            if m[4] ~= run or (m[6] or repl) ~= repl or seen > epoch then
                epoch, seq = math.max(epoch, seen) + 1, 0
            end
            local id = string.format('%.0f-%.0f', epoch, seq + 1)
            redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[3], id,
                'i', ARGV[4], 'k', ARGV[5], 's', ARGV[6], 'v', ARGV[7], 'p', last)
            redis.call('HSET', KEYS[1], 'inc', inc, 'epoch', string.format('%.0f', epoch),
                'seq', string.format('%.0f', seq + 1), 'run', run, 'repl', repl, 'last', id,
                'lastid', ARGV[4])
            return {id, tonumber(string.match(info, 'connected_slaves:(%d+)') or '0')}
            """,
        digest: "667f3a7dddbc9bc7659a3a7fc1a0e97d04df2da0"
    )
}
