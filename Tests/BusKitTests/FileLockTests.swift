import BusKit
import PodcastModel
import TestSupport
import Testing

struct FileLockTests {
    @Test func `a second process that requests the lock receives the holder’s process ID`() throws {
        let home = try TemporaryHome()
        let path = home.path + "/a.lock"
        let first = try FileLock(path)
        let failure = #expect(throws: Failure.self) { _ = try FileLock(path) }
        #expect(failure?.known == .alreadyRunning)
        #expect(FileLock.isHeld(path))
        withExtendedLifetime(first) {}
    }

    @Test func `the holder’s text in the lock file can be read while the lock is held`() throws {
        let home = try TemporaryHome()
        let path = home.path + "/a.lock"
        #expect(FileLock.note(of: path) == nil)
        let lock = try FileLock(path, note: "/run/user/1000/lockstep")
        #expect(FileLock.note(of: path) == "/run/user/1000/lockstep")
        #expect(FileLock.holder(of: path) != nil)
        withExtendedLifetime(lock) {}
    }

    @Test func `a lock is free after its holder has ended`() throws {
        let home = try TemporaryHome()
        let path = home.path + "/a.lock"
        for _ in 0..<100 {
            let lock = try FileLock(path)
            withExtendedLifetime(lock) {}
        }
        #expect(!FileLock.isHeld(path))
    }

    @Test func `checking whether a lock is held doesn’t prevent another process from locking it`() async throws {
        let home = try TemporaryHome()
        let path = home.path + "/a.lock"
        _ = try FileLock(path)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<3 {
                group.addTask { for _ in 0..<2_000 { _ = FileLock.isHeld(path) } }
            }
            for _ in 0..<200 {
                let lock = try FileLock(path)
                withExtendedLifetime(lock) {}
            }
            try await group.waitForAll()
        }
    }
}
