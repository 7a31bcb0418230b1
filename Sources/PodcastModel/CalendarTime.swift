/// A moment of UTC as people and file names write it (the proleptic Gregorian calendar).
public struct CalendarTime: Sendable, Hashable {
    var year: Int
    var month: Int
    var day: Int
    /// Milliseconds since midnight.
    var milliseconds: Int

    private static let dayLength: Int64 = 86_400_000

    /// The day and time of a moment.
    public init(_ moment: Timestamp) {
        let days = Int((moment.milliseconds / Self.dayLength)) - (moment.milliseconds % Self.dayLength < 0 ? 1 : 0)
        milliseconds = Int(moment.milliseconds - Int64(days) * Self.dayLength)
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

    /// Reads what `compact` writes; nil for anything else.
    public init?(compact text: some StringProtocol) {
        let bytes = Array(text.utf8)
        guard bytes.count == 19, bytes[8] == UInt8(ascii: "T"), bytes[18] == UInt8(ascii: "Z") else { return nil }
        func number(_ range: Range<Int>) -> Int? {
            var value = 0
            for byte in bytes[range] {
                guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
                value = value * 10 + Int(byte - UInt8(ascii: "0"))
            }
            return value
        }
        guard let year = number(0..<4), let month = number(4..<6), let day = number(6..<8), let hour = number(9..<11),
            let minute = number(11..<13), let second = number(13..<15), let millisecond = number(15..<18),
            (1...12).contains(month), (1...31).contains(day)
        else { return nil }
        self.year = year
        self.month = month
        self.day = day
        milliseconds = ((hour * 60 + minute) * 60 + second) * 1_000 + millisecond
    }

    /// The moment.
    public var timestamp: Timestamp {
        let shiftedYear = month <= 2 ? year - 1 : year
        let era = (shiftedYear >= 0 ? shiftedYear : shiftedYear - 399) / 400
        let yearOfEra = shiftedYear - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        let days = Int64(era * 146_097 + dayOfEra - 719_468)
        return Timestamp(milliseconds: days * Self.dayLength + Int64(milliseconds))
    }

    /// For file names, in order of time: `20260102T030405678Z`.
    public var compact: String {
        padded(year, 4) + padded(month, 2) + padded(day, 2) + "T" + padded(milliseconds / 3_600_000, 2)
            + padded(milliseconds / 60_000 % 60, 2) + padded(milliseconds / 1_000 % 60, 2)
            + padded(milliseconds % 1_000, 3) + "Z"
    }

    /// For people: `2026-01-02 03:04 UTC`.
    public var readable: String {
        dayText + " " + padded(milliseconds / 3_600_000, 2) + ":" + padded(milliseconds / 60_000 % 60, 2) + " UTC"
    }

    /// The day alone: `2026-01-02`.
    public var dayText: String { padded(year, 4) + "-" + padded(month, 2) + "-" + padded(day, 2) }

    private func padded(_ value: Int, _ width: Int) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
