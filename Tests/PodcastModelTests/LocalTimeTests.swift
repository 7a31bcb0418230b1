import PodcastModel
import Testing

@Suite struct LocalTimeTests {
    private static let now = Timestamp(milliseconds: 1_790_000_000_000)

    @Test(arguments: [(0, 0), (7, 5), (12, 30), (23, 59)])
    func `the wait for a time of day ends when the local clock shows it`(hour: Int32, minute: Int32) {
        let seconds = LocalTime.seconds(until: hour, minute, from: Self.now)
        #expect(seconds > 0 && seconds <= 2 * 86_400)
        let then = Timestamp(milliseconds: Self.now.milliseconds + Int64(seconds * 1_000))
        let shown = LocalTime.calendar(then)
        #expect(shown.hour == hour)
        #expect(shown.minuteText.hasSuffix(":\(minute < 10 ? "0" : "")\(minute)"))
    }
}
