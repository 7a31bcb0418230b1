import LibC

/// The machine’s clocks, which shells read and pass to machines as “now”.
public enum SystemClocks {
    /// Reads both clocks.
    public static func now() -> Moment { Moment(monotonic: monotonic(), wall: wall()) }

    /// The time on CLOCK_MONOTONIC.
    public static func monotonic() -> MonotonicTime { MonotonicTime(nanoseconds: read(CLOCK_MONOTONIC)) }

    /// The time of day, UTC.
    public static func wall() -> Timestamp {
        Timestamp(milliseconds: Int64(clamping: read(CLOCK_REALTIME) / 1_000_000))
    }

    /// The nanoseconds since 1970, UTC.
    public static func wallNanoseconds() -> UInt64 { read(CLOCK_REALTIME) }

    /// The ID of this boot of the machine, as in `/proc/sys/kernel/random/boot_id`; `unknown` if it can’t be read.
    public static let bootID: String = {
        guard let file = fopen("/proc/sys/kernel/random/boot_id", "r") else { return "unknown" }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = fread(&bytes, 1, bytes.count, file)
        let text = String(decoding: bytes[..<count].filter { $0 > 0x20 }, as: UTF8.self)
        return text.isEmpty ? "unknown" : text
    }()

    private static func read(_ clock: clockid_t) -> UInt64 {
        var time = timespec()
        _ = clock_gettime(clock, &time)
        return UInt64(clamping: time.tv_sec) &* 1_000_000_000 &+ UInt64(clamping: time.tv_nsec)
    }
}
