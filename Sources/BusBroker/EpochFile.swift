import BusKit
import PodcastModel

/// The file that remembers the newest epoch, so that epochs ascend even when the clock steps back.
struct EpochFile: Sendable {
    let path: String

    /// The epoch after the last: `now` in milliseconds, or one more than the last if the clock is behind it. It is on
    /// disk when this returns. A file that cannot be read counts as none: then the clock alone decides.
    func next(now: Timestamp) throws(Failure) -> UInt64 {
        let clock = UInt64(clamping: now.milliseconds)
        let epoch = max(clock, (last() ?? 0).addingReportingOverflow(1).partialValue, 1)
        try SmallFile.replace(path, with: "\(epoch)\n")
        return epoch
    }

    private func last() -> UInt64? { UInt64(SmallFile.text(of: path).prefix { $0 != "\n" }) }
}
