/// The three date formats of RFC 9110 §5.6.7, as whole seconds since 1970 in UTC.
///
///     Sun, 06 Nov 1994 08:49:37 GMT     IMF-fixdate, the only one that may be sent
///     Sunday, 06-Nov-94 08:49:37 GMT    RFC 850
///     Sun Nov  6 08:49:37 1994          asctime
///
/// Widths, separators and the zone must be exact; names match in any case. Whether the weekday
/// belongs to the date is not checked, because the RFC gives the weekday no meaning.
public enum HTTPDate {
    /// Parses a date; returns `nil` if the text has none of the three forms.
    ///
    /// `nearSeconds` is approximately the current time. A two-digit year that would lie more than
    /// 50 years after it becomes the most recent past year with the same digits.
    public static func parse(_ text: ByteRun, nearSeconds: Int64) -> Int64? {
        guard text.count >= 24, text.count <= 33 else { return nil }
        if text[3] == .comma { return imfFixdate(text) }
        return text[3] == .space ? asctime(text) : rfc850(text, nearSeconds: nearSeconds)
    }

    public static func parse(_ text: String, nearSeconds: Int64) -> Int64? {
        text.withByteRun { parse($0, nearSeconds: nearSeconds) }
    }

    private static func imfFixdate(_ text: ByteRun) -> Int64? {
        guard text.count == 29, weekday(text, at: 0), text[4] == .space, text[7] == .space,
            text[11] == .space, text[16] == .space, zone(text, at: 25),
            let day = digits(text, 5..<7), let month = month(text, at: 8),
            let year = digits(text, 12..<16), let time = timeOfDay(text, at: 17)
        else { return nil }
        return seconds(year: year, month: month, day: day, time: time)
    }

    private static func rfc850(_ text: ByteRun, nearSeconds: Int64) -> Int64? {
        guard let comma = text.index(of: .comma), longWeekday(text[0..<comma]),
            text.count == comma + 24, text[comma + 1] == .space, text[comma + 4] == .hyphen,
            text[comma + 8] == .hyphen, text[comma + 11] == .space, zone(text, at: comma + 20),
            let day = digits(text, (comma + 2)..<(comma + 4)),
            let month = month(text, at: comma + 5),
            let shortYear = digits(text, (comma + 9)..<(comma + 11)),
            let time = timeOfDay(text, at: comma + 12)
        else { return nil }
        let near = min(max(nearSeconds, representable.lowerBound), representable.upperBound)
        let thisYear = civilYear(seconds: near)
        var year = thisYear - thisYear % 100 + 100 + shortYear
        while year > thisYear + 50 { year -= 100 }
        guard let moment = seconds(year: year, month: month, day: day, time: time) else {
            return nil
        }
        // In the fiftieth year only times after the same moment of that year are too far ahead.
        if year == thisYear + 50, moment > seconds(year: year, sameMomentAs: near) {
            return seconds(year: year - 100, month: month, day: day, time: time)
        }
        return moment
    }

    private static func asctime(_ text: ByteRun) -> Int64? {
        guard text.count == 24, weekday(text, at: 0), text[7] == .space, text[10] == .space,
            text[19] == .space, let month = month(text, at: 4),
            let day = text[8] == .space ? digits(text, 9..<10) : digits(text, 8..<10),
            let time = timeOfDay(text, at: 11), let year = digits(text, 20..<24)
        else { return nil }
        return seconds(year: year, month: month, day: day, time: time)
    }

    // MARK: - Parts

    @inline(__always)
    private static func digits(_ text: ByteRun, _ range: Range<Int>) -> Int? {
        var value = 0
        for index in range {
            guard text[index].isDigit else { return nil }
            value = value * 10 + Int(text[index] - .zero)
        }
        return value
    }

    /// Seconds since midnight; a leap second counts as second 59.
    private static func timeOfDay(_ text: ByteRun, at start: Int) -> Int? {
        guard text[start + 2] == .colon, text[start + 5] == .colon,
            let hour = digits(text, start..<(start + 2)),
            let minute = digits(text, (start + 3)..<(start + 5)),
            let second = digits(text, (start + 6)..<(start + 8)),
            hour < 24, minute < 60, second <= 60
        else { return nil }
        return hour * 3_600 + minute * 60 + min(second, 59)
    }

    private static func zone(_ text: ByteRun, at start: Int) -> Bool {
        text[start] == .space && letters(text, at: start + 1) == gmt
    }

    private static func weekday(_ text: ByteRun, at start: Int) -> Bool {
        weekdays.contains(letters(text, at: start))
    }

    private static func longWeekday(_ name: ByteRun) -> Bool {
        name.equals(lowercased: "sunday") || name.equals(lowercased: "monday")
            || name.equals(lowercased: "tuesday") || name.equals(lowercased: "wednesday")
            || name.equals(lowercased: "thursday") || name.equals(lowercased: "friday")
            || name.equals(lowercased: "saturday")
    }

    private static func month(_ text: ByteRun, at start: Int) -> Int? {
        months.firstIndex(of: letters(text, at: start)).map { $0 + 1 }
    }

    static let monthNames: StaticString = "janfebmaraprmayjunjulaugsepoctnovdec"

    private static let months = names(monthNames)
    private static let weekdays = names("sunmontuewedthufrisat")
    private static let gmt = names("gmt")[0]

    /// The names of three letters that `text` joins, as numbers.
    private static func names(_ text: StaticString) -> [UInt32] {
        let text = ByteRun(text)
        return stride(from: 0, to: text.count, by: 3).map { letters(text, at: $0) }
    }

    /// The three letters at `start` in lower case, as one number.
    private static func letters(_ text: ByteRun, at start: Int) -> UInt32 {
        // No other byte than a letter becomes a lower-case letter by bit 0x20.
        (UInt32(text[start]) | UInt32(text[start + 1]) << 8 | UInt32(text[start + 2]) << 16)
            | 0x20_2020
    }

    // MARK: - The calendar

    private static func seconds(year: Int, month: Int, day: Int, time: Int) -> Int64? {
        guard day >= 1, day <= daysInMonth(month, year: year) else { return nil }
        return Int64(days(year: year, month: month, day: day)) * 86_400 + Int64(time)
    }

    private static func seconds(year: Int, sameMomentAs other: Int64) -> Int64 {
        let otherDays = Int(floorDivide(other, 86_400))
        let (_, month, day) = civil(days: otherDays)
        let clampedDay = min(day, daysInMonth(month, year: year))
        let time = other - Int64(otherDays) * 86_400
        return Int64(days(year: year, month: month, day: clampedDay)) * 86_400 + time
    }

    private static func daysInMonth(_ month: Int, year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    static func civilYear(seconds: Int64) -> Int {
        civil(days: Int(floorDivide(seconds, 86_400))).year
    }

    /// Days since 1970-01-01 in the proleptic Gregorian calendar.
    ///
    /// The days are counted in eras of 400 years that start in March
    /// (https://howardhinnant.github.io/date_algorithms.html).
    private static func days(year: Int, month: Int, day: Int) -> Int {
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    static func civil(days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
    }

    static func floorDivide(_ value: Int64, _ divisor: Int64) -> Int64 {
        let quotient = value / divisor
        return value % divisor < 0 ? quotient - 1 : quotient
    }
}
