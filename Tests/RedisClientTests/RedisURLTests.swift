import RedisClient
import Testing

@Suite struct RedisURLTests {
    @Test(
        arguments: [
            ("redis://a", ["a:6379"], .single, nil, nil, ""),
            ("REDIS://a:1/", ["a:1"], .single, nil, nil, ""),
            ("redis://10.0.0.1:7000/ns-1.x_y", ["10.0.0.1:7000"], .single, nil, nil, "ns-1.x_y"),
            ("redis://[::1]", ["[::1]:6379"], .single, nil, nil, ""),
            ("redis://[fe80::1]:70", ["[fe80::1]:70"], .single, nil, nil, ""),
            ("redis://me:pw@a", ["a:6379"], .single, "me", "pw", ""),
            ("redis://:pw@a", ["a:6379"], .single, "", "pw", ""),
            ("redis://:p%40%2f%25:@a", ["a:6379"], .single, "", "p@/%:", ""),
            ("redis://:p@w@a", ["a:6379"], .single, "", "p@w", ""),
            ("redis://a,b:2,[::3]:3/n", ["a:6379", "b:2", "[::3]:3"], .cluster, nil, nil, "n"),
            ("redis-cluster://a", ["a:6379"], .cluster, nil, nil, ""),
            (
                "redis-sentinel://u:p@a,b:2/n#my.master", ["a:26379", "b:2"],
                .sentinel(master: "my.master"), "u", "p", "n"
            ),
        ] as [(String, [String], RedisURL.Arrangement, String?, String?, String)]
    )
    func urlIsRead(
        text: String,
        hosts: [String],
        arrangement: RedisURL.Arrangement,
        user: String?,
        password: String?,
        namespace: String
    ) throws {
        let url = try RedisURL(text)
        #expect(url.hosts.map(\.description) == hosts)
        #expect(url.arrangement == arrangement)
        #expect(url.credentials?.user == user)
        #expect(url.credentials?.password == password)
        #expect(url.namespace == namespace)
    }

    @Test(arguments: [
        ("", "`` has no scheme; give redis://host:port"),
        ("localhost:6379", "`localhost:6379` has no scheme; give redis://host:port"),
        (
            "http://a",
            "`http://a` has an unknown scheme; give redis://, redis-cluster:// or redis-sentinel://"
        ),
        ("rediss://a", "`rediss://a` asks for TLS, which is not supported yet; give redis://"),
        ("redis://", "`redis://` has no host; give redis://host:port"),
        ("redis://a,,b", "`redis://a,,b` has no host; give redis://host:port"),
        ("redis://:70", "`redis://:70` has no host; give redis://host:port"),
        ("redis://a:0", "`redis://a:0` has an invalid port; give 1 to 65535"),
        ("redis://a:65536", "`redis://a:65536` has an invalid port; give 1 to 65535"),
        ("redis://a:", "`redis://a:` has an invalid port; give 1 to 65535"),
        ("redis://[::1", "`redis://[::1` has a `[` without a `]`; give [address]:port"),
        ("redis://[::1]x", "`redis://[::1]x` has text behind a `]`; give [address]:port"),
        (
            "redis://a b",
            "`redis://a b` has an invalid host; give a name, an IPv4 address or [an IPv6 address]"
        ),
        (
            "redis://a/{x}",
            "`redis://a/{x}` has an invalid namespace; give up to 64 letters, digits, dots, "
                + "hyphens and underscores"
        ),
        ("redis://a#m", "`redis://a#m` has a `#`; write %23 in a password"),
        (
            "redis-sentinel://a",
            "`redis-sentinel://a` has no name of a master; add it as #name"
        ),
        (
            "redis://u@a",
            "`redis://…@a` has a user without a password; give user:password@ or :password@"
        ),
        (
            "redis://u:%4@a",
            "`redis://…@a` has an invalid percent-encoding before the `@`; write % as %25"
        ),
        (
            "redis://u:a/b@a",
            "`redis://…@a` has a `/` before the `@`; write %2F in a password"
        ),
    ])
    func faultIsNamed(text: String, fault: String) {
        let error = #expect(throws: RedisError.self) { try RedisURL(text) }
        #expect(error?.code == .urlInvalid)
        #expect(error?.detail == "The Redis URL " + fault)
    }

    @Test func numberOfHostsIsLimited() throws {
        let hosts = Array(repeating: "a", count: RedisURL.hostsMax)
        #expect(try RedisURL("redis://" + hosts.joined(separator: ",")).hosts.count == 64)
        let text = "redis://" + (hosts + ["b"]).joined(separator: ",")
        #expect(throws: RedisError.self) { try RedisURL(text) }
    }

    @Test(arguments: [
        "redis://user:secret", "redis://:secret", "user:secret@a", "rediss://u:secret@a",
        "redis://u:secret@", "redis://u:secret@a:b", "redis://u:secret@a/{", "redis://secret@a",
        "redis://u:sec/secret@a", "redis://u:sec#secret@a", "redis://u:secret%@a", "x:secret",
        "http://u:secret@a", "redis-sentinel://:secret@a", "redis://a,u:secret",
    ])
    func passwordIsNeverShown(text: String) {
        let error = #expect(throws: RedisError.self) { try RedisURL(text) }
        #expect(error?.description.contains("secret") == false)
    }
}
