import BusKit
import PodcastModel

/// The file that stores the newest epoch, so that epochs ascend even if the clock is set back.
struct EpochFile: Sendable {
    let path: String

    /// Returns the next epoch: `now` in milliseconds, or the last epoch plus one if that is larger. The epoch is on disk when
    /// the call returns. If the file is unreadable, the clock alone determines the epoch.
    func next(now: Timestamp) throws(Failure) -> UInt64 {
        let clock = UInt64(clamping: now.milliseconds)
        let epoch = max(clock, (last() ?? 0).addingReportingOverflow(1).partialValue, 1)
        try SmallFile.replace(path, with: "\(epoch)\n")
        return epoch
    }

    private func last() -> UInt64? { UInt64(SmallFile.text(of: path).prefix { $0 != "\n" }) }
}
