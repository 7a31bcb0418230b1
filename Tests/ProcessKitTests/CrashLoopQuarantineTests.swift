import Foundation
import NIOConcurrencyHelpers
import PodcastModel
import TestSupport
import Testing

@testable import ProcessKit

@Suite
struct CrashLoopQuarantineTests {
    private let folder: TemporaryFolder
    private let clock = NIOLockedValueBox(MonotonicTime(nanoseconds: 5_000_000_000_000))

    init() throws { folder = try TemporaryFolder() }

    /// Returns the quarantine of the next process.
    /// - Parameter hasCrashed: whether the previous process crashed.
    private func process(hasCrashed: Bool = true) -> CrashLoopQuarantine {
        CrashLoopQuarantine(path: folder.path + "/work", hasCrashed: hasCrashed) { [clock] in
            clock.withLockedValue(\.self)
        }
    }

    /// The outcomes of the work in order: "+" for begun, "?" for postponed, "-" for refused.
    private func begin(_ keys: [String], in quarantine: CrashLoopQuarantine) -> NIOLockedValueBox<[String]> {
        let log = NIOLockedValueBox<[String]>([])
        for (number, key) in keys.enumerated() {
            quarantine.begin(UInt64(number), key) {
                log.withLockedValue { $0.append("+\(key)") }
            } postpone: {
                log.withLockedValue { $0.append("?\(key)") }
            } refuse: {
                log.withLockedValue { $0.append("-\(key)") }
            }
        }
        return log
    }

    private func advance(_ duration: Duration) {
        clock.withLockedValue { $0 = $0.advanced(by: duration) }
    }

    @Test func `work that crashed its process twice is refused until it is released`() {
        _ = begin(["a"], in: process())
        _ = begin(["a"], in: process())
        let third = process()
        #expect(begin(["a", "b"], in: third).withLockedValue(\.self) == ["-a", "+b"])
        third.release("a")
        #expect(begin(["a"], in: third).withLockedValue(\.self) == ["+a"])
        #expect(begin(["a"], in: process()).withLockedValue(\.self) == ["-a"])
    }

    @Test func `suspects run one at a time, so that only the work that crashes is quarantined`() {
        _ = begin(["a", "b", "c"], in: process())
        let second = process()
        let log = begin(["a", "b", "c", "d"], in: second)
        #expect(log.withLockedValue(\.self) == ["+a", "?b", "?c", "+d"])
        second.end(0)
        #expect(log.withLockedValue(\.self) == ["+a", "?b", "?c", "+d", "+b"])
        let third = process()
        #expect(begin(["a", "b", "c", "d"], in: third).withLockedValue(\.self) == ["+a", "-b", "+c", "?d"])
    }

    @Test func `work that ends is no longer suspect`() {
        for _ in 1...5 {
            let next = process()
            #expect(begin(["a"], in: next).withLockedValue(\.self) == ["+a"])
            next.end(0)
        }
    }

    @Test func `a process that was killed from outside makes no work suspect`() {
        for _ in 1...5 { #expect(begin(["a"], in: process(hasCrashed: false)).withLockedValue(\.self) == ["+a"]) }
    }

    @Test func `a crash long after the work began doesn’t count`() {
        for _ in 1...5 {
            #expect(begin(["a"], in: process()).withLockedValue(\.self) == ["+a"])
            advance(.seconds(CrashLoopQuarantine.window + 1))
        }
    }

    @Test func `a request that is repeated right after a crash doesn’t release its work`() {
        _ = begin(["a"], in: process())
        _ = begin(["a"], in: process())
        let third = process()
        third.release("a", after: .seconds(60))
        #expect(begin(["a"], in: third).withLockedValue(\.self) == ["-a"])
        advance(.seconds(61))
        third.release("a", after: .seconds(60))
        #expect(begin(["a"], in: third).withLockedValue(\.self) == ["+a"])
    }

    @Test func `a crash counts once for the work in progress`() {
        _ = begin(["a"], in: process())
        // This process crashes before it begins any work.
        _ = process()
        let third = process()
        #expect(begin(["a"], in: third).withLockedValue(\.self) == ["+a"])
    }

    @Test func `the file of work in progress stays small`() throws {
        func file() throws -> (number: UInt64, size: UInt64) {
            let attributes = try FileManager.default.attributesOfItem(atPath: folder.path + "/work")
            return (
                try #require(attributes[.systemFileNumber] as? UInt64), try #require(attributes[.size] as? UInt64)
            )
        }
        let quarantine = process()
        let before = try file()
        for number in 0..<100 {
            _ = begin(["a"], in: quarantine)
            quarantine.end(0)
            if number == 50 { #expect(try file().size > before.size) }
        }
        #expect(try file().number == before.number, "the file was written anew")
        let key = String(repeating: "k", count: 200)
        for _ in 0..<2_000 {
            _ = begin([key], in: quarantine)
            quarantine.end(0)
        }
        #expect(try file().size <= CrashLoopQuarantine.fileLimit)
        _ = begin(["b"], in: quarantine)
        _ = begin(["b"], in: process())
        #expect(begin(["a", "b", key], in: process()).withLockedValue(\.self) == ["+a", "-b", "+\(key)"])
    }

    @Test func `quarantined work is retried after a day`() {
        _ = begin(["a"], in: process())
        _ = begin(["a"], in: process())
        let third = process()
        advance(.seconds(CrashLoopQuarantine.pause - 1))
        #expect(begin(["a"], in: third).withLockedValue(\.self) == ["-a"])
        advance(.seconds(1))
        #expect(begin(["a"], in: third).withLockedValue(\.self) == ["+a"])
        #expect(begin(["a"], in: process()).withLockedValue(\.self) == ["-a"])
    }

    @Test func `work that was quarantined before a reboot can be released after the reboot`() {
        _ = begin(["a"], in: process())
        _ = begin(["a"], in: process())
        _ = begin(["b"], in: process())
        // The monotonic clock restarts at zero after a reboot.
        clock.withLockedValue { $0 = MonotonicTime(nanoseconds: 100_000_000_000) }
        let next = process(hasCrashed: false)
        #expect(begin(["a"], in: next).withLockedValue(\.self) == ["-a"])
        next.release("a", after: .seconds(60))
        #expect(begin(["a"], in: next).withLockedValue(\.self) == ["+a"])
    }

    @Test func `work that must wait for other suspects is postponed once, then begun`() {
        _ = begin(["a", "b", "c"], in: process())
        let second = process()
        let log = begin(["a", "b", "c"], in: second)
        #expect(log.withLockedValue(\.self) == ["+a", "?b", "?c"])
        second.end(0)
        second.end(1)
        #expect(log.withLockedValue(\.self) == ["+a", "?b", "?c", "+b", "+c"])
    }

    @Test func `work that ends while it waits is not begun`() {
        _ = begin(["a", "b"], in: process())
        let second = process()
        let log = begin(["a", "b"], in: second)
        second.end(1)
        second.end(0)
        #expect(log.withLockedValue(\.self) == ["+a", "?b"])
    }

    @Test(arguments: ["", "garbage", "1 2\n", "x 1 1 a\n", "9999999999999999999999 1 1 a\n", "2 0 -1 other\n"])
    func `an unreadable file quarantines no work`(text: String) throws {
        try text.write(toFile: folder.path + "/work", atomically: true, encoding: .utf8)
        #expect(begin(["a"], in: process()).withLockedValue(\.self) == ["+a"])
    }
}
