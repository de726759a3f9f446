import CacheTestSupport
import Testing

@testable import HTTPCaching

@Suite("Dates, RFC 9110 §5.6.7")
struct HTTPDateTests {
    /// 2026-11-21.
    private static let today: Int64 = 1_795_219_200

    private static func parse(_ text: String, near: Int64 = today) -> Int64? {
        HTTPDate.parse(text, nearSeconds: near)
    }

    @Test(
        "The three forms",
        arguments: [
            Row("IMF-fixdate", "Sun, 06 Nov 1994 08:49:37 GMT", Int64(784_111_777)),
            Row("RFC 850", "Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            Row("asctime", "Sun Nov  6 08:49:37 1994", 784_111_777),
            Row("asctime, two-digit day", "Wed Nov 16 08:49:37 1994", 784_975_777),
            Row("names in any case", "sUN, 06 nOV 1994 08:49:37 gmt", 784_111_777),
            Row("the first second", "Thu, 01 Jan 1970 00:00:00 GMT", 0),
            Row("before it", "Wed, 31 Dec 1969 23:59:59 GMT", -1),
            Row("past 31 bits", "Tue, 19 Jan 2038 14:14:08 GMT", 2_147_523_248),
            Row("far ahead", "Sun, 21 Nov 2286 04:46:39 GMT", 10_000_039_599),
            Row("a leap day", "Thu, 29 Feb 2024 12:00:00 GMT", 1_709_208_000),
            Row("a leap second", "Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_799),
            Row("the last year", "Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
            Row("a weekday that is not that day's", "Mon, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            Row("RFC 850, this century", "Thursday, 18-Aug-50 02:01:18 GMT", 2_544_400_878),
        ]
    )
    func forms(_ row: Row<String, Int64>) {
        #expect(Self.parse(row.input) == row.expected)
    }

    @Test(
        "Nothing else is a date",
        arguments: [
            "", "0", "-1", "now", "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37 +0000",
            "Sun, 06 Nov 1994 08:49:37", "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun 06 Nov 1994 08:49:37 GMT",
            "Sun, 06  Nov 1994 08:49:37 GMT", "Sun,06 Nov 1994 08:49:37 GMT",
            "Sun, 06-Nov-1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT",
            "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06 Nov 1994 08.49.37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:37 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
            "Wed, 31 Nov 1994 08:49:37 GMT", "Tue, 29 Feb 1994 08:49:37 GMT",
            "Thu, 29 Feb 1900 08:49:37 GMT", "Xxx, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Xxx 1994 08:49:37 GMT", "Sunday, 06-Nov-1994 08:49:37 GMT",
            "Sunny, 06-Nov-94 08:49:37 GMT", "Sunday, 06 Nov 94 08:49:37 GMT",
            "Sunday, 6-Nov-94 08:49:37 GMT", "Sun Nov 6 08:49:37 1994", "Sun Nov  6 08:49:37 94",
            "Sun Nov 06 08:49:37 1994 GMT", "Sun, 06 Nov 1994 08:49:37 GMT, Mon",
            "Sun, 06 Nov -994 08:49:37 GMT", "1994-11-06T08:49:37Z",
        ]
    )
    func noDates(_ text: String) {
        #expect(Self.parse(text) == nil)
    }

    @Test("A two-digit year lies at most 50 years ahead")
    func twoDigitYears() {
        func year(_ digits: String, near: Int64) -> Int64? {
            Self.parse("Friday, 01-Jan-\(digits) 00:00:00 GMT", near: near)
        }
        func start(_ year: Int) -> Int64? { Self.parse("Fri, 01 Jan \(year) 00:00:00 GMT") }
        #expect(year("76", near: Self.today) == start(2076))
        #expect(year("77", near: Self.today) == start(1977))
        #expect(year("00", near: Self.today) == start(2000))
        #expect(year("49", near: 0) == start(1949))
        #expect(year("20", near: 0) == start(2020))
        #expect(year("21", near: 0) == start(1921))
        for near in [Int64.min, .max] { #expect(year("50", near: near) != nil) }
        // A date exactly fifty years ahead is still in the future; one second more moves it to the
        // past.
        let noon = Self.parse("Saturday, 21-Nov-76 00:00:00 GMT")
        #expect(noon == Self.parse("Sat, 21 Nov 2076 00:00:00 GMT"))
        let later = Self.parse("Saturday, 21-Nov-76 00:00:01 GMT")
        #expect(later == Self.parse("Sun, 21 Nov 1976 00:00:01 GMT"))
    }

    @Test(
        "What is written is read back, and has its own weekday",
        arguments: 0..<64 as Range<UInt64>
    )
    func roundTrip(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        for _ in 0..<64 {
            let seconds = Int64.random(in: -62_167_219_200...253_402_300_799, using: &random)
            let text = HTTPDate.string(seconds)
            #expect(text.utf8.count == HTTPDate.formattedBytes)
            #expect(Self.parse(text) == seconds)
            let days = HTTPDate.floorDivide(seconds, 86_400)
            let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][
                Int(((days % 7) + 7) % 7)
            ]
            #expect(text.hasPrefix(weekday))
        }
    }

    @Test("Every day of four centuries follows its neighbour")
    func calendar() {
        // Counts the days one by one, with an explicit rule for leap years.
        var (year, month, day) = (1900, 1, 1)
        var days = -25_567
        while year < 2301 {
            let civil = HTTPDate.civil(days: days)
            guard civil == (year, month, day) else {
                Issue.record("day \(days) is \(civil), not \(year)-\(month)-\(day)")
                return
            }
            let isLeap = year % 400 == 0 || (year % 4 == 0 && year % 100 != 0)
            let lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
            days += 1
            day += 1
            if day > lengths[month - 1] { (month, day) = (month + 1, 1) }
            if month > 12 { (year, month) = (year + 1, 1) }
        }
    }

    @Test("Times that four digits cannot say are written as the nearest that they can")
    func clamped() {
        #expect(HTTPDate.string(.max) == "Fri, 31 Dec 9999 23:59:59 GMT")
        #expect(HTTPDate.string(.min) == "Sat, 01 Jan 0000 00:00:00 GMT")
    }
}
