import BusKit
import PodcastModel

/// The stored generation of a service: seconds since 1970, but always larger than the last one.
struct GenerationFile {
    let path: String

    /// Returns the generation of the next process, which is then on disk.
    func next(now: Timestamp) throws(Failure) -> UInt32 {
        let clock = UInt32(clamping: now.milliseconds / 1_000)
        let next = max(clock, last.map { $0 == .max ? $0 : $0 + 1 } ?? 1)
        try SmallFile.replace(path, with: "\(next)\n")
        return next
    }

    /// Makes the next generation larger than `generation`, which the bus or the database has registered for the service.
    func record(_ generation: UInt32) throws(Failure) {
        guard generation > last ?? 0 else { return }
        try SmallFile.replace(path, with: "\(generation)\n")
    }

    /// The last generation; nil if the file is missing or unreadable: then the clock alone decides.
    private var last: UInt32? { UInt32(SmallFile.text(of: path).prefix { $0 != "\n" }) }
}
