import PodcastModel
import Testing

@Suite struct ClockTextTests {
    @Test(arguments: [
        (0.0, "0:00"), (59.9, "0:59"), (59.96, "1:00"), (599.97, "10:00"), (754, "12:34"), (3_723, "1:02:03"),
        (-1, "0:00"), (.infinity, "--:--"), (.nan, "--:--"),
    ])
    func `durations are formatted with hours, minutes and seconds`(seconds: Double, text: String) {
        #expect(ClockText.format(seconds) == text)
    }

    @Test func `an unknown length is shown as dashes`() {
        #expect(ClockText.format(nil) == "--:--")
    }
}
