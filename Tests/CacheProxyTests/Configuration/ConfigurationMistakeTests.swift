import Foundation
import Testing

@testable import CacheProxy

/// What the reader says of mistakes.
@Suite struct ConfigurationMistakeTests {
    @Test(arguments: [
        ["--origin", "http://a", "--frobnicate"], ["--origin"], ["--origin", "a"], ["x"], [],
        ["--origin", "http://a", "--memory", "12Q"], ["--origin", "http://a", "--memory", "-1"],
        ["--origin", "http://a", "--memory", "0"], ["--origin", "http://a", "--listen", "host:1"],
        ["--origin", "http://a", "--listen", "1.2.3.4:99999"],
        ["--origin", "http://a", "--mode", "x"],
        ["--origin", "http://a", "--disk", "/tmp/x", "--disk-sync", "always"],
        ["--origin", "http://a", "--connect-timeout", "0"],
        ["--origin", "http://a", "--origin-connections", "0"],
        ["--origin", "http://a", "--between-bytes-timeout", "-1"],
        ["--origin", "http://a", "--workers", "0"],
        ["--origin", "http://a", "--config", "/nonexistent"],
        ["--origin", "http://a", "--purge-token", "/nonexistent"],
        ["--origin", "http://a", "--listen", "127.0.0.1:1", "--admin", "127.0.0.1:1"],
        ["--origin", "http://a", "--memory", "99999999999999999999G"],
        ["--origin", "http://h:0/"], ["--origin", "http://h:65536"], ["--origin", "http://h:x"],
        ["--origin", "http://a%zz"], ["--origin", "http://[zz]"], ["--origin", "http://a:1:2"],
        ["--origin", "http://a", "--tags", "x"], ["--origin", "http://a", "--forwarded", "x"],
        ["--origin", "http://a", "--field-names", "x"],
        ["--origin", "http://a", "--set-cookie", "x"], ["--origin", "http://a", "--grace", "-1"],
        ["--origin", "http://a", "--ignore-client-no-cache=perhaps"],
        ["--origin", "http://a", "--memory="], ["--origin", "http://a", "--disk", "/dev/null/x"],
    ])
    func mistakeIsOneLine(_ arguments: [String]) async {
        #expect {
            try ConfigurationReader.read(arguments)
        } throws: { error in
            !"\(error)".isEmpty && !"\(error)".contains("\n")
        }
        #expect(await ProxyProgram.run(arguments) == 2)
    }

    typealias Code = ConfigurationError.Code

    struct Mistake: Sendable {
        var arguments: [String]
        var code: ConfigurationError.Code
        var text: String

        init(_ arguments: [String], _ code: ConfigurationError.Code, _ text: String) {
            self.arguments = arguments
            self.code = code
            self.text = text
        }
    }

    /// Every error text of a configuration: the place, the value, and what to do.
    static let mistakes: [Mistake] = [
        .init(
            ["x"],
            .argumentUnexpected,
            "`x` is not an option; give options as --name value, see --help"
        ),
        .init(["--frob"], .optionUnknown, "--frob: there is no such option; --help lists them"),
        .init(["--memory"], .valueMissing, "--memory: the value is missing; give SIZE"),
        .init(["--config"], .valueMissing, "--config: the value is missing; give FILE"),
        .init(
            [],
            .originMissing,
            "--origin: no origin is given; give at least one, as --origin http://127.0.0.1:9000"
        ),
        .init(
            ["--origin", "http://a", "--origin", "http://b", "--origin", "http://a/"],
            .optionsConflicting,
            "--origin: `http://a` is given twice; give it once"
        ),
        .init(
            ["--origin", "http://a", "--origin", "HTTP://A:80"],
            .optionsConflicting,
            "--origin: `http://A:80` is given twice; give it once"
        ),
        .init(
            ["--origin", "https://a:443/", "--origin", "http://a:443", "--origin", "https://A:"],
            .optionsConflicting,
            "--origin: `https://A:` is given twice; give it once"
        ),
        .init(
            ["--memory", "1G", "--memory", "2G"],
            .optionsConflicting,
            "--memory: the option is given twice; give it once"
        ),
        .init(
            ["--listen=:1", "--origin", "http://a", "--listen=:1"],
            .optionsConflicting,
            "--listen: the option is given twice; give it once"
        ),
        .init(
            ["--config", "/nowhere", "--config", "/nowhere"],
            .optionsConflicting,
            "--config: the option is given twice; give it once"
        ),
        .init(
            ["--ignore-client-no-cache", "off", "--ignore-client-no-cache"],
            .optionsConflicting,
            "--ignore-client-no-cache: the option is given twice; give it once"
        ),
        .init(
            ["--listen", "1.2.3.4:80x"],
            .valueInvalid,
            "--listen: `80x` is not a port; give 1 to 65535, or 0 for any that is free"
        ),
        .init(
            ["--listen", "80"],
            .valueInvalid,
            "--listen: `80` has no port; give ADDR:PORT, :PORT or unix:PATH"
        ),
        .init(
            ["--listen", "host:1"],
            .valueInvalid,
            "--listen: `host` is not a numeric address; give one as 127.0.0.1 or [::1], or * for all"
        ),
        .init(
            ["--listen", "[]:1"],
            .valueInvalid,
            "--listen: `[]` is not a numeric address; give one as 127.0.0.1 or [::1], or * for all"
        ),
        .init(
            ["--listen", "[*]:1"],
            .valueInvalid,
            "--listen: `[*]` is not a numeric address; give one as 127.0.0.1 or [::1], or * for all"
        ),
        .init(
            ["--admin", "[localhost]:1"],
            .valueInvalid,
            "--admin: `[localhost]` is not a numeric address; give one as 127.0.0.1 or [::1], or * for all"
        ),
        .init(
            ["--admin", "[127.0.0.1]:1"],
            .valueInvalid,
            "--admin: `[127.0.0.1]` is not a numeric address; give one as 127.0.0.1 or [::1], or * for all"
        ),
        .init(
            ["--admin", "unix:"],
            .valueInvalid,
            "--admin: the path in `unix:` has 0 bytes; give 1 to 103 bytes behind unix:"
        ),
        .init(
            ["--origin", "ftp://a"],
            .valueInvalid,
            "--origin: `ftp://a` is not an origin; give http:// or https:// with a host and perhaps a port, and no path"
        ),
        .init(
            ["--memory", "12Q"],
            .valueInvalid,
            "--memory: `12Q` is not a size; give a number above 0, as 4096, 64K or 2G"
        ),
        .init(
            ["--memory", "1K"],
            .valueInvalid,
            "--memory: `1K` is too little memory for a cache; give at least 1M"
        ),
        .init(
            ["--memory", "1048575"],
            .valueInvalid,
            "--memory: `1048575` is too little memory for a cache; give at least 1M"
        ),
        .init(
            ["--memory", "9999999999T"],
            .valueInvalid,
            "--memory: `9999999999T` is too large; give at most 8388607T"
        ),
        .init(
            ["--workers", "0"],
            .valueInvalid,
            "--workers: `0` is not a whole number in the range; give 1 to 256"
        ),
        .init(
            ["--grace", "x"],
            .valueInvalid,
            "--grace: `x` is not a whole number in the range; give 0 to 31536000"
        ),
        .init(
            ["--origin-timeout", "1"],
            .optionUnknown,
            "--origin-timeout: there is no such option; --help lists them"
        ),
        .init(
            ["--stale-on-failure", "-1"],
            .valueInvalid,
            "--stale-on-failure: `-1` is not a whole number in the range; give 0 to 31536000"
        ),
        .init(
            ["--lifetime", "60"],
            .valueInvalid,
            "--lifetime: `60` is not the lifetime of a status; give STATUS=SECONDS, as 404=10"
        ),
        .init(
            ["--lifetime", ""],
            .valueInvalid,
            "--lifetime: `` is not the lifetime of a status; give STATUS=SECONDS, as 404=10"
        ),
        .init(
            ["--lifetime", "200=60,"],
            .valueInvalid,
            "--lifetime: `` is not the lifetime of a status; give STATUS=SECONDS, as 404=10"
        ),
        .init(
            ["--lifetime", "200=60=5"],
            .valueInvalid,
            "--lifetime: `200=60=5` is not the lifetime of a status; give STATUS=SECONDS, as 404=10"
        ),
        .init(
            ["--lifetime", "200=60,100=5"],
            .valueInvalid,
            "--lifetime: `100` is not the status of a final response; give 200 to 599"
        ),
        .init(
            ["--lifetime", "+200=60"],
            .valueInvalid,
            "--lifetime: `+200` is not the status of a final response; give 200 to 599"
        ),
        .init(
            ["--lifetime", "any=60"],
            .valueInvalid,
            "--lifetime: `any` is not the status of a final response; give 200 to 599"
        ),
        .init(
            ["--lifetime", "600=60"],
            .valueInvalid,
            "--lifetime: `600` is not the status of a final response; give 200 to 599"
        ),
        .init(
            ["--lifetime", "304=60"],
            .valueInvalid,
            "--lifetime: a response with the status 304 is never stored; give another status"
        ),
        .init(
            ["--lifetime", "404=1,410=2,404=1"],
            .valueInvalid,
            "--lifetime: the status 404 is given twice; give it once"
        ),
        .init(
            ["--lifetime", "404=-5"],
            .valueInvalid,
            "--lifetime: `-5` is not a whole number in the range; give 0 to 31536000"
        ),
        .init(
            ["--lifetime", "404=1m"],
            .valueInvalid,
            "--lifetime: `1m` is not a whole number in the range; give 0 to 31536000"
        ),
        .init(
            ["--origin-host", "own"],
            .valueInvalid,
            "--origin-host: `own` is not known; give client or origin"
        ),
        .init(
            ["--encodings", "gzip;q=1"],
            .valueInvalid,
            "--encodings: `gzip;q=1` is not the name of an encoding; give names as br, gzip or zstd"
        ),
        .init(
            ["--encodings", "br,*"],
            .valueInvalid,
            "--encodings: `*` is not the name of an encoding; give names as br, gzip or zstd"
        ),
        .init(
            ["--encodings", "gzip,,br"],
            .valueInvalid,
            "--encodings: `` is not the name of an encoding; give names as br, gzip or zstd"
        ),
        .init(
            ["--encodings", "gzip,identity"],
            .valueInvalid,
            "--encodings: `identity` is always offered; give the others"
        ),
        .init(
            ["--encodings", "gzip, GZIP"],
            .valueInvalid,
            "--encodings: `GZIP` is given twice; give it once"
        ),
        .init(
            ["--encodings", (0..<17).map { "e\($0)" }.joined(separator: ",")],
            .valueInvalid,
            "--encodings: the list has 17 names; give at most 16"
        ),
        .init(
            ["--ignore-query", "*"],
            .valueInvalid,
            "--ignore-query: `*` is not the name of a parameter; give it as URLs have it, and * only at its end"
        ),
        .init(
            ["--ignore-query", "a=b"],
            .valueInvalid,
            "--ignore-query: `a=b` is not the name of a parameter; give it as URLs have it, and * only at its end"
        ),
        .init(
            ["--ignore-query", "a,"],
            .valueInvalid,
            "--ignore-query: `` is not the name of a parameter; give it as URLs have it, and * only at its end"
        ),
        .init(
            ["--ignore-query", "u*m_a"],
            .valueInvalid,
            "--ignore-query: `u*m_a` is not the name of a parameter; give it as URLs have it, and * only at its end"
        ),
        .init(
            ["--ignore-query", "a,a*,a"],
            .valueInvalid,
            "--ignore-query: `a` is given twice; give it once"
        ),
        .init(
            ["--ignore-query", (0..<65).map { "p\($0)" }.joined(separator: ",")],
            .valueInvalid,
            "--ignore-query: the list has 65 names; give at most 64"
        ),
        .init(
            ["--idle-timeout", "0"],
            .valueInvalid,
            "--idle-timeout: `0` is not a time; give seconds above 0, at most 86400"
        ),
        .init(
            ["--between-bytes-timeout", "1e-10"],
            .valueInvalid,
            "--between-bytes-timeout: `1e-10` is too short; give at least 0.001"
        ),
        .init(
            ["--fleet-purge-lag", "0.0000000001"],
            .valueInvalid,
            "--fleet-purge-lag: `0.0000000001` is too short; give at least 0.001"
        ),
        .init(
            ["--connect-timeout", "0.0009"],
            .valueInvalid,
            "--connect-timeout: `0.0009` is too short; give at least 0.001"
        ),
        .init(["--mode", "x"], .valueInvalid, "--mode: `x` is not known; give shared or private"),
        .init(
            ["--set-cookie", "x"],
            .valueInvalid,
            "--set-cookie: `x` is not known; give store, strip or pass"
        ),
        .init(
            ["--ignore-client-no-cache=x"],
            .valueInvalid,
            "--ignore-client-no-cache: `x` is not known; give on, off or no value"
        ),
        .init(
            ["--ignore-client-no-cache", "perhaps"],
            .argumentUnexpected,
            "`perhaps` is not an option; give options as --name value, see --help"
        ),
        .init(["--disk", ""], .valueInvalid, "--disk: the path is empty; give a path"),
        .init(
            ["--name", "a b"],
            .valueInvalid,
            "--name: `a b` is not a token (RFC 9110 §5.6.2); give letters, digits, hyphens and dots"
        ),
        .init(
            ["--origin", "http://a", "--config", "/nowhere"],
            .fileUnreadable,
            "--config: /nowhere cannot be read: No such file or directory; give a file that this user may read"
        ),
        .init(
            ["--origin", "http://a", "--disk", "/nowhere/x"],
            .directoryMissing,
            "--disk: `/nowhere` is not a directory; create or mount it, only the last part of `/nowhere/x` is created"
        ),
        .init(
            ["--origin", "http://a", "--disk", "/etc/passwd"],
            .directoryMissing,
            "--disk: `/etc/passwd` is not a directory; give a directory, or a new name in one"
        ),
        .init(
            ["--origin", "http://a", "--disk", "/tmp/new", "--disk-size", "1K"],
            .valueInvalid,
            "--disk-size: `1024` bytes are too few for a disk cache; give at least 1M"
        ),
        .init(
            ["--origin", "http://a", "--admin", "127.0.0.1:8080"],
            .optionsConflicting,
            "--admin: `127.0.0.1:8080` is the address of --listen too; give another"
        ),
        .init(
            ["--origin", "http://a", "--listen", "unix:/tmp/s", "--workers", "2"],
            .optionsConflicting,
            "--workers: `2` workers cannot share a unix socket; give 1"
        ),
        .init(
            [
                "--origin", "http://a", "--mode", "private", "--fleet", "redis://a/b",
                "--fleet-share", "entries",
            ],
            .optionsConflicting,
            "--fleet-share: `entries` cannot be shared with --mode private; give purges, or --mode shared"
        ),
        .init(
            ["--proxy-protocol-from", "10.0.0.0/33"],
            .valueInvalid,
            "--proxy-protocol-from: `10.0.0.0/33` is not a network; give ADDRESS or ADDRESS/BITS, as 10.0.0.0/8 or ::1, or unix"
        ),
        .init(
            ["--proxy-protocol-from", "10.1.2.3/8"],
            .valueInvalid,
            "--proxy-protocol-from: `10.1.2.3/8` has address bits behind its prefix; give 10.0.0.0/8"
        ),
        .init(
            [
                "--proxy-protocol-from",
                Array(repeating: "::1", count: 257).joined(separator: ","),
            ],
            .valueInvalid,
            "--proxy-protocol-from: the list has 257 networks; give at most 256"
        ),
        .init(
            [
                "--origin", "http://a", "--listen", "unix:/tmp/s", "--proxy-protocol-from",
                "127.0.0.1",
            ],
            .optionsConflicting,
            "--proxy-protocol-from: clients of `unix:/tmp/s` have no address; give unix"
        ),
        .init(
            ["--origin", "http://a", "--listen", "127.0.0.1:1", "--proxy-protocol-from", "unix"],
            .optionsConflicting,
            "--proxy-protocol-from: clients of `127.0.0.1:1` have addresses; give their networks"
        ),
    ]

    @Test(arguments: mistakes)
    func errorNamesTheValueAndWhatToDo(_ row: Mistake) {
        #expect(throws: ConfigurationError(row.code, row.text)) {
            try ConfigurationReader.read(row.arguments)
        }
    }

    @Test func fileErrorsNameTheirPlace() throws {
        let invalid = try ConfigurationReaderTests.file("memory 12Q\n")
        let large = try ConfigurationReaderTests.file(String(repeating: "#", count: 1 << 20) + "#")
        let short = try ConfigurationReaderTests.file("abc\n")
        let long = try ConfigurationReaderTests.file("secret-word\n")
        defer {
            for path in [invalid, large, short, long] { ConfigurationReaderTests.remove(path) }
        }
        for (arguments, code, text) in [
            (
                ["--config", invalid], Code.valueInvalid,
                "\(invalid):1: memory: `12Q` is not a size; give a number above 0, as 4096, 64K or 2G"
            ),
            (
                ["--config", large], .fileUnreadable,
                "--config: \(large) has more than 1048576 bytes; give a smaller file"
            ),
            (
                ["--origin", "http://a", "--purge-token", short], .tokenInvalid,
                "--purge-token: the token in the first line of \(short) has 3 bytes; give at least 8"
            ),
            (
                ["--origin", "http://a", "--purge-token", long], .optionsConflicting,
                "--purge-token: purges are requests to --admin; give its address"
            ),
        ] {
            #expect(throws: ConfigurationError(code, text)) {
                try ConfigurationReader.read(arguments)
            }
        }
    }

    @Test func repeatInAFileIsAnErrorThatNamesTheSecondLine() throws {
        let path = try ConfigurationReaderTests.file(
            "memory 1G\norigin http://a\norigin http://b\n\nmemory = 2G\n"
        )
        defer { ConfigurationReaderTests.remove(path) }
        let error = ConfigurationError(
            .optionsConflicting,
            "\(path):5: memory: the option is given twice; give it once"
        )
        for arguments in [["--config", path], ["--config", path, "--memory", "3G"]] {
            #expect(throws: error) { try ConfigurationReader.read(arguments) }
        }
    }

    @Test func errorTextsHaveNoControlBytes() throws {
        let odd = "a\u{1b}[31m\n\r\u{7}\u{7f}\u{9b}\u{2028}b"
        let path = try ConfigurationReaderTests.file("origin http://a\nmemory \u{1b}[2J\n")
        let unknown = try ConfigurationReaderTests.file("\u{1b}[2J\u{7}\n")
        defer { for file in [path, unknown] { ConfigurationReaderTests.remove(file) } }
        for arguments in [
            [odd], ["--\(odd)", "x"], ["--origin", odd], ["--config", odd],
            ["--origin", "http://a", "--purge-token", odd], ["--config", path],
            ["--origin", "http://a", "--disk", "/\(odd)/\(odd)/x"], ["--config", unknown],
        ] {
            #expect {
                try ConfigurationReader.read(arguments)
            } throws: { error in
                !"\(error)".unicodeScalars.contains {
                    $0.properties.generalCategory == .control || $0 == "\u{2028}"
                }
            }
        }
    }

    @Test func diskWithoutItsParentIsAnErrorThatNamesIt() throws {
        #expect {
            try ConfigurationReader.read(["--origin", "http://a", "--disk", "/mnt/nowhere/cache/"])
        } throws: { "\($0)".contains("`/mnt/nowhere`") }
        for path in ["/tmp/x", "x", "/tmp/", "/", "./x/"] {
            _ = try ConfigurationReader.read(["--origin", "http://a", "--disk", path])
        }
    }

    @Test func mistakesInAFileNameTheirLine() throws {
        let path = try ConfigurationReaderTests.file("origin http://a\n\nmemroy 3\n")
        defer { try? FileManager.default.removeItem(atPath: path) }
        #expect {
            try ConfigurationReader.read(["--config", path])
        } throws: { "\($0)" == "\(path):3: there is no option `memroy`; --help lists them" }
    }
}
