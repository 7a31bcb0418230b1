import LibC

/// The local time of this machine.
public enum LocalTime {
    /// The date and the time of a timestamp in this machine’s time zone.
    public static func calendar(_ moment: Timestamp) -> CalendarTime {
        let parts = parts(of: moment)
        let seconds = (Int(parts.tm_hour) * 60 + Int(parts.tm_min)) * 60 + Int(parts.tm_sec)
        return CalendarTime(
            year: Int(parts.tm_year) + 1_900, month: Int(parts.tm_mon) + 1, day: Int(parts.tm_mday),
            milliseconds: seconds * 1_000)
    }

    /// The seconds from `now` until clocks next show a time; more than 0, and less than two days.
    public static func seconds(until hour: Int32, _ minute: Int32, from now: Timestamp) -> Double {
        var parts = parts(of: now)
        (parts.tm_hour, parts.tm_min, parts.tm_sec, parts.tm_isdst) = (hour, minute, 0, -1)
        var tomorrow = parts
        let left = Double(mktime(&parts)) - now.seconds
        guard left <= 0 else { return left }
        tomorrow.tm_mday += 1
        return Double(mktime(&tomorrow)) - now.seconds
    }

    /// The first moment of a day in this machine’s time zone.
    @Sendable public static func startOfDay(_ day: CalendarDay) -> Timestamp {
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (Int32(day.year - 1_900), Int32(day.month - 1), Int32(day.day))
        parts.tm_isdst = -1
        return Timestamp(milliseconds: Int64(mktime(&parts)) * 1_000)
    }

    /// The starts of the days from the one that contains `first` to the one that contains `last`, and the end of the
    /// last one, in this machine’s time zone; nil if there are more than `limit` days.
    public static func days(from first: Timestamp, through last: Timestamp, limit: Int) -> [Timestamp]? {
        guard var day = CalendarDay(calendar(first).dayText) else { return nil }
        var starts = [startOfDay(day)]
        repeat {
            guard starts.count <= limit, day.next != day else { return nil }
            day = day.next
            starts.append(startOfDay(day))
        } while starts[starts.count - 1] <= last
        return starts
    }

    private static func parts(of moment: Timestamp) -> tm {
        var seconds = time_t(moment.milliseconds / 1_000)
        var parts = tm()
        localtime_r(&seconds, &parts)
        return parts
    }
}
