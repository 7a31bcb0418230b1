/// A date and a time of day in the proleptic Gregorian calendar: in UTC, unless it was created as local time.
public struct CalendarTime: Sendable, Hashable {
    var year: Int
    var month: Int
    var day: Int
    /// The milliseconds since midnight.
    var milliseconds: Int

    private static let dayLength: Int64 = 86_400_000

    /// Creates the date and time of a timestamp, in UTC.
    public init(_ moment: Timestamp) {
        let (whole, rest) = moment.milliseconds.quotientAndRemainder(dividingBy: Self.dayLength)
        let days = Int(whole) - (rest < 0 ? 1 : 0)
        milliseconds = Int(rest < 0 ? rest + Self.dayLength : rest)
        // Years are counted from 1 March of the year 0, so that the leap day is the last of its year.
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    /// A date and a time of day. The month is 1 to 12.
    init(year: Int, month: Int, day: Int, milliseconds: Int) {
        (self.year, self.month, self.day, self.milliseconds) = (year, month, day, milliseconds)
    }

    /// Parses the form of `compact`; nil for any other text.
    public init?(compact text: some StringProtocol) {
        let bytes = Array(text.utf8)
        guard bytes.count == 19, bytes[8] == UInt8(ascii: "T"), bytes[18] == UInt8(ascii: "Z") else { return nil }
        func number(_ range: Range<Int>) -> Int? {
            var value = 0
            for byte in bytes[range] {
                guard byte.isASCIIDigit else { return nil }
                value = value * 10 + Int(byte - UInt8(ascii: "0"))
            }
            return value
        }
        guard let year = number(0..<4), let month = number(4..<6), let day = number(6..<8), let hour = number(9..<11),
            let minute = number(11..<13), let second = number(13..<15), let millisecond = number(15..<18),
            (1...12).contains(month), hour < 24, minute < 60, second < 60
        else { return nil }
        self.init(
            year: year, month: month, day: day,
            milliseconds: ((hour * 60 + minute) * 60 + second) * 1_000 + millisecond)
        guard exists else { return nil }
    }

    /// Whether the date exists; 30 February, for example, doesn’t.
    var exists: Bool { CalendarTime(timestamp) == self }

    /// The timestamp of the date and time, which must be in UTC.
    public var timestamp: Timestamp {
        let shiftedYear = month <= 2 ? year - 1 : year
        let era = (shiftedYear >= 0 ? shiftedYear : shiftedYear - 399) / 400
        let yearOfEra = shiftedYear - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        let days = Int64(era * 146_097 + dayOfEra - 719_468)
        return Timestamp(milliseconds: days * Self.dayLength + Int64(milliseconds))
    }

    /// The hour of the day, 0 to 23.
    public var hour: Int { milliseconds / 3_600_000 }
    private var minute: Int { milliseconds / 60_000 % 60 }
    private var second: Int { milliseconds / 1_000 % 60 }

    /// The form for file names, which sort by time: `20260102T030405678Z`.
    public var compact: String {
        padded(year, 4) + padded(month, 2) + padded(day, 2) + "T" + padded(hour, 2) + padded(minute, 2)
            + padded(second, 2) + padded(milliseconds % 1_000, 3) + "Z"
    }

    /// The form of RFC 3339 for programs: `2026-01-02T03:04:05.678Z`.
    public var rfc3339: String { "\(dayText)T\(timeText).\(padded(milliseconds % 1_000, 3))Z" }

    /// The day alone: `2026-01-02`.
    public var dayText: String { "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))" }

    /// The day and the minute: `2026-01-02 03:04`.
    public var minuteText: String { "\(dayText) \(padded(hour, 2)):\(padded(minute, 2))" }

    /// The day and the second: `2026-01-02 03:04:05`.
    public var secondText: String { "\(dayText) \(timeText)" }

    private var timeText: String { "\(padded(hour, 2)):\(padded(minute, 2)):\(padded(second, 2))" }
}
